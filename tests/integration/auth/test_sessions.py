"""Refreshing, stealing, losing and ending sessions."""

import asyncio
import secrets
from hashlib import sha256
from typing import Any

import grpc
from asyncpg import connect
from koikoi.auth.v1 import auth_service_pb2 as pb
from redis.asyncio import Redis

from services.auth.store.postgres import PostgresAccounts
from services.kit.postgres import open_pool
from tests.integration.auth.device import Device, Refused
from tests.integration.auth.world import World


async def test_a_refresh_rotates_both_tokens(world: World):
    device = world.device()
    first = (await device.sign_in()).session
    world.clock.advance(900)
    second = await device.refresh()
    assert second.refresh_token != first.refresh_token
    assert second.access_token != first.access_token
    assert second.device_id == first.device_id
    assert second.access_expire_time.ToSeconds() == int(world.clock.now()) + 900
    assert second.refresh_expire_time.ToSeconds() == int(world.clock.now()) + 30 * 86_400
    world.clock.advance(600)
    await device.profile()
    for _ in range(5):
        world.clock.advance(600)
        await device.refresh()
    await device.profile()


async def test_an_access_token_ends_after_fifteen_minutes(world: World):
    device = world.device()
    await device.sign_in()
    world.clock.advance(900 + 10)
    async with Refused("ACCESS_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED):
        await device.profile()


async def test_a_session_ends_when_it_is_not_used_for_a_month(world: World):
    device = world.device()
    await device.sign_in()
    world.clock.advance(30 * 86_400 - 1)
    await device.refresh()
    world.clock.advance(30 * 86_400)
    async with Refused("REFRESH_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED):
        await device.refresh()


async def test_a_stolen_refresh_token_is_worth_nothing_without_the_device_key(world: World):
    device, thief = world.device(), world.device()
    await device.sign_in()
    token = device.session.refresh_token
    hashed = sha256(token.encode()).digest()
    account = device.account_id.encode()
    for signature in (
        bytes(64),
        secrets.token_bytes(64),
        thief.sign(b"refresh", account, thief.public_key, hashed),
        thief.sign(b"refresh", account, device.public_key, hashed),
        device.sign(b"sign-in", account, device.public_key, hashed),
        device.sign(b"refresh", b"", device.public_key, hashed),
        device.sign(b"refresh", account, device.public_key, bytes(32)),
    ):
        async with Refused("SIGNATURE_INVALID", grpc.StatusCode.UNAUTHENTICATED):
            await device.stub.RefreshSession(pb.RefreshSessionRequest(refresh_token=token, device_signature=signature))
    await device.refresh()


async def test_a_lost_reply_may_be_repeated_for_thirty_seconds(world: World):
    device = world.device()
    old = (await device.sign_in()).session.refresh_token
    lost = await device.refresh()
    world.clock.advance(30)
    again = await device.refresh(old)
    assert again.refresh_token == lost.refresh_token
    assert again.refresh_expire_time == lost.refresh_expire_time
    await device.refresh()


async def test_an_old_token_after_the_grace_ends_the_family(world: World):
    device = world.device()
    old = (await device.sign_in()).session.refresh_token
    await device.refresh()
    world.clock.advance(30.01)
    async with Refused("REFRESH_TOKEN_REUSED", grpc.StatusCode.UNAUTHENTICATED):
        await device.stub.RefreshSession(device.refresh_request(old))
    async with Refused("REFRESH_TOKEN_INVALID"):
        await device.refresh()
    assert not (await device.sign_in()).is_new_account


async def test_an_old_token_without_the_signature_ends_the_family_at_once(world: World):
    device = world.device()
    old = (await device.sign_in()).session.refresh_token
    await device.refresh()
    async with Refused("REFRESH_TOKEN_REUSED"):
        await device.stub.RefreshSession(pb.RefreshSessionRequest(refresh_token=old, device_signature=bytes(64)))
    async with Refused("REFRESH_TOKEN_INVALID"):
        await device.refresh()


async def test_a_token_two_generations_old_ends_the_family_within_the_grace(world: World):
    device = world.device()
    oldest = (await device.sign_in()).session.refresh_token
    await device.refresh()
    await device.refresh()
    async with Refused("REFRESH_TOKEN_REUSED"):
        await device.stub.RefreshSession(device.refresh_request(oldest))
    async with Refused("REFRESH_TOKEN_INVALID"):
        await device.refresh()


async def test_reuse_ends_one_session_and_leaves_the_others(world: World):
    device, other = world.device(), world.device()
    old = (await device.sign_in()).session.refresh_token
    await other.sign_in()
    await device.refresh()
    world.clock.advance(31)
    async with Refused("REFRESH_TOKEN_REUSED"):
        await device.stub.RefreshSession(device.refresh_request(old))
    await other.refresh()


async def test_forged_tokens_end_nothing(world: World):
    device, other = world.device(), world.device()
    await device.sign_in()
    await other.sign_in()
    await device.refresh()
    token = device.session.refresh_token
    forged = [
        "", "x", "kkr_" + "A" * 70, token[:-2], token + "A", token.upper(), "A" * 50_000,
        token[:40] + ("A" if token[40] != "A" else "B") + token[41:],
        token[:30] + other.session.refresh_token[30:],
        other.session.refresh_token[:30] + token[30:],
        token[:-1] + ("é"),
    ]  # fmt: skip
    for text in forged:
        async with Refused("REFRESH_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED):
            await device.stub.RefreshSession(device.refresh_request(text))
    for size in (0, 63, 65):
        async with Refused("FIELD_INVALID", field="device_signature"):
            await device.stub.RefreshSession(
                pb.RefreshSessionRequest(refresh_token=token, device_signature=bytes(size))
            )
    await device.refresh()
    await other.refresh()


async def test_twenty_refreshes_at_once_rotate_once_and_agree(world: World):
    async with world.running():
        device = world.device()
        await device.sign_in()
        first = device.session.refresh_token
        request = device.refresh_request()
        stubs: list[Any] = list(world.stubs)
        answers = await asyncio.gather(*(stubs[number % 2].RefreshSession(request) for number in range(20)))
        tokens = {answer.session.refresh_token for answer in answers}
        assert len(tokens) == 1
        assert first not in tokens
        row = await _session_row(world, device)
        assert row["generation"] == 1
        device.session = answers[7].session
        world.clock.advance(60)  # the next window of the limits
        await device.refresh()


async def test_a_refresh_and_a_theft_at_once_never_leave_two_live_tokens(world: World):
    """A signed refresh and unsigned uses of the same token race; whatever wins, one token at most is alive."""
    device = world.device()
    await device.sign_in()
    for _ in range(5):
        good = device.refresh_request()
        stolen = pb.RefreshSessionRequest(refresh_token=good.refresh_token, device_signature=bytes(64))
        answers = await asyncio.gather(
            *(device.stub.RefreshSession(request) for request in (stolen, good, stolen)), return_exceptions=True
        )
        won = [answer for answer in answers if isinstance(answer, pb.RefreshSessionResponse)]
        row = await _session_row(world, device)
        if row["end_time"] is not None:
            assert row["end_reason"] == "reused"
            await device.sign_in()
            continue
        assert len(won) == 1
        device.session = won[0].session


async def test_nothing_in_the_stores_opens_a_session(world: World):
    device = world.device("secret-person@example.org")
    await device.sign_in()
    await device.refresh()
    connection = await connect(world.environ["KOIKOI_AUTH_DATABASE_URL"])
    rows = await connection.fetch("SELECT sessions::text FROM auth.sessions")
    await connection.close()
    stored = " ".join(row[0] for row in rows)
    assert sha256(device.session.refresh_token.encode()).hexdigest() in stored
    assert device.session.refresh_token not in stored
    assert device.session.access_token not in stored
    async with Redis.from_url(world.environ["KOIKOI_AUTH_REDIS_URL"]) as redis:
        keys = b" ".join([key async for key in redis.scan_iter()])
    assert device.session.refresh_token.encode() not in keys


async def test_the_providers_subject_stays_in_its_table(world: World):
    device = world.device()
    answer = await device.sign_in()
    await device.refresh()
    await device.sign_out()
    connection = await connect(world.environ["KOIKOI_AUTH_DATABASE_URL"])
    subject = await connection.fetchval("SELECT subject FROM auth.identities")
    for table in ("accounts", "devices", "sessions", "requests"):
        rows = await connection.fetch(f"SELECT t::text AS line FROM auth.{table} t")
        assert all(subject not in row["line"] for row in rows)
    await connection.close()
    assert subject not in str(answer)
    assert device.email not in str(answer)


async def test_signing_out_ends_the_devices_session_and_tells_the_others(world: World):
    device, other = world.device(), world.device()
    await device.sign_in()
    await other.sign_in()
    assert await device.sign_out(request_id="bye") == 1
    assert await device.sign_out(request_id="bye") == 0
    assert await device.sign_out() == 0
    await device.profile()  # the access token lives on; others learn of the end from the stream
    async with Refused("ACCESS_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED):
        await device.update_profile(display_name="ghost")
    async with Refused("REFRESH_TOKEN_INVALID"):
        await device.refresh()
    await other.refresh()
    [entry] = await _announced(world, 1)
    assert entry[b"device_id"].decode() == device.session.device_id
    assert entry[b"account_id"].decode() == device.account_id
    assert int(entry[b"time"]) == int(world.clock.now() * 1000)


async def test_a_device_gets_a_new_id_after_signing_out(world: World):
    """Readers of the stream may refuse a device id for ever: it never comes back."""
    device = world.device()
    before = (await device.sign_in()).session.device_id
    await device.sign_out()
    after = (await device.sign_in()).session.device_id
    assert after != before
    assert await device.sign_out() == 1


async def test_signing_out_everywhere_ends_all_sessions_of_the_account_only(world: World):
    devices = [world.device() for _ in range(3)]
    stranger = world.device("taro@example.org")
    for device in (*devices, stranger):
        await device.sign_in()
    assert await devices[0].sign_out(all_devices=True) == 3
    for device in devices:
        async with Refused("REFRESH_TOKEN_INVALID"):
            await device.refresh()
    await stranger.refresh()
    entries = await _announced(world, 3)
    assert {entry[b"device_id"].decode() for entry in entries} == {device.session.device_id for device in devices}


async def test_a_device_that_was_signed_out_cannot_sign_out_the_others(world: World):
    owner, lost = world.device(), world.device()
    await owner.sign_in()
    await lost.sign_in()
    assert await lost.sign_out() == 1
    async with Refused("ACCESS_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED):
        await lost.sign_out(all_devices=True)
    await owner.refresh()


async def test_a_sign_out_of_all_that_was_refused_is_done_when_it_comes_again(world: World):
    """A client signs in when it is told to, and sends the same request again: that must not be taken for done."""
    owner, thief = world.device(), world.device()
    await owner.sign_in()
    await thief.sign_in()
    assert await owner.sign_out() == 1
    for _ in range(2):
        async with Refused("ACCESS_TOKEN_INVALID"):
            await owner.sign_out(all_devices=True, request_id="all")
    await owner.sign_in()
    assert await owner.sign_out(all_devices=True, request_id="all") == 2
    async with Refused("REFRESH_TOKEN_INVALID"):
        await thief.refresh()


async def test_a_thief_cannot_use_up_the_owners_sign_outs(world: World):
    async with world.running(device_per_minute="3"):
        owner, lost = world.device(process=1), world.device(process=1)
        await owner.sign_in()
        await lost.sign_in()
        for _ in range(3):
            await lost.update_profile(display_name="x")
        for _ in range(3):
            await lost.sign_out()
        async with Refused("RATE_LIMITED"):
            await lost.sign_out()
        assert await owner.sign_out(all_devices=True) == 1


async def test_a_late_copy_of_a_sign_out_does_not_end_a_newer_session(world: World):
    device = world.device()
    await device.sign_in()
    assert await device.sign_out(all_devices=True, request_id="bye") == 1
    await device.sign_in()
    assert await device.sign_out(all_devices=True, request_id="bye") == 0
    await device.refresh()
    async with Refused("REQUEST_ID_REUSED"):
        await device.sign_out(all_devices=False, request_id="bye")
    await device.refresh()


async def test_an_expired_session_is_not_counted_as_ended(world: World):
    device, other = world.device(), world.device()
    await device.sign_in()
    world.clock.advance(29 * 86_400)
    await other.sign_in()
    world.clock.advance(86_400)
    await other.refresh()
    assert await other.sign_out(all_devices=True) == 1


async def test_sign_outs_are_announced_even_when_the_stream_was_away(world: World):
    """The announcement is a row first; whichever process sees it next tells it."""
    device = world.device()
    await device.sign_in()
    connection = await connect(world.environ["KOIKOI_AUTH_DATABASE_URL"])
    await connection.execute("UPDATE auth.sessions SET end_time = 1, end_reason = 'signed_out'")
    await connection.close()
    [entry] = await _announced(world, 1)
    assert entry[b"device_id"].decode() == device.session.device_id


async def test_old_rows_are_deleted_and_keys_stay_bound(world: World):
    device = world.device()
    await device.sign_in()
    await device.sign_out()
    await _announced(world, 1)
    await device.sign_in()
    pool = await open_pool(world.environ["KOIKOI_AUTH_DATABASE_URL"], schema="auth")
    accounts = PostgresAccounts(pool)
    await accounts.purge(world.clock.now() + 7 * 86_400 - 1)
    assert await pool.fetchval("SELECT count(*) FROM sessions") == 2
    await accounts.purge(world.clock.now() + 7 * 86_400 + 1)
    assert await pool.fetchval("SELECT count(*) FROM sessions") == 1
    assert await pool.fetchval("SELECT count(*) FROM requests") == 0
    await accounts.purge(world.clock.now() + 100 * 86_400)
    assert await pool.fetchval("SELECT count(*) FROM sessions") == 0
    await pool.close()
    device.email = "thief@example.org"
    async with Refused("DEVICE_KEY_TAKEN"):
        await device.sign_in()


async def test_calls_that_need_a_token_are_refused_without_one(world: World):
    stub: Any = world.stub
    for call, request in (
        (stub.SignOut, pb.SignOutRequest(request_id="x")),
        (stub.GetProfile, pb.GetProfileRequest()),
        (stub.UpdateProfile, pb.UpdateProfileRequest(request_id="x")),
    ):
        for metadata in ((), (("authorization", "Bearer x"),), (("authorization", "Basic eDp5"),)):
            async with Refused("ACCESS_TOKEN_INVALID", grpc.StatusCode.UNAUTHENTICATED):
                await call(request, metadata=metadata)


async def test_a_token_of_an_account_that_is_gone_is_refused(world: World):
    device = world.device()
    await device.sign_in()
    connection = await connect(world.environ["KOIKOI_AUTH_DATABASE_URL"])
    await connection.execute("DELETE FROM auth.sessions; DELETE FROM auth.devices;")
    await connection.execute("BEGIN; DELETE FROM auth.identities; DELETE FROM auth.accounts; COMMIT;")
    await connection.close()
    async with Refused("ACCESS_TOKEN_INVALID"):
        await device.profile()
    async with Refused("ACCESS_TOKEN_INVALID"):
        await device.update_profile(display_name="x")
    assert await device.sign_out() == 0


async def _session_row(world: World, device: Device) -> Any:
    connection = await connect(world.environ["KOIKOI_AUTH_DATABASE_URL"])
    query = "SELECT * FROM auth.sessions WHERE device_key = $1 ORDER BY create_time DESC, end_time DESC NULLS FIRST"
    row = await connection.fetchrow(query, device.public_key)
    await connection.close()
    return row


async def _announced(world: World, count: int) -> list[dict[bytes, bytes]]:
    """Wait for that many entries of the stream."""
    async with Redis.from_url(world.environ["KOIKOI_AUTH_REDIS_URL"]) as redis:
        async with asyncio.timeout(10):
            while True:
                entries = await redis.xrange("revocations")
                if len(entries) >= count:
                    assert len(entries) == count
                    return [fields for _, fields in entries]
                await asyncio.sleep(0.05)
