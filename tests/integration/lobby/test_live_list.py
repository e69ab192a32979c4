"""The list as it is watched: one snapshot, then what changed; and a slow reader."""

from __future__ import annotations

import asyncio
import secrets

from koikoi.lobby.v1 import lobby_service_pb2 as pb

from services.lobby.board import MOST_ROOMS, Board
from services.lobby.domain.filters import Filter
from services.lobby.streams import Stream
from tests.harness import make_caller
from tests.integration.lobby.conftest import Bench, player, somewhere, wish
from tests.integration.lobby.watchers import joined, opened, refused, watching, watching_list


async def change(tape):
    return (await tape.until(lambda message: message.HasField("change"))).change


async def test_a_room_comes_changes_and_goes(start_lobby):
    async with start_lobby() as one, start_lobby() as two:
        early = (await opened(one, one.newcomer())).room
        async with watching_list(one, one.newcomer()) as here, watching_list(two, two.newcomer()) as there:
            for tape in (here, there):
                first = await tape.until(lambda message: True)
                assert list(first.snapshot.rooms) == [early]
            host = one.newcomer()
            room = (await opened(one, host)).room
            for tape in (here, there):
                assert list((await change(tape)).added) == [room]
            async with watching(one, host, room.code) as own:
                await own.view()
            for tape in (here, there):
                (seen,) = (await change(tape)).changed
                assert (seen.code, seen.is_host_present) == (room.code, False)
            await joined(two, two.newcomer(), room.code)
            for tape in (here, there):
                step = await change(tape)
                assert (list(step.removed_codes), len(step.added), len(step.changed)) == ([room.code], 0, 0)


async def test_filters(process):
    wanted = {
        "house": (await opened(process, process.newcomer())).room.code,
        "locked": (await opened(process, process.newcomer(), password="x")).room.code,
        "sdin": (await opened(process, process.newcomer(), rules=pb.Rules(preset="sdin"))).room.code,
    }
    await opened(process, process.newcomer(), visibility=pb.VISIBILITY_UNLISTED)
    for fields, names in (
        ({}, {"house", "locked", "sdin"}),
        ({"preset": "house"}, {"house", "locked"}),
        ({"has_password": False}, {"house", "sdin"}),
        ({"has_password": True}, {"locked"}),
        ({"is_ranked": False}, {"sdin"}),
        ({"is_ranked": True, "has_password": False}, {"house"}),
        ({"preset": "nintendo"}, set()),
    ):
        async with watching_list(process, process.newcomer(), **fields) as tape:
            snapshot = (await tape.until(lambda message: message.HasField("snapshot"))).snapshot
            assert {room.code for room in snapshot.rooms} == {wanted[name] for name in names}
    bad = process.stub.WatchRooms(pb.WatchRoomsRequest(preset="poker"), metadata=process.newcomer())
    assert await refused(bad) == "FIELD_INVALID"


async def test_a_blocked_account_hears_nothing_of_the_room(process):
    host, pest = process.newcomer(), make_caller()
    request = pb.BlockAccountRequest(account_id=pest.account_id, request_id="b")
    await process.stub.BlockAccount(request, metadata=host)
    async with watching_list(process, process.bearer(pest)) as theirs, watching_list(process, host) as own:
        await own.until(lambda message: message.HasField("snapshot"))
        hidden = (await opened(process, host)).room
        assert list((await change(own)).added) == [hidden]
        shown = (await opened(process, process.newcomer())).room
        assert list((await change(theirs)).added) == [shown]


async def test_a_slow_reader_gets_the_newest_state_and_no_queue(bench: Bench):
    """Whoever missed a step takes the whole list; who did not, the step."""
    board = Board(bench.rooms, bench.index, bench.clock, lambda room: room.code)
    stream = Stream("me", "device", 0.0)
    async with board.follow(Filter(), stream) as view:
        slow, fast = view.version, view.version
        assert view.step(0, "me").added == ()
        for number in range(30):
            room = await bench.lobby.create_room(player(), wish(), somewhere())
            await board.refresh(is_whole=False)
            assert stream.woken.is_set()
            step = view.step(fast, "me")
            assert (step.is_snapshot, step.added) == (False, (room.code,)), number
            fast = view.version
        step = view.step(slow, "me")
        assert (step.is_snapshot, len(step.added)) == (True, 30)
        await board.refresh(is_whole=True)
        assert view.version == fast  # nothing changed, nothing is said
    assert not board._views


async def test_the_newest_two_hundred_are_shown(bench: Bench):
    board = Board(bench.rooms, bench.index, bench.clock, lambda room: room.code)
    codes = []
    for _ in range(MOST_ROOMS + 5):
        bench.clock.advance(0.01)
        codes.append((await bench.lobby.create_room(player(), wish(), somewhere())).code)
    async with board.follow(Filter(), Stream("me", "device", 0.0)) as view:
        assert view.step(0, "me").added == tuple(codes[: -MOST_ROOMS - 1 : -1])
        newest = await bench.rooms.read([codes[-1]])
        await bench.lobby.leave_room(newest[0].host.account_id, codes[-1], "leave")
        seen = view.version
        await board.refresh(is_whole=False)
        step = view.step(seen, "me")
        assert (step.removed, step.added) == ((codes[-1],), (codes[-MOST_ROOMS - 1],))


async def test_many_changes_reach_a_reader_who_pauses(process):
    call = process.stub.WatchRooms(pb.WatchRoomsRequest(), metadata=process.newcomer())
    assert (await call.read()).HasField("snapshot")
    rooms = {}
    for _ in range(12):
        metadata = [*process.newcomer(), ("x-forwarded-for", somewhere())]
        room = (await opened(process, metadata, request_id=secrets.token_hex(8))).room
        rooms[room.code] = room
        await asyncio.sleep(0.1)
    seen = set()
    async with asyncio.timeout(10):
        while seen != set(rooms):
            message = await call.read()
            if message.HasField("snapshot"):
                seen = {room.code for room in message.snapshot.rooms}
            seen |= {room.code for room in message.change.added}
            seen -= set(message.change.removed_codes)
    call.cancel()
