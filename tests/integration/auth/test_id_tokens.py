"""Every way an ID token can be wrong, from a provider that makes it so; and every way the provider can fail."""

import asyncio
import json
from typing import Any

import grpc
import pytest

from tests.harness import FakeClock
from tests.integration.auth.device import Refused, base64url
from tests.integration.auth.world import World
from tools.oidc_provider import Faults

NOW = FakeClock().now()


WRONG_CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"iss": "https://evil.example"}, "iss"),
    ({"iss": "accounts.google.com"}, "iss"),
    ({"iss": None}, "iss"),
    ({"aud": "another-client"}, "aud"),
    ({"aud": ["koikoi-development", "another-client"]}, "aud"),
    ({"aud": None}, "aud"),
    ({"azp": "another-client"}, "azp"),
    ({"exp": NOW - 31}, "exp"),
    ({"exp": "9999999999"}, "exp"),
    ({"exp": None}, "exp"),
    ({"iat": NOW + 600}, "iat"),
    ({"iat": None}, "iat"),
    ({"nbf": NOW + 600}, "nbf"),
    ({"nonce": "another-nonce"}, "nonce"),
    ({"nonce": None}, "nonce"),
    ({"sub": None}, "sub"),
    ({"sub": ""}, "sub"),
    ({"sub": 5}, "sub"),
]

WRONG_SIGNATURES: list[tuple[Faults, str]] = [
    (Faults(signing="none"), "form"),
    (Faults(signing="hmac"), "alg"),
    (Faults(signing="RS512"), "alg"),
    (Faults(signing="PS256"), "alg"),
    (Faults(signing="hmac", header={"alg": "RS256"}), "signature"),
    (Faults(signing="RS512", header={"alg": "RS256"}), "signature"),
    (Faults(signing="foreign_key"), "signature"),
    (Faults(signing="unknown_key"), "kid"),
    (Faults(signing="weak_key"), "kid"),
    (Faults(signing="damaged"), "signature"),
    (Faults(header={"alg": None}), "alg"),
    (Faults(header={"alg": "none"}), "alg"),
    (Faults(header={"alg": "rs256"}), "alg"),
    (Faults(header={"alg": "EdDSA"}), "alg"),
    (Faults(header={"kid": None}), "kid"),
    (Faults(header={"kid": ""}), "kid"),
    (Faults(header={"kid": 7}), "kid"),
    (Faults(header={"kid": "k" * 257}), "kid"),
    (Faults(header={"typ": "at+jwt"}), "typ"),
    (Faults(header={"jku": "https://evil.example/jwks"}), "header"),
    (Faults(header={"jwk": {"kty": "RSA"}}), "header"),
    (Faults(header={"x5u": "https://evil.example/cert"}), "header"),
    (Faults(header={"x5c": ["AA=="]}), "header"),
    (Faults(header={"crit": ["exp"]}), "header"),
    (Faults(header={"b64": False, "crit": ["b64"]}), "header"),
    (Faults(header={"zip": "DEF"}), "header"),
]


