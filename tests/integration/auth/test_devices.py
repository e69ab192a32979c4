"""Listing, naming and revoking the devices of an account."""

import asyncio
import os
import secrets
from typing import Any
from uuid import uuid4

import grpc
from asyncpg import connect
from koikoi.auth.v1 import auth_service_pb2 as pb
from redis.asyncio import Redis

from tests.integration.auth.device import Device, Refused
from tests.integration.auth.world import World

ROUNDS = int(os.environ.get("KOIKOI_RACES", "20"))


async def listed(device: Device) -> list[pb.Device]:
    answer = await device.stub.ListDevices(pb.ListDevicesRequest(), metadata=device.bearer)
    return list(answer.devices)


async def rename(device: Device, device_id: str, name: str, request_id: str = "") -> pb.Device:
    request = pb.RenameDeviceRequest(
        device_id=device_id, device_name=name, request_id=request_id or secrets.token_hex(8)
    )
    return (await device.stub.RenameDevice(request, metadata=device.bearer)).device


async def revoke(device: Device, device_id: str, request_id: str = "") -> bool:
    request = pb.RevokeDeviceRequest(device_id=device_id, request_id=request_id or secrets.token_hex(8))
    return bool((await device.stub.RevokeDevice(request, metadata=device.bearer)).has_ended_session)


async def test_the_list_shows_the_accounts_devices_the_callers_first(world: World):
    phone, laptop, stranger = world.device(), world.device(), world.device("taro@example.org")
    await phone.sign_in(device_name="電話")
    first = int(world.clock.now())
    world.clock.advance(60)
    await laptop.sign_in(device_name="laptop")
    await stranger.sign_in(device_name="not yours")
    world.clock.advance(60)
    seen = await listed(phone)
    assert [(one.device_name, one.is_current, one.is_signed_in) for one in seen] == [
        ("電話", True, True),
        ("laptop", False, True),
    ]
    assert seen[0].device_id == phone.session.device_id
    assert (seen[0].create_time.ToSeconds(), seen[0].last_use_time.ToSeconds()) == (first, first)
    await phone.refresh()
    await laptop.sign_out()
    seen = await listed(phone)
    assert seen[0].last_use_time.ToSeconds() == int(world.clock.now())
    assert [one.is_signed_in for one in seen] == [True, False]
    world.clock.advance(30 * 86_400 - 30)
    await phone.refresh()
    assert [one.is_signed_in for one in await listed(phone)] == [True, False]


async def test_a_device_is_listed_once_however_often_it_signed_in(world: World):
    device = world.device()
    for _ in range(3):
        await device.sign_in()
        world.clock.advance(20)
    await device.sign_out()
    await device.sign_in()
    [seen] = await listed(device)
    assert seen.device_id == device.session.device_id


async def test_at_most_a_hundred_devices_are_listed_the_last_used_ones(world: World):
    device = world.device()
    await device.sign_in()
    connection = await connect(world.environ["KOIKOI_AUTH_DATABASE_URL"])
    await connection.execute(
        """
        INSERT INTO auth.devices SELECT sha256(n::text::bytea), account_id, 1, 'old ' || n
            FROM auth.accounts, generate_series(1, 150) AS n;
        INSERT INTO auth.sessions SELECT (jsonb_populate_record(sessions, jsonb_build_object(
            'session_id', gen_random_uuid(), 'device_id', gen_random_uuid(), 'request_id', n,
            'device_key', sha256(n::text::bytea), 'challenge_hash', sha256(n::text::bytea), 'rotate_time', n))).*
            FROM auth.sessions, generate_series(1, 150) AS n;
        """
    )
    await connection.close()
    seen = await listed(device)
    assert len(seen) == 100
    assert seen[0].is_current
    assert [one.device_name for one in seen[1:3]] == ["old 150", "old 149"]


async def test_a_name_is_kept_when_the_device_signs_in_again(world: World):
    device, other = world.device(), world.device()
    await device.sign_in(device_name="its own name")
    await other.sign_in()
    renamed = await rename(other, device.session.device_id, "居間のテレビ")
    assert (renamed.device_name, renamed.is_current, renamed.is_signed_in) == ("居間のテレビ", False, True)
    await device.sign_out()
    await device.sign_in(device_name="its own name")
    assert (await listed(device))[0].device_name == "居間のテレビ"
    assert (await rename(device, device.session.device_id, "")).device_name == "its own name"
    assert (await rename(device, device.session.device_id, "ﾃﾚﾋﾞ")).device_name == "テレビ", "NFKC"
    for name in ("\u202ex", "x" * 41, " x", "x" * 500):
        async with Refused("FIELD_INVALID", field="device_name"):
            await rename(device, device.session.device_id, name)


async def test_only_devices_of_the_account_are_named_and_revoked(world: World):
    device, stranger = world.device(), world.device("taro@example.org")
    await device.sign_in()
    await stranger.sign_in()
    for device_id in (stranger.session.device_id, str(uuid4())):
        async with Refused("DEVICE_UNKNOWN", grpc.StatusCode.NOT_FOUND, field="device_id"):
            await rename(device, device_id, "x")
        async with Refused("DEVICE_UNKNOWN", grpc.StatusCode.NOT_FOUND):
            await revoke(device, device_id)
    for device_id in ("", "x", device.session.device_id.upper(), device.session.device_id.replace("-", "")):
        async with Refused("FIELD_INVALID", field="device_id"):
            await revoke(device, device_id)
        async with Refused("FIELD_INVALID", field="device_id"):
            await rename(device, device_id, "x")
    await stranger.refresh()


