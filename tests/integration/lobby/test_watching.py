"""Watching one room: presence, changes, and what is left after crashes."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as pb
from redis.asyncio import Redis

from services.lobby.ports import Attendance, Attended
from tests.harness import make_caller
from tests.integration.lobby.conftest import Bench, player, somewhere, wish
from tests.integration.lobby.watchers import eventually, joined, opened, refused, watching, watching_list


async def is_known(process, code: str) -> bool:
    """Look with an account and an address of its own, so that no limit is in the way."""
    call = process.stub.GetRoom(
        pb.GetRoomRequest(code=code), metadata=[*process.newcomer(), ("x-forwarded-for", somewhere())]
    )
    if await call.code() is grpc.StatusCode.OK:
        return True
    assert await refused(call) == "ROOM_NOT_FOUND"
    return False


async def test_the_host_waits_for_the_contract_and_both_get_the_same(start_lobby):
    async with start_lobby() as one, start_lobby() as two:
        host, guest = one.newcomer("月"), one.newcomer("花")
        room = (await opened(one, host)).room
        async with watching(one, host, room.code.lower()) as tape:
            assert await tape.view() == pb.RoomView(room=room)
            answer = await joined(two, guest, room.code)
            ready = await tape.view(lambda view: view.contract)
            assert (ready.contract, ready.room) == (answer.contract, answer.room)
            assert await tape.end() is None
        for process, who in ((two, host), (one, guest)):
            async with watching(process, who, room.code) as tape:
                assert (await tape.view()).contract == answer.contract
                assert await tape.end() is None


async def test_a_room_lives_as_long_as_its_hosts_stream_and_ends_half_a_minute_after_it(process, fake_clock):
    host, visitor = process.newcomer(), process.newcomer()
    code = (await opened(process, host)).room.code
    async with watching(process, host, code) as tape:
        await tape.view()
        for _ in range(5):
            fake_clock.advance(20)
            await asyncio.sleep(0.4)
        assert await is_known(process, code)
    await eventually(lambda: present(process, visitor, code), False)
    fake_clock.advance(29)
    assert await is_known(process, code)
    assert len((await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=visitor)).rooms) == 1
    fake_clock.advance(1)
    assert not await is_known(process, code)
    assert not (await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=visitor)).rooms


async def present(process, who, code: str) -> bool:
    room = (await process.stub.GetRoom(pb.GetRoomRequest(code=code), metadata=who)).room
    return bool(room.is_host_present)


async def test_a_stalled_process_does_not_cost_a_host_that_was_there_its_room(process, fake_clock):
    """Nobody renewed for a minute: the room was dead to others, and is there again."""
    host = process.newcomer()
    code = (await opened(process, host)).room.code
    async with watching(process, host, code) as tape:
        await tape.view()
        fake_clock.advance(60)
        await eventually(lambda: is_known(process, code))
        rooms = (await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=process.newcomer())).rooms
        assert [room.code for room in rooms] == [code]


async def test_a_room_that_was_dead_stays_dead_when_its_host_entered_another(process, fake_clock, redis_url):
    host = make_caller()
    says = process.bearer(host)
    code = (await opened(process, says)).room.code
    other = (await opened(process, process.newcomer())).room.code
    async with watching(process, says, code) as tape, Redis.from_url(redis_url) as redis:
        await tape.view()
        await redis.hset(f"lobby:room:{{{code}}}", "alive_until", "1")
        await redis.set(f"lobby:hold:{{{host.account_id}}}", f"{other}|0")
        assert await tape.closed() == "EXPIRED"


async def test_of_two_streams_of_a_host_each_may_end_while_the_other_holds_the_room(start_lobby, fake_clock):
    async with start_lobby() as one, start_lobby() as two:
        host, visitor = one.newcomer(), one.newcomer()
        code = (await opened(one, host)).room.code
        async with watching(one, host, code) as older:
            await older.view()
            async with watching(two, host, code) as newer:
                await newer.view()
                await older.stop()
                await asyncio.sleep(0.3)
                assert await present(two, visitor, code)
                async with watching(one, host, code) as newest:
                    await newest.view()
                await asyncio.sleep(0.3)
                await eventually(lambda: present(one, visitor, code))  # the one that is left stands in
                fake_clock.advance(20)
                await asyncio.sleep(0.5)
                fake_clock.advance(20)
                assert await is_known(two, code)
        await eventually(lambda: present(one, visitor, code), False)


async def test_only_the_newest_stream_of_a_host_says_that_it_is_away(bench: Bench):
    host = player()
    code = (await bench.lobby.create_room(host, wish(), somewhere())).code
    older, newer = (Attendance(code, host.account_id, generation, bench.now()) for generation in ("aa", "bb"))

    async def is_present() -> bool:
        (room,) = await bench.rooms.read([code])
        return bool(room.is_host_present)

    for one in (older, newer):
        assert await bench.presence.attend(one, bench.now(), "open") is Attended.HERE
    assert await bench.presence.renew([older, newer], bench.now()) == [Attended.HERE] * 2
    await bench.presence.end(older)
    assert await is_present()
    await bench.presence.end(newer)
    assert not await is_present()
    assert await bench.presence.renew([older], bench.now()) == [Attended.HERE]  # the one that is left stands in
    assert await is_present()
    stranger = Attendance(code, "somebody", "cc", bench.now())
    assert await bench.presence.attend(stranger, bench.now(), "open") is Attended.GONE
    bench.clock.advance(30)
    assert await bench.presence.renew([older], bench.now()) == [Attended.DEAD]


async def test_the_host_goes_and_comes_back(process):
    host, knocker = process.newcomer(), process.newcomer()
    code = (await opened(process, host, needs_approval=True)).room.code
    async with watching(process, knocker, code) as tape:
        assert (await tape.view()).room.is_host_present
        async with watching(process, host, code) as own:
            await own.view()
        await tape.view(lambda view: not view.room.is_host_present)
        async with watching(process, host, code):
            await tape.view(lambda view: view.room.is_host_present)


async def test_leaving_closes_the_room_at_once_for_all_who_watch(start_lobby):
    async with start_lobby() as one, start_lobby() as two:
        host, knocker = one.newcomer(), one.newcomer()
        code = (await opened(one, host, needs_approval=True)).room.code
        async with watching(one, host, code) as own, watching(two, knocker, code) as other:
            await own.view()
            await other.view()
            request = pb.LeaveRoomRequest(code=code, request_id="leave")
            assert (await two.stub.LeaveRoom(request, metadata=host)).is_closed
            assert (await own.closed(), await other.closed()) == ("LEFT", "LEFT")


async def test_a_lost_redis_ends_what_was_watched_and_nothing_else(process, redis_url):
    host = process.newcomer()
    code = (await opened(process, host)).room.code
    async with watching(process, host, code) as tape, watching_list(process, process.newcomer()) as rooms:
        await tape.view()
        await rooms.until(lambda message: message.HasField("snapshot") and message.snapshot.rooms)
        async with Redis.from_url(redis_url) as redis:
            await redis.flushall()
        assert await tape.closed() == "EXPIRED"
        change = await rooms.until(lambda message: message.HasField("change"))
        assert list(change.change.removed_codes) == [code]
    again = (await opened(process, host)).room.code
    async with watching(process, host, again) as tape:
        await tape.view()


async def test_who_has_no_business_there_is_sent_away(process, issuer):
    host, stranger = process.newcomer(), process.newcomer()
    code = (await opened(process, host)).room.code
    watch = process.stub.WatchRoom
    assert await refused(watch(pb.WatchRoomRequest(code=code), metadata=stranger)) == "MEMBERS_ONLY"
    assert await refused(watch(pb.WatchRoomRequest(code="999999"), metadata=stranger)) == "ROOM_NOT_FOUND"
    assert await refused(watch(pb.WatchRoomRequest(code="!"), metadata=stranger)) == "FIELD_INVALID"
    assert await refused(watch(pb.WatchRoomRequest(code=code))) == "ACCESS_TOKEN_INVALID"
    bad = pb.WatchRoomRequest(code=code, invite_secret="x" * 21)
    assert await refused(watch(bad, metadata=stranger)) == "FIELD_INVALID"
    await joined(process, process.newcomer(), code)
    assert await refused(watch(pb.WatchRoomRequest(code=code), metadata=stranger)) == "ROOM_FULL"


@pytest.mark.parametrize("seconds", ["0.2"])
async def test_a_silent_stream_says_that_it_is_alive(start_lobby, seconds):
    async with start_lobby(ping_every_s=seconds) as process:
        host = process.newcomer()
        code = (await opened(process, host)).room.code
        async with watching(process, host, code) as tape, watching_list(process, host) as rooms:
            for _ in range(3):
                await tape.until(lambda message: message.HasField("ping"))
                await rooms.until(lambda message: message.HasField("ping"))
