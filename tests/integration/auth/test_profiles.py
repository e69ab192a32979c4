"""The caller's own profile."""

import asyncio

import grpc
from koikoi.auth.v1 import auth_service_pb2 as pb

from services.kit.tokens import AccessTokenVerifier, KeySet
from tests.harness import AUDIENCE
from tests.integration.auth.device import ISSUER, Refused
from tests.integration.auth.world import World

PICTURE = "https://lh3.googleusercontent.com/a/x=s96-c"


async def test_name_and_avatar_change_one_by_one(world: World):
    device = world.device()
    before = (await device.sign_in(display_name="花子")).profile
    changed = await device.update_profile(display_name="Ｈａｎａ")
    assert (changed.display_name, changed.avatar) == ("Hana", before.avatar)
    changed = await device.update_profile(avatar=PICTURE)
    assert (changed.display_name, changed.avatar) == ("Hana", PICTURE)
    assert (await device.update_profile()) == changed == await device.profile()
    assert changed.create_time == before.create_time


async def test_tokens_issued_later_carry_the_new_values(world: World):
    device = world.device()
    await device.sign_in()
    await device.update_profile(display_name="新しい名", avatar="moon")
    await device.refresh()

    async def fetch() -> str:
        return (await device.stub.GetKeySet(pb.GetKeySetRequest())).jwks

    verifier = AccessTokenVerifier(KeySet(ISSUER, fetch, world.clock), AUDIENCE, world.clock)
    caller = await verifier.verify(device.session.access_token)
    assert (caller.display_name, caller.avatar) == ("新しい名", "moon")


async def test_bad_values_are_refused_and_change_nothing(world: World):
    device = world.device()
    await device.sign_in()
    before = await device.profile()
    async with Refused("DISPLAY_NAME_INVALID", grpc.StatusCode.INVALID_ARGUMENT, rule="length", limit="20"):
        await device.update_profile(display_name="x" * 21, avatar="moon")
    async with Refused("DISPLAY_NAME_INVALID", rule="length"):
        await device.update_profile(display_name="")
    async with Refused("AVATAR_INVALID", grpc.StatusCode.INVALID_ARGUMENT):
        await device.update_profile(display_name="x", avatar="https://evil.example/x.png")
    async with Refused("AVATAR_INVALID"):
        await device.update_profile(avatar="")
    async with Refused("FIELD_INVALID", field="request_id"):
        await device.update_profile(display_name="x", request_id="")
    assert await device.profile() == before


async def test_a_late_copy_of_a_change_does_not_undo_a_newer_one(world: World):
    device = world.device()
    await device.sign_in()
    await device.update_profile(display_name="one", request_id="1")
    await device.update_profile(display_name="two", request_id="2")
    assert (await device.update_profile(display_name="one", request_id="1")).display_name == "two"
    async with Refused("REQUEST_ID_REUSED", grpc.StatusCode.INVALID_ARGUMENT):
        await device.update_profile(display_name="three", request_id="1")
    async with Refused("REQUEST_ID_REUSED"):
        await device.sign_out(request_id="1")
    await device.refresh()


async def test_one_change_sent_ten_times_at_once_is_made_once(world: World):
    device = world.device()
    await device.sign_in()
    answers = await asyncio.gather(*(device.update_profile(display_name="x", request_id="1") for _ in range(10)))
    assert {answer.display_name for answer in answers} == {"x"}


async def test_changes_are_limited_per_account(world: World):
    async with world.running(device_per_minute="2"):
        device = world.device(process=1)
        await device.sign_in()
        for _ in range(2):
            await device.update_profile(display_name="x")
        async with Refused("RATE_LIMITED", grpc.StatusCode.RESOURCE_EXHAUSTED):
            await device.update_profile(display_name="y")
