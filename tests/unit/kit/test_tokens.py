"""Signed documents: what is accepted, what is refused and why, and how keys come and go."""

import asyncio
import base64
import hashlib
import hmac
import json
import stat

import pytest
from joserfc import jws
from joserfc.jwk import OKPKey
from nacl.signing import SigningKey

from services.kit.errors import DocumentInvalid, KeysUnavailable, Unauthenticated
from services.kit.settings import SettingsError
from services.kit.tokens import (
    AccessTokenVerifier,
    KeySet,
    SigningKeys,
    access_token_payload,
    create_signing_key,
    decode_base64url,
    encode_base64url,
    verify_document,
)
from tests.harness import AUDIENCE, AUTH_ISSUER, FakeClock, Issuer, make_caller

TYP = "at+jwt"


def raw_token(header: dict, payload: dict | bytes, key: SigningKey) -> str:
    """Sign any header and payload with a bare Ed25519 key."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    text = f"{encode_base64url(json.dumps(header).encode())}.{encode_base64url(body)}"
    return f"{text}.{encode_base64url(key.sign(text.encode()).signature)}"


class OneKey:
    """A key set with one known key, for tokens that the library would not make."""

    def __init__(self, clock: FakeClock) -> None:
        self.signing = SigningKey(b"k" * 32)
        self.public = bytes(self.signing.verify_key)
        jwk = {"kty": "OKP", "crv": "Ed25519", "x": encode_base64url(self.public), "kid": "k1"}
        self.fetches = 0

        async def fetch() -> str:
            self.fetches += 1
            return json.dumps({"keys": [jwk]})

        self.keys = KeySet(AUTH_ISSUER, fetch, clock)
        self.claims = json.loads(
            access_token_payload(make_caller(), issuer=AUTH_ISSUER, audience=AUDIENCE, issued_at=clock.now())
        )
        self.header = {"alg": "EdDSA", "kid": "k1", "typ": TYP}
        self.verifier = AccessTokenVerifier(self.keys, AUDIENCE, clock)

    def token(self, header: dict | None = None, claims: dict | None = None) -> str:
        return raw_token(self.header | (header or {}), self.claims | (claims or {}), self.signing)


@pytest.fixture
def one(fake_clock) -> OneKey:
    return OneKey(fake_clock)


async def test_a_token_says_who_calls(issuer: Issuer, fake_clock):
    caller = make_caller("花子", avatar="moon", scope="play admin")
    verifier = AccessTokenVerifier(issuer.key_set(), AUDIENCE, fake_clock)
    assert await verifier.verify(issuer.access_token(caller)) == caller


async def test_the_bytes_that_were_signed_come_back(issuer: Issuer):
    payload = b'{ "iss":"' + AUTH_ISSUER.encode() + b'",\n"x" :1.0}'
    compact = issuer.keys.sign(payload, "koikoi-x+jws")
    document = await verify_document(compact, typ="koikoi-x+jws", keys=issuer.key_set(), max_chars=1000)
    assert document.payload == payload
    assert document.claims["x"] == 1.0
    assert json.loads(issuer.keys.jwks())["keys"][0]["kid"] == document.kid
    assert len(document.public_key) == 32


async def test_a_token_expires_to_the_second_with_little_skew(issuer: Issuer, fake_clock):
    verifier = AccessTokenVerifier(issuer.key_set(), AUDIENCE, fake_clock)
    token = issuer.access_token(make_caller(), lifetime_s=900)
    fake_clock.advance(904.9)
    await verifier.verify(token)
    fake_clock.advance(0.2)
    with pytest.raises(Unauthenticated, match="expired"):
        await verifier.verify(token)


async def test_a_token_from_the_future_is_refused(one: OneKey, fake_clock):
    await one.verifier.verify(one.token(claims={"iat": fake_clock.now() + 4}))
    with pytest.raises(Unauthenticated, match="not valid yet"):
        await one.verifier.verify(one.token(claims={"iat": fake_clock.now() + 6}))


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "koikoi/production"},
        {"aud": [AUDIENCE]},
        {"iss": "https://auth.koikoi/production"},
        {"iss": None},
        {"exp": "tomorrow"},
        {"exp": None},
        {"exp": float("nan")},
        {"exp": True},
        {"iat": []},
        {"sub": ""},
        {"sub": 7},
        {"device": ""},
        {"name": None},
        {"scope": ["play"]},
        {"avatar": {}},
        {"cnf": {}},
        {"cnf": None},
        {"cnf": {"jwk": {"kty": "OKP", "crv": "X25519", "x": "A" * 43}}},
        {"cnf": {"jwk": {"kty": "OKP", "crv": "Ed25519", "x": "A" * 43}}},
        {"cnf": {"jwk": {"kty": "OKP", "crv": "Ed25519", "x": 5}}},
        {"cnf": {"jwk": {"kty": "OKP", "crv": "Ed25519", "x": encode_base64url(b"k" * 31)}}},
    ],
)
async def test_a_bad_claim_is_refused(one: OneKey, claims):
    await one.verifier.verify(one.token())
    with pytest.raises(Unauthenticated):
        await one.verifier.verify(one.token(claims=claims))


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "none"},
        {"alg": "Ed25519"},
        {"alg": "HS256"},
        {"alg": "RS256"},
        {"alg": ["EdDSA"]},
        {"typ": "JWT"},
        {"typ": "koikoi-contract+jws"},
        {"typ": "AT+JWT"},
        {"kid": "other"},
        {"kid": ""},
        {"kid": "k" * 65},
        {"kid": 1},
        {"jku": "https://evil.example/jwks"},
        {"x5u": "https://evil.example/cert"},
        {"jwk": {"kty": "OKP"}},
        {"crit": ["exp"]},
        {"b64": False},
        {"cty": "JWT"},
    ],
)
async def test_a_header_that_is_not_exactly_ours_is_refused(one: OneKey, header):
    await one.verifier.verify(one.token())
    with pytest.raises(Unauthenticated):
        await one.verifier.verify(one.token(header=header))


async def test_a_token_with_its_own_key_in_the_header_is_refused(one: OneKey):
    mine = SigningKey(b"m" * 32)
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": encode_base64url(bytes(mine.verify_key))}
    with pytest.raises(Unauthenticated):
        await one.verifier.verify(raw_token(one.header | {"jwk": jwk}, one.claims, mine))
    with pytest.raises(Unauthenticated, match="signature"):
        await one.verifier.verify(raw_token(one.header, one.claims, mine))


async def test_alg_none_and_the_public_key_as_hmac_secret_are_refused(one: OneKey):
    body = one.token().split(".")[1]
    for alg in ("none", "HS256"):
        head = encode_base64url(json.dumps(one.header | {"alg": alg}).encode())
        mac = hmac.new(one.public, f"{head}.{body}".encode(), hashlib.sha256).digest()
        for signature in ("", "AA", encode_base64url(mac)):
            with pytest.raises(Unauthenticated):
                await one.verifier.verify(f"{head}.{body}.{signature}")


async def test_every_single_changed_character_is_refused(one: OneKey):
    token = one.token()
    for place in range(0, len(token), 3):
        for other in ("A", "B"):
            bent = token[:place] + other + token[place + 1 :]
            if bent != token:
                with pytest.raises(Unauthenticated):
                    await one.verifier.verify(bent)


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "é.b.c", "a b.c.d", "eyJ9.e30.", "=.=.=", "A" * 5000, "\x00", "a.b.c\n"],
)
async def test_garbage_is_refused(one: OneKey, text):
    with pytest.raises(Unauthenticated):
        await one.verifier.verify(text)
    assert one.fetches == 0, "garbage never causes a fetch"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"1",
        b"null",
        b"{",
        b'{"iss":"a","iss":"b"}',
        b'{"a":NaN}',
        b"[" * 1500,
        b"\xff",
        b'{"iss":"%s"} x' % AUTH_ISSUER.encode(),
    ],
)
async def test_a_signed_payload_that_is_no_json_object_is_refused(one: OneKey, payload):
    with pytest.raises(DocumentInvalid):
        await verify_document(raw_token(one.header, payload, one.signing), typ=TYP, keys=one.keys, max_chars=4096)


async def test_the_size_is_checked_first(one: OneKey):
    token = one.token()
    await verify_document(token, typ=TYP, keys=one.keys, max_chars=len(token))
    with pytest.raises(DocumentInvalid, match="characters"):
        await verify_document(token, typ=TYP, keys=one.keys, max_chars=len(token) - 1)


async def test_another_issuers_key_set_does_not_verify(issuer: Issuer, fake_clock, tmp_path):
    other = Issuer(tmp_path / "other", fake_clock, AUTH_ISSUER)
    verifier = AccessTokenVerifier(other.key_set(), AUDIENCE, fake_clock)
    with pytest.raises(Unauthenticated, match="not one of its issuer's"):
        await verifier.verify(issuer.access_token(make_caller()))


def test_base64url_has_one_text_for_each_value():
    assert decode_base64url("AQ") == b"\x01"
    for bad in ("AR", "AQ==", "A", "A+", "A/", "A Q", "AQ\n", "é"):
        with pytest.raises(ValueError):
            decode_base64url(bad)


# --- the keys of an issuer ---


def kids(keys: SigningKeys) -> list[str]:
    return [key["kid"] for key in json.loads(keys.jwks())["keys"]]


def kid_of(compact: str) -> str:
    return json.loads(base64.urlsafe_b64decode(compact.partition(".")[0] + "=="))["kid"]


def test_a_first_key_is_made_only_where_asked(tmp_path, fake_clock):
    with pytest.raises(SettingsError, match="no signing key"):
        SigningKeys(tmp_path / "keys", fake_clock)
    keys = SigningKeys(tmp_path / "keys", fake_clock, create=True)
    [file] = (tmp_path / "keys").glob("*")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    again = SigningKeys(tmp_path / "keys", fake_clock, create=True)
    assert kids(keys) == kids(again)


def test_processes_that_start_together_agree_on_the_first_key(tmp_path, fake_clock):
    for _ in range(3):
        create_signing_key(tmp_path, fake_clock.now(), "first")
    assert len(list(tmp_path.iterdir())) == 1


def test_a_public_key_set_holds_no_secret(tmp_path, fake_clock):
    keys = SigningKeys(tmp_path, fake_clock, create=True)
    for jwk in json.loads(keys.jwks())["keys"]:
        assert set(jwk) == {"kty", "crv", "x", "kid", "alg", "use"}


def test_a_key_is_published_15_minutes_before_its_first_use(tmp_path, fake_clock: FakeClock):
    keys = SigningKeys(tmp_path, fake_clock, create=True)
    [old] = kids(keys)
    new = create_signing_key(tmp_path, fake_clock.now())  # an operator in a hurry: "use it now"
    assert kids(keys) == [old], "the directory is read every 10 s"
    fake_clock.advance(10)
    assert set(kids(keys)) == {old, new}
    for _ in range(899):
        fake_clock.advance(1)
        assert kid_of(keys.sign(b"{}", TYP)) == old
    fake_clock.advance(2)
    assert kid_of(keys.sign(b"{}", TYP)) == new
    assert set(kids(keys)) == {old, new}


def test_a_planned_key_waits_for_its_time_also_over_a_restart(tmp_path, fake_clock: FakeClock):
    keys = SigningKeys(tmp_path, fake_clock, create=True)
    [old] = kids(keys)
    new = create_signing_key(tmp_path, fake_clock.now() + 3600)
    for start in (0, 1800):
        fake_clock.advance(start)
        keys = SigningKeys(tmp_path, fake_clock)
        assert kid_of(keys.sign(b"{}", TYP)) == old
        assert set(kids(keys)) == {old, new}
    fake_clock.advance(1800)
    assert kid_of(keys.sign(b"{}", TYP)) == new


def test_a_replaced_key_is_published_until_its_documents_are_too_old(tmp_path, fake_clock: FakeClock):
    keys = SigningKeys(tmp_path, fake_clock, create=True, retire_after_s=1000)
    [old] = kids(keys)
    new = create_signing_key(tmp_path, fake_clock.now() + 2000)
    for seconds in (10, 2989):
        fake_clock.advance(seconds)
        assert set(kids(keys)) == {old, new}
    fake_clock.advance(2)
    assert kids(keys) == [new]


def test_a_damaged_file_stops_the_start_but_not_a_running_process(tmp_path, fake_clock: FakeClock):
    keys = SigningKeys(tmp_path, fake_clock, create=True)
    before = kids(keys)
    (tmp_path / "half.json").write_text('{"kty":"OKP"')
    fake_clock.advance(20)
    assert kids(keys) == before
    for text in ('{"kty":"OKP"', "[]", '{"kid":"a","not_before":0,"x":"AA","d":"AA"}', '{"kid":"a"}'):
        (tmp_path / "half.json").write_text(text)
        with pytest.raises(SettingsError, match="half"):
            SigningKeys(tmp_path, fake_clock)
    for file in tmp_path.glob("*.json"):
        file.unlink()
    fake_clock.advance(20)
    assert kids(keys) == before, "an empty directory is a mistake, not a wish"


# --- another issuer's keys ---


class Source:
    """Answers fetches; counts them, may fail."""

    def __init__(self) -> None:
        self.answer: str | Exception = ""
        self.fetches = 0

    async def fetch(self) -> str:
        self.fetches += 1
        await asyncio.sleep(0)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def jwks(*names: str) -> str:
    keys = []
    for name in names:
        jwk = OKPKey.import_key(
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "x": encode_base64url(bytes(SigningKey(hashlib.sha256(name.encode()).digest()).verify_key)),
            }
        )
        keys.append(jwk.as_dict(private=False) | {"kid": name})
    return json.dumps({"keys": keys})


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def key_set(source, fake_clock) -> KeySet:
    return KeySet(AUTH_ISSUER, source.fetch, fake_clock, max_age_s=300, cool_down_s=10)


async def test_keys_are_fetched_once_and_again_after_their_age(source: Source, key_set, fake_clock):
    source.answer = jwks("a")
    assert await asyncio.gather(*(key_set.key("a") for _ in range(50))) == [await key_set.key("a")] * 50
    assert source.fetches == 1
    fake_clock.advance(299)
    await key_set.key("a")
    assert source.fetches == 1
    fake_clock.advance(1)
    await key_set.key("a")
    assert source.fetches == 2


async def test_an_unknown_kid_asks_once_per_cool_down_however_many_ask(source: Source, key_set, fake_clock):
    source.answer = jwks("a")
    await key_set.key("a")
    fake_clock.advance(10)
    source.answer = jwks("a", "b")
    answers = await asyncio.gather(*(key_set.key(kid) for kid in ["b"] * 20 + ["c"] * 20))
    assert all(answers[:20])
    assert answers[20:] == [None] * 20
    assert source.fetches == 2
    for _ in range(9):
        fake_clock.advance(1)
        assert await key_set.key("d") is None
    assert source.fetches == 2
    fake_clock.advance(1)
    await key_set.key("d")
    assert source.fetches == 3


async def test_a_removed_key_is_forgotten_at_the_next_fetch(source: Source, key_set, fake_clock):
    source.answer = jwks("a", "b")
    assert await key_set.key("a")
    source.answer = jwks("b")
    fake_clock.advance(300)
    assert await key_set.key("a") is None


@pytest.mark.parametrize(
    "bad",
    [
        OSError("down"),
        "",
        "[]",
        "{}",
        '{"keys":[]}',
        '{"keys":[{"kty":"RSA","kid":"a"}]}',
        '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AAAA"}]}',
        jwks("a").replace('"kid": "a"', '"kid": 7'),
        jwks("a", "a"),
        jwks(*(str(n) for n in range(65))),
        " " * 70_000 + jwks("a"),
        "[" * 60_000,
    ],
)
async def test_old_keys_are_kept_when_a_fetch_fails(source: Source, key_set, fake_clock, bad):
    source.answer = jwks("old")
    good = await key_set.key("old")
    source.answer = bad
    fake_clock.advance(400)
    assert await key_set.key("old") == good
    with pytest.raises(KeysUnavailable) as caught:
        await key_set.key("new")
    assert caught.value.retry_after_s == 10
    assert source.fetches == 2, "within the cool-down nobody asks again"
    source.answer = jwks("old", "new")
    fake_clock.advance(10)
    assert await key_set.key("new")


async def test_an_outage_from_the_start_is_never_called_a_bad_token(
    source: Source, key_set, fake_clock, issuer: Issuer
):
    source.answer = OSError("down")
    verifier = AccessTokenVerifier(key_set, AUDIENCE, fake_clock)
    for _ in range(3):
        with pytest.raises(KeysUnavailable):
            await verifier.verify(issuer.access_token(make_caller()))
    assert source.fetches == 1


async def test_a_caller_who_gives_up_in_mid_fetch_takes_nobodys_turn(source: Source, key_set, fake_clock):
    """Anybody can send a token with a made-up `kid` and a deadline that ends in the middle, once per cool-down."""
    for keys, kid in ((jwks("a"), "a"), (jwks("a", "next"), "next")):
        source.answer = keys
        fake_clock.advance(10)
        stranger = asyncio.create_task(key_set.key("made-up"))
        fetches = source.fetches
        while source.fetches == fetches:
            await asyncio.sleep(0)
        stranger.cancel()
        await asyncio.wait([stranger])
        assert stranger.cancelled()
        assert await key_set.key(kid), "the fetch that was begun serves everybody else"
        assert source.fetches == fetches + 1


async def test_a_fetch_that_hangs_is_given_up(fake_clock, monkeypatch):
    async def hang() -> str:
        await asyncio.sleep(3600)
        return ""

    key_set = KeySet(AUTH_ISSUER, hang, fake_clock)
    loop = asyncio.get_running_loop()
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + (6 if key_set._tried_at > 0 else 0))
    with pytest.raises(KeysUnavailable):
        await asyncio.wait_for(key_set.key("a"), 60)


async def test_a_whole_rotation_is_never_noticed_by_a_verifier(tmp_path, fake_clock: FakeClock):
    issuer = Issuer(tmp_path, fake_clock)
    verifier = AccessTokenVerifier(issuer.key_set(), AUDIENCE, fake_clock)
    seen = set()
    for minute in range(60):
        if minute == 5:
            create_signing_key(tmp_path, fake_clock.now())
        token = issuer.access_token(make_caller())
        await verifier.verify(token)
        seen.add(kid_of(token))
        fake_clock.advance(60)
    assert len(seen) == 2


def test_joserfc_agrees_that_our_documents_are_plain_jws(issuer: Issuer):
    compact = issuer.keys.sign(b"{}", TYP)
    key = OKPKey.import_key(json.loads(issuer.keys.jwks())["keys"][0])
    assert jws.deserialize_compact(compact, key, algorithms=["EdDSA"]).payload == b"{}"