async def test_a_revoked_device_can_do_nothing_more_and_is_announced(world: World):
    owner, lost = world.device(), world.device()
    await owner.sign_in()
    await lost.sign_in()
    assert await revoke(owner, lost.session.device_id, "once")
    assert not await revoke(owner, lost.session.device_id, "once"), "a repeated call"
    assert not await revoke(owner, lost.session.device_id)
    async with Refused("REFRESH_TOKEN_INVALID"):
        await lost.refresh()
    for call in (
        listed(lost),
        rename(lost, owner.session.device_id, "x"),
        revoke(lost, owner.session.device_id),
        revoke(lost, lost.session.device_id),
        lost.update_profile(display_name="x"),
        lost.sign_out(all_devices=True),
    ):
        async with Refused("ACCESS_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED):
            await call
    await owner.refresh()
    [entry] = await _announced(world, 1)
    assert entry[b"device_id"].decode() == lost.session.device_id
    assert (await lost.sign_in()).session.device_id != entry[b"device_id"].decode()


async def test_a_device_may_revoke_itself(world: World):
    device = world.device()
    await device.sign_in()
    assert await revoke(device, device.session.device_id, "self")
    assert not await revoke(device, device.session.device_id, "self")
    async with Refused("REFRESH_TOKEN_INVALID"):
        await device.refresh()


async def test_a_request_id_names_one_change(world: World):
    device, other = world.device(), world.device()
    await device.sign_in()
    await other.sign_in()
    await rename(device, other.session.device_id, "a", "r")
    assert (await rename(device, other.session.device_id, "a", "r")).device_name == "a"
    await rename(device, other.session.device_id, "b", "r2")
    assert (await rename(device, other.session.device_id, "a", "r")).device_name == "b", "a late copy changes nothing"
    async with Refused("REQUEST_ID_REUSED"):
        await rename(device, other.session.device_id, "c", "r")
    async with Refused("REQUEST_ID_REUSED"):
        await revoke(device, other.session.device_id, "r")
    await other.refresh()


async def test_of_two_devices_that_revoke_each_other_at_once_one_stays(world: World):
    async with world.running(device_per_minute="1000", account_per_minute="1000", address_per_minute="10000"):
        for _ in range(ROUNDS):
            one, two = world.device(process=1), world.device(process=1)
            await one.sign_in()
            await two.sign_in()
            answers = await asyncio.gather(
                revoke(one, two.session.device_id), revoke(two, one.session.device_id), return_exceptions=True
            )
            assert sum(answer is True for answer in answers) == 1
            lives = [await _lives(device) for device in (one, two)]
            assert lives == [answer is True for answer in answers]
            world.clock.advance(10)


async def test_a_revocation_and_a_new_sign_in_of_the_device_at_once_leave_no_live_revoked_id(world: World):
    """Whichever is first: a device id that was announced as revoked has no live session."""
    async with world.running(device_per_minute="1000", account_per_minute="1000", address_per_minute="10000"):
        owner = world.device(process=1)
        await owner.sign_in()
        for _ in range(ROUNDS):
            await owner.refresh()
            lost = world.device(process=1)
            await lost.sign_in()
            old_id = lost.session.device_id
            request = lost.sign_in_request(await lost.begin())
            revoked, again = await asyncio.gather(revoke(owner, old_id), lost.stub.SignIn(request))
            assert revoked, "the device was signed in all the time"
            if again.session.device_id == old_id:  # it signed in first, and was revoked then
                lost.session = again.session
                assert not await _lives(lost)
            world.clock.advance(10)


async def test_a_revocation_and_refreshes_at_once_leave_no_live_token(world: World):
    async with world.running(device_per_minute="1000", account_per_minute="1000", address_per_minute="10000"):
        owner = world.device(process=1)
        await owner.sign_in()
        for _ in range(ROUNDS):
            await owner.refresh()
            lost = world.device(process=1)
            await lost.sign_in()
            request = lost.refresh_request()
            answers: list[Any] = await asyncio.gather(
                *(lost.stub.RefreshSession(request) for _ in range(5)),
                revoke(owner, lost.session.device_id),
                return_exceptions=True,
            )
            assert answers[-1] is True
            for answer in answers[:-1]:
                if isinstance(answer, pb.RefreshSessionResponse):
                    lost.session = answer.session
            assert not await _lives(lost)
            world.clock.advance(10)


async def _lives(device: Device) -> bool:
    try:
        await device.refresh()
    except grpc.aio.AioRpcError:
        return False
    return True


async def _announced(world: World, count: int) -> list[dict[bytes, bytes]]:
    async with Redis.from_url(world.environ["KOIKOI_AUTH_REDIS_URL"]) as redis, asyncio.timeout(10):
        while len(entries := await redis.xrange("revocations")) < count:
            await asyncio.sleep(0.05)
    assert len(entries) == count
    return [fields for _, fields in entries]
