"""What bounds streams and ends them: limits, age, sign-out, a process that goes away; and what they tell everybody."""

from __future__ import annotations

import asyncio
import json
import time

import grpc
import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as pb
from redis.asyncio import Redis
from structlog.testing import capture_logs

from tests.harness import make_caller
from tests.integration.lobby.watchers import (
    Tape,
    eventually,
    joined,
    opened,
    reason_of,
    refused,
    watching,
    watching_list,
)


def watch_list(process, metadata):
    return process.stub.WatchRooms(pb.WatchRoomsRequest(), metadata=metadata)


async def test_an_account_and_a_process_have_only_so_many_streams(start_lobby):
    async with start_lobby(most_streams="5", most_streams_per_account="3") as process:
        me = process.newcomer()
        tapes = [Tape(watch_list(process, me)) for _ in range(3)]
        for tape in tapes:
            await tape.until(lambda message: message.HasField("snapshot"))
        fourth = Tape(watch_list(process, me))
        reason, metadata, retry = reason_of(await fourth.end())
        assert (reason, metadata["limit"]) == ("TOO_MANY_STREAMS", "3")
        assert retry
        others = [Tape(watch_list(process, process.newcomer())) for _ in range(2)]
        for tape in others:
            await tape.until(lambda message: message.HasField("snapshot"))
        assert await refused(watch_list(process, process.newcomer())) == "TOO_MANY_STREAMS"
        await tapes.pop().stop()  # a client that is gone gives its place back
        await eventually(lambda: opens(process, me))
        for tape in (*tapes, *others):
            await tape.stop()


async def opens(process, metadata) -> bool:
    call = watch_list(process, metadata)
    try:
        return bool((await call.read()).HasField("snapshot"))
    except grpc.aio.AioRpcError:
        return False
    finally:
        call.cancel()


async def test_opening_streams_is_limited(process, fake_clock):
    me = process.newcomer()
    for _ in range(60):
        assert await opens(process, me)
    reason, _, retry = reason_of(await Tape(watch_list(process, me)).end())
    assert (reason, retry) == ("RATE_LIMITED", 60.0)


async def test_a_stream_is_over_after_its_time_and_the_room_goes_on(start_lobby):
    async with start_lobby(stream_life_s="0.5") as process:
        host = process.newcomer()
        code = (await opened(process, host)).room.code
        tape = Tape(process.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=host))
        error = await tape.end()
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        reason, _, retry = reason_of(error)
        assert reason == "STREAM_OVER"
        assert 0 < retry <= 2
        room = (await process.stub.GetRoom(pb.GetRoomRequest(code=code), metadata=process.newcomer())).room
        assert room.is_host_present  # it comes back in a moment


async def test_a_process_that_goes_away_sends_streams_elsewhere(start_lobby):
    async with start_lobby() as going, start_lobby() as staying:
        host = going.newcomer()
        code = (await opened(going, host)).room.code
        room, rooms = (
            Tape(going.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=host)),
            Tape(watch_list(going, going.newcomer())),
        )
        await room.view()
        await rooms.until(lambda message: message.HasField("snapshot"))
        await going.app.begin_drain()
        waits = set()
        for tape in (room, rooms):
            error = await tape.end()
            reason, _, retry = reason_of(error)
            assert (error.code(), reason) == (grpc.StatusCode.UNAVAILABLE, "DRAINING")
            waits.add(retry)
        assert len(waits) == 2  # they do not all come back in the same moment
        assert await refused(watch_list(going, going.newcomer())) == "DRAINING"
        seen = (await staying.stub.GetRoom(pb.GetRoomRequest(code=code), metadata=staying.newcomer())).room
        assert seen.is_host_present
        async with watching(staying, host, code) as tape:
            await tape.view()
            assert (await joined(staying, staying.newcomer(), code)).contract
            await tape.view(lambda view: view.contract)