async def test_a_token_with_a_wrong_claim_is_refused(world: World):
    device = world.device()
    begun = await device.begin()
    for claims, claim in WRONG_CLAIMS:
        world.provider.faults = Faults(claims=claims)
        world.clock.advance(4)  # keeps within the limits per device
        async with Refused("ID_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED, claim=claim):
            await device.stub.SignIn(device.sign_in_request(begun))
    world.provider.faults = Faults()
    assert (await device.stub.SignIn(device.sign_in_request(begun))).is_new_account, "the challenge is still good"


async def test_a_token_not_signed_by_the_provider_is_refused(world: World):
    device = world.device()
    await world.device("before@example.org").sign_in()  # the keys are known
    world.clock.advance(20)
    begun = await device.begin()
    for faults, part in WRONG_SIGNATURES:
        world.provider.faults = faults
        world.clock.advance(4)
        async with Refused("ID_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED, part=part):
            await device.stub.SignIn(device.sign_in_request(begun))
    world.provider.faults = Faults()
    assert (await device.stub.SignIn(device.sign_in_request(begun))).is_new_account


async def test_text_that_is_no_token_is_refused(world: World):
    device = world.device()
    begun = await device.begin()
    head, body, signature = world.provider.id_token(device.email, begun.nonce).split(".")
    kid = json.dumps({"alg": "RS256", "kid": world.provider.keys.current_kid}).encode()
    for text in (
        "x", "..", "a.b.c", f"{head}.{body}", f"{head}.{body}.", f".{body}.{signature}", f"{head}..{signature}",
        f"{head}.{body}.{signature}.", f"{head}.{body}.{signature}.x", f"{head}.{body}.{signature}\n",
        f" {head}.{body}.{signature}", f"{head}.{body}.{signature}=", f"{body}.{body}.{signature}",
        f"{base64url(b'[]')}.{body}.{signature}", f"{base64url(b'{')}.{body}.{signature}", "[" * 5000,
        f"{base64url(b'[' * 700)}.{body}.{signature}", f"{base64url(kid)}.{base64url(b'null')}.{signature}",
        f"{head}.{body}.{'A' * 7000}",
    ):  # fmt: skip
        async with Refused("ID_TOKEN_INVALID"):
            await device.stub.SignIn(device.sign_in_request(begun, text))
    assert (await device.stub.SignIn(device.sign_in_request(begun))).is_new_account


async def test_a_token_of_another_sign_in_is_refused(world: World):
    device, thief = world.device(), world.device()
    begun, others = await device.begin(), await thief.begin()
    stolen = world.provider.id_token(device.email, begun.nonce)
    async with Refused("ID_TOKEN_INVALID", claim="nonce"):
        await thief.stub.SignIn(thief.sign_in_request(others, stolen))
    async with Refused("ID_TOKEN_INVALID", claim="nonce"):
        await device.stub.SignIn(device.sign_in_request(await device.begin(), stolen))


@pytest.mark.parametrize(
    "faults",
    [
        *(Faults(key_set=fault) for fault in ("outage", "redirect", "oversize", "garbage", "empty", "weak")),
        *(Faults(key_set=fault) for fault in ("compressed", "hang_up")),
        Faults(key_set_delay_s=30),
    ],
    ids=repr,
)
async def test_a_failing_provider_is_unavailable_and_its_tokens_are_never_bad(world: World, faults: Faults):
    device = world.device()
    begun = await device.begin()
    world.provider.faults = faults
    async with Refused("IDENTITY_PROVIDER_UNAVAILABLE", grpc.StatusCode.UNAVAILABLE) as refusal:
        await device.stub.SignIn(device.sign_in_request(begun))
    assert refusal.retry_delay_s is not None
    assert refusal.retry_delay_s >= 1
    world.provider.faults = Faults()
    world.clock.advance(15)
    assert (await device.stub.SignIn(device.sign_in_request(begun))).is_new_account


async def test_a_weak_key_is_not_used_even_when_it_is_published(world: World):
    device = world.device()
    begun = await device.begin()
    world.provider.faults = Faults(key_set="weak", signing="weak_key")
    async with Refused("IDENTITY_PROVIDER_UNAVAILABLE"):
        await device.stub.SignIn(device.sign_in_request(begun))


async def test_known_keys_outlive_an_outage(world: World):
    await world.device("before@example.org").sign_in()
    world.clock.advance(10_000)  # older than its Cache-Control
    world.provider.faults = Faults(key_set="outage")
    assert (await world.device().sign_in()).is_new_account
    world.provider.faults = Faults(key_set="outage", signing="unknown_key")
    async with Refused("IDENTITY_PROVIDER_UNAVAILABLE"):
        await world.device("taro@example.org").sign_in()


async def test_rotated_keys_are_learned_at_once_and_for_all_in_one_fetch(world: World):
    await world.device("before@example.org").sign_in()
    world.clock.advance(20)
    world.provider.keys.rotate()
    fetches = world.provider.key_set_fetches
    world.provider.faults = Faults(key_set_delay_s=0.2)
    answers = await asyncio.gather(*(world.device(f"{number}@example.org").sign_in() for number in range(10)))
    assert len({answer.profile.account_id for answer in answers}) == 10
    assert world.provider.key_set_fetches == fetches + 1


async def test_made_up_key_ids_do_not_make_auth_ask_again_and_again(world: World):
    await world.device("before@example.org").sign_in()
    world.clock.advance(20)
    device = world.device()
    begun = await device.begin()
    fetches = world.provider.key_set_fetches
    for number in range(10):
        world.provider.faults = Faults(header={"kid": f"made-up-{number}"})
        async with Refused("ID_TOKEN_INVALID", part="kid"):
            await device.stub.SignIn(device.sign_in_request(begun))
    assert world.provider.key_set_fetches == fetches + 1


async def test_a_withdrawn_key_is_given_up_when_the_key_set_is_old(world: World):
    device = world.device()
    begun = await device.begin()
    old = world.provider.id_token(device.email, begun.nonce)
    world.provider.keys.rotate(forget_old=True)
    await world.device("before@example.org").sign_in()
    async with Refused("ID_TOKEN_INVALID", part="kid"):
        await device.stub.SignIn(device.sign_in_request(begun, old))
