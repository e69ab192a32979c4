"""The provider's keys: how long they are used, when they are fetched, what an outage means."""

import asyncio
import warnings
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc.jwk import ECKey, RSAKey

from services.auth.domain.errors import IdentityProviderUnavailable
from services.auth.oidc.key_cache import FetchedKeySet, FetchFailed, KeyCache, max_age_s, usable_keys
from tests.harness import FakeClock


def jwk(kid: str, bits: int = 2048, exponent: int = 65_537) -> dict[str, Any]:
    with warnings.catch_warnings(action="ignore"):  # weak keys are meant
        key = RSAKey.import_key(rsa.generate_private_key(public_exponent=exponent, key_size=bits))
    return {**key.as_dict(private=False), "kid": kid, "use": "sig", "alg": "RS256"}


KEYS = {kid: jwk(kid) for kid in ("a", "b")}


def changed(**changes: Any) -> dict[str, Any]:
    members = {**KEYS["b"], "kid": "x", **changes}
    return {name: value for name, value in members.items() if value is not None}


class Source:
    """Answers with what it is told; counts fetches; may be held up."""

    def __init__(self, *kids: str) -> None:
        self.kids: tuple[str, ...] | None = kids
        self.cache_control = "max-age=300"
        self.fetches = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self) -> FetchedKeySet:
        self.fetches += 1
        await self.gate.wait()
        if self.kids is None:
            raise FetchFailed("down")
        return FetchedKeySet({"keys": [KEYS[kid] for kid in self.kids]}, self.cache_control)


async def test_keys_are_fetched_once_and_used_until_they_are_old(fake_clock: FakeClock):
    source = Source("a")
    cache = KeyCache(source, fake_clock)
    for _ in range(3):
        assert await cache.find("a") is not None
    assert source.fetches == 1
    fake_clock.advance(299)
    await cache.find("a")
    assert source.fetches == 1
    fake_clock.advance(1)
    source.kids = ("b",)
    assert await cache.find("a") is None, "a withdrawn key is not used after its time"
    assert source.fetches == 2


async def test_an_unknown_id_is_fetched_once_per_cool_down(fake_clock: FakeClock):
    source = Source("a")
    cache = KeyCache(source, fake_clock, cool_down_s=10)
    await cache.find("a")
    for _ in range(50):
        assert await cache.find("b") is None
    assert source.fetches == 1, "just fetched"
    fake_clock.advance(10)
    source.kids = ("a", "b")
    assert await cache.find("b") is not None
    for number in range(50):
        assert await cache.find(f"made-up-{number}") is None
    assert source.fetches == 2


async def test_all_who_wait_share_one_fetch(fake_clock: FakeClock):
    source = Source("a")
    source.gate.clear()
    cache = KeyCache(source, fake_clock)
    waiting = [asyncio.create_task(cache.find("a")) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # whoever started the fetch gives up
    await asyncio.sleep(0)
    source.gate.set()
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert all(isinstance(key, RSAKey) for key in found[1:])
    assert source.fetches == 1


async def test_an_outage_keeps_the_old_keys_and_is_never_a_bad_token(fake_clock: FakeClock):
    source = Source("a")
    cache = KeyCache(source, fake_clock, cool_down_s=10)
    await cache.find("a")
    source.kids = None
    fake_clock.advance(100_000)
    assert await cache.find("a") is not None
    with pytest.raises(IdentityProviderUnavailable) as refusal:
        await cache.find("b")
    assert refusal.value.retry_after_s == 10
    assert source.fetches == 2, "no second attempt within the cool-down"
    fake_clock.advance(10)
    source.kids = ("b",)
    assert await cache.find("b") is not None


async def test_an_outage_from_the_start_is_unavailable(fake_clock: FakeClock):
    source = Source()
    source.kids = None
    cache = KeyCache(source, fake_clock)
    for _ in range(5):
        with pytest.raises(IdentityProviderUnavailable):
            await cache.find("a")
    assert source.fetches == 1


async def test_closing_gives_up_a_fetch(fake_clock: FakeClock):
    source = Source("a")
    source.gate.clear()
    cache = KeyCache(source, fake_clock)
    await cache.close()
    waiting = asyncio.create_task(cache.find("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await cache.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", 3600), ("public", 3600), ("max-age=300", 300), ("public, max-age=19845, must-revalidate", 19845),
        ("Max-Age = 300", 300), ('max-age="300"', 300), ("max-age=0", 60), ("max-age=59", 60), ("max-age=86401", 86400),
        ("max-age=9999999999", 86400), ("max-age=99999999999", 3600), ("max-age=-5", 3600), ("s-maxage=7", 3600),
        ("x-max-age=7", 3600), ("max-age=abc", 3600), ("no-store", 60), ("no-cache, max-age=300", 60),
        ("max-age=300, NO-STORE", 60),
    ],
)  # fmt: skip
def test_cache_control_is_honoured_within_bounds(header: str, seconds: float):
    assert max_age_s(header) == seconds


@pytest.mark.parametrize(
    "body", [None, [], "x", {}, {"keys": None}, {"keys": {}}, {"keys": []}, {"keys": [1, None]}, {"keys": [{}] * 33}]
)
def test_what_is_no_key_set_is_a_failed_fetch(body: object):
    with pytest.raises(FetchFailed):
        usable_keys(body)


WRONG = {
    "weak": jwk("x", bits=1024),
    "just below": jwk("x", bits=2047),
    "huge": {**KEYS["a"], "kid": "x", "n": "A" * 3000 + KEYS["a"]["n"] * 5},
    "exponent 3": jwk("x", exponent=3),
    "for encryption": changed(use="enc"),
    "other algorithm": changed(alg="RS512"),
    "no id": changed(kid=None),
    "empty id": changed(kid=""),
    "long id": changed(kid="x" * 257),
    "number as id": changed(kid=7),
    "no modulus": changed(n=None),
    "no exponent": changed(e=None),
    "broken modulus": changed(n="!!!"),
    "empty modulus": changed(n=""),
    "modulus of another type": changed(n=["a"]),
    "elliptic": {**ECKey.generate_key("P-256").as_dict(private=False), "kid": "x"},
    "symmetric": {"kty": "oct", "k": "AAAA", "kid": "x", "alg": "HS256"},
    "other type": changed(kty="rsa"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_unusable_keys_are_left_out(wrong: dict[str, Any]):
    assert list(usable_keys({"keys": [wrong, KEYS["a"]]})) == ["a"]


def test_private_members_are_not_imported_and_the_first_of_an_id_counts():
    private = RSAKey.generate_key(2048).as_dict(private=True)
    keys = usable_keys({"keys": [{**private, "kid": "a"}, {**KEYS["b"], "kid": "a"}, {**KEYS["a"], "kid": "c"}]})
    assert list(keys) == ["a", "c"]
    assert keys["a"].is_private is False
    assert keys["a"].as_dict()["n"] == private["n"]


def test_use_and_algorithm_may_be_left_out():
    assert list(usable_keys({"keys": [changed(kid="a", use=None, alg=None)]})) == ["a"]