async def test_the_streams_of_a_device_that_was_signed_out_end_within_five_seconds(start_lobby, redis_url, fake_clock):
    gone, kept = make_caller(), make_caller()
    async with start_lobby() as process, Redis.from_url(redis_url) as redis:
        code = (await opened(process, process.bearer(gone))).room.code
        room, rooms = (
            Tape(process.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=process.bearer(gone))),
            Tape(watch_list(process, process.bearer(gone))),
        )
        await room.view()
        await rooms.until(lambda message: message.HasField("snapshot"))
        async with watching_list(process, process.bearer(kept)) as other:
            fields = {"device_id": gone.device_id, "account_id": gone.account_id, "time": int(fake_clock.now() * 1000)}
            started = time.monotonic()
            await redis.xadd("revocations", fields, id=f"{int(fake_clock.now() * 1000)}-*")
            for tape in (room, rooms):
                error = await tape.end()
                assert (error.code(), reason_of(error)[0]) == (
                    grpc.StatusCode.UNAUTHENTICATED,
                    "ACCESS_TOKEN_INVALID",
                )
            assert time.monotonic() - started < 5
            await opened(process, process.newcomer())
            await other.until(lambda message: message.HasField("change"))


async def test_what_the_service_has_to_say_is_told_at_the_start_and_on_change(start_lobby, tmp_path):
    path = tmp_path / "bulletin.json"
    async with start_lobby(bulletin_path=str(path), bulletin_period_s="0.1", notice_ja="ようこそ") as process:
        host = process.newcomer()
        code = (await opened(process, host)).room.code
        async with watching(process, host, code) as room, watching_list(process, host) as rooms:
            for tape in (room, rooms):
                told = await tape.until(lambda message: message.HasField("bulletin"))
                assert told.bulletin == pb.Bulletin(notice_ja="ようこそ")
            path.write_text(json.dumps({"notice_en": "Back at 10:00", "is_closed": True, "retry_after_s": 90}))
            for tape in (room, rooms):
                told = await tape.until(lambda message: message.HasField("bulletin"))
                assert told.bulletin == pb.Bulletin(notice_en="Back at 10:00", is_closed=True)
            tape = Tape(watch_list(process, host))
            guest = process.newcomer()
            for call in (opened(process, guest), joined(process, guest, code)):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call
                reason, _, retry = reason_of(caught.value)
                assert (caught.value.code(), reason, retry) == (grpc.StatusCode.UNAVAILABLE, "MAINTENANCE", 90.0)
            with capture_logs() as lines:
                path.write_text('{"notice_en": 7}')
                async with asyncio.timeout(10):
                    while not any(line["event"] == "lobby.bulletin.unread" for line in lines):
                        await asyncio.sleep(0.05)
            assert await refused(opened(process, guest)) == "MAINTENANCE"  # nonsense changes nothing
            path.unlink()
            told = await room.until(lambda message: message.HasField("bulletin"))
            assert told.bulletin == pb.Bulletin(notice_ja="ようこそ")
            await joined(process, guest, code)
            await tape.stop()


async def test_a_client_that_is_too_old_is_told_what_to_do(start_lobby):
    async with start_lobby(min_client_version="1.4.2") as process:
        code = None
        for version, is_let_in in (
            (None, False),
            ("", False),
            ("nonsense", False),
            ("koikoi-web/1.4.1", False),
            ("1.4", False),
            ("koikoi-web/1.4.2", True),
            ("2", True),
            ("koikoi-sdk/1.10.0-beta", True),
        ):
            header = [("koikoi-client-version", version)] if version is not None else []
            call = opened(process, [*process.newcomer(), *header])
            if is_let_in:
                code = (await call).room.code
            else:
                assert await refused(call) == "CLIENT_TOO_OLD"
        assert await refused(joined(process, process.newcomer(), code)) == "CLIENT_TOO_OLD"
        # Looking, watching the list and leaving stay possible.
        assert (await process.stub.GetRoom(pb.GetRoomRequest(code=code), metadata=process.newcomer())).room
        async with watching_list(process, process.newcomer()) as tape:
            told = await tape.until(lambda message: message.HasField("bulletin"))
            assert told.bulletin.min_client_version == "1.4.2"
