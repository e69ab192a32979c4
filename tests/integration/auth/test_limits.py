"""Limits of every call: per address (IPv6 by /64), per device, per account - and none that a stranger can use up."""

import asyncio
import secrets
from typing import Any

import grpc
import pytest
from koikoi.auth.v1 import auth_service_pb2 as pb

from services.auth.store.redis import Rates, RedisLimits
from services.kit.redis import open_client
from tests.integration.auth.device import Device, Refused
from tests.integration.auth.world import World

ANYBODY = {
    "BeginSignIn": pb.BeginSignInRequest(device_key=bytes(32)),
    "SignIn": pb.SignInRequest(
        device_key=bytes(32), challenge=bytes(32), id_token="x", device_signature=bytes(64), request_id="x"
    ),
    "BeginRedirectSignIn": pb.BeginRedirectSignInRequest(device_key=bytes(32)),
    "StartRedirectSignIn": pb.StartRedirectSignInRequest(ticket="x"),
    "FinishRedirectSignIn": pb.FinishRedirectSignInRequest(state="x"),
    "CompleteRedirectSignIn": pb.CompleteRedirectSignInRequest(
        code="x", code_verifier="v" * 43, device_signature=bytes(64), request_id="x"
    ),
    "GetKeySet": pb.GetKeySetRequest(),
}


def from_address(address: str) -> list[tuple[str, str]]:
    return [("x-forwarded-for", address)]


async def reasons(device: Device, method: str, request: Any, addresses: list[str], *more: tuple[str, str]) -> list[str]:
    """Call once from each address; gives OK or the reason of each."""
    found = []
    for address in addresses:
        try:
            await getattr(device.stub, method)(request, metadata=[*from_address(address), *more])
            found.append("OK")
        except grpc.aio.AioRpcError as error:
            limited = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            found.append("LIMITED" if limited else str(error.code().name))
    return found


@pytest.mark.parametrize("method", ANYBODY)
async def test_what_anybody_may_call_is_limited_per_address(world: World, method: str):
    async with world.running(address_per_minute="3", public_url="http://127.0.0.1:1"):
        device, request = world.device(process=1), ANYBODY[method]
        # Each key alone would be limited, too: so every call shows another one.
        found = []
        for number in range(5):
            if hasattr(request, "device_key"):
                request.device_key = secrets.token_bytes(32)
            address = f"2001:db8:0:1::{number:x}" if number < 4 else "2001:db8:0:2::1"
            found += await reasons(device, method, request, [address])
        assert [one == "LIMITED" for one in found] == [False, False, False, True, False], found
        world.clock.advance(61)
        assert await reasons(device, method, request, ["2001:db8:0:1::9"]) != ["LIMITED"]


async def test_refreshing_is_limited_per_address_session_and_account(world: World):
    async with world.running(device_per_minute="3", account_per_minute="5"):
        one, two = world.device(process=1), world.device(process=1)
        await one.sign_in()
        await two.sign_in()
        for _ in range(3):
            await one.refresh()
        async with Refused("RATE_LIMITED"):
            await one.refresh()
        for _ in range(2):
            await two.refresh()
        async with Refused("RATE_LIMITED") as refusal:
            await two.refresh()
        assert refusal.retry_delay_s is not None
        world.clock.advance(61)
        await two.refresh()


async def test_a_thief_of_a_token_uses_up_no_refreshes_of_the_account(world: World):
    """Unsigned refreshes count for address and session, never for the account."""
    async with world.running(account_per_minute="3", device_per_minute="20"):
        device, other = world.device(process=1), world.device(process=1)
        await device.sign_in()
        await other.sign_in()
        stolen = pb.RefreshSessionRequest(refresh_token=device.session.refresh_token, device_signature=bytes(64))
        for _ in range(10):
            async with Refused("SIGNATURE_INVALID"):
                await device.stub.RefreshSession(stolen, metadata=from_address("203.0.113.9"))
        await other.refresh()
        await device.refresh()


async def test_signing_in_is_limited_per_account_whatever_the_device(world: World):
    async with world.running(account_per_minute="3"):
        for _ in range(3):
            await world.device(process=1).sign_in()
        async with Refused("RATE_LIMITED"):
            await world.device(process=1).sign_in()
        await world.device("taro@example.org", process=1).sign_in()


async def test_the_accounts_own_calls_are_limited_per_address_and_per_account(world: World):
    async with world.running(address_per_minute="4", account_per_minute="6", device_per_minute="6"):
        device = world.device(process=1)
        await device.sign_in()
        bearer = device.bearer[0]
        device_id = device.session.device_id
        same, many = ["203.0.113.1"] * 5, [f"203.0.113.{number}" for number in range(2, 9)]
        for method, make in (
            ("GetProfile", pb.GetProfileRequest),
            ("UpdateProfile", lambda: pb.UpdateProfileRequest(display_name="x", request_id=secrets.token_hex(8))),
            ("RenameDevice", lambda: pb.RenameDeviceRequest(device_id=device_id, request_id=secrets.token_hex(8))),
        ):
            found = [(await reasons(device, method, make(), [address], bearer))[0] for address in same]
            assert found == ["OK"] * 4 + ["LIMITED"], method
            found = [(await reasons(device, method, make(), [address], bearer))[0] for address in many]
            assert found == ["OK"] * 2 + ["LIMITED"] * 5, method
            world.clock.advance(61)
        assert await reasons(device, "ListDevices", pb.ListDevicesRequest(), many, bearer) == ["OK"] * 6 + ["LIMITED"]


async def test_a_thief_of_one_device_cannot_keep_the_owner_from_revoking_it(world: World):
    async with world.running(device_per_minute="3"):
        owner, lost = world.device(process=1), world.device(process=1)
        await owner.sign_in()
        await lost.sign_in()
        request = pb.RevokeDeviceRequest(device_id="00000000-0000-4000-8000-000000000000", request_id="x")
        found = [(await reasons(lost, "RevokeDevice", request, ["203.0.113.1"], lost.bearer[0]))[0] for _ in range(4)]
        assert found == ["NOT_FOUND"] * 3 + ["LIMITED"]
        right = pb.RevokeDeviceRequest(device_id=lost.session.device_id, request_id="y")
        assert (await owner.stub.RevokeDevice(right, metadata=owner.bearer)).has_ended_session


async def test_signing_out_is_limited_per_address(world: World):
    async with world.running(address_per_minute="3"):
        device = world.device(process=1)
        await device.sign_in()
        request = pb.SignOutRequest(request_id="x")
        found = await reasons(device, "SignOut", request, ["203.0.113.1"] * 4 + ["203.0.113.2"], device.bearer[0])
        assert found == ["OK"] * 3 + ["LIMITED", "OK"]


async def test_public_keys_are_told_without_redis(world: World):
    """Every service needs them to check a token; what counts the calls must not be in the way."""
    client = open_client("redis://127.0.0.1:1")
    limits = RedisLimits(client, world.clock, Rates(1, 1, 1))
    async with asyncio.timeout(2):
        await limits.key_set("203.0.113.1")
    await client.aclose()
