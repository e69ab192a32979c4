"""Rooms that let guests in one by one, and whom a host keeps out."""

from __future__ import annotations

import secrets

from koikoi.lobby.v1 import lobby_service_pb2 as pb
from redis.asyncio import Redis

from services.lobby.domain.contracts import draw_contract
from services.lobby.ports import Attendance
from tests.harness import make_caller
from tests.integration.lobby.conftest import player, somewhere, wish
from tests.integration.lobby.watchers import Tape, eventually, joined, opened, refused, watching, watching_list


def accept(process, metadata, code: str, account_id: str):
    request = pb.AcceptGuestRequest(code=code, account_id=account_id, request_id=secrets.token_hex(8))
    return process.stub.AcceptGuest(request, metadata=metadata)


def kick(process, metadata, code: str, account_id: str):
    request = pb.KickGuestRequest(code=code, account_id=account_id, request_id=secrets.token_hex(8))
    return process.stub.KickGuest(request, metadata=metadata)


def block(process, metadata, account_id: str):
    return process.stub.BlockAccount(pb.BlockAccountRequest(account_id=account_id, request_id="b"), metadata=metadata)


async def test_only_the_hosts_word_takes_the_seat(start_lobby):
    async with start_lobby() as one, start_lobby() as two:
        host, first, second = one.newcomer(), make_caller("花子"), make_caller("Jiro")
        code = (await opened(one, host, needs_approval=True)).room.code
        assert await refused(joined(one, one.bearer(first), code)) == "APPROVAL_NEEDED"
        async with (
            watching(one, host, code) as own,
            watching(two, two.bearer(first), code) as of_first,
            watching(one, one.bearer(second), code) as of_second,
        ):
            seen = await own.view(lambda view: len(view.knocks) == 2)
            assert {knock.account_id for knock in seen.knocks} == {first.account_id, second.account_id}
            assert not (await of_first.view()).knocks  # only the host sees who else is there
            answer = await accept(two, host, code, first.account_id)
            assert answer.room.guest.display_name == "花子"
            assert (await own.view(lambda view: view.contract)).contract == answer.contract
            assert (await of_first.view(lambda view: view.contract)).contract == answer.contract
            assert await of_second.closed() == "FULL"
        assert (await accept(one, host, code, first.account_id)).contract == answer.contract
        assert await refused(accept(one, host, code, second.account_id)) == "ROOM_FULL"
        assert (await joined(one, one.bearer(first), code)).contract == answer.contract


async def test_who_went_away_cannot_be_accepted(process, fake_clock):
    host, guest = process.newcomer(), make_caller()
    code = (await opened(process, host, needs_approval=True)).room.code
    async with watching(process, host, code) as own:
        async with watching(process, process.bearer(guest), code):
            await own.view(lambda view: view.knocks)
        await own.view(lambda view: not view.knocks)
        assert await refused(accept(process, host, code, guest.account_id)) == "GUEST_NOT_FOUND"
        assert await refused(accept(process, host, code, "nobody")) == "GUEST_NOT_FOUND"
        assert await refused(accept(process, host, code, "no body")) == "FIELD_INVALID"
        assert await refused(accept(process, process.bearer(guest), code, guest.account_id)) == "ROOM_NOT_FOUND"


async def test_a_knock_without_a_process_behind_it_runs_out(process, fake_clock, redis_url):
    host, ghost = process.newcomer(), make_caller()
    code = (await opened(process, host, needs_approval=True)).room.code
    async with watching(process, host, code) as own, Redis.from_url(redis_url) as redis:
        async with watching(process, process.bearer(ghost), code):
            await own.view(lambda view: view.knocks)
            entry = await redis.hget(f"lobby:knocks:{{{code}}}", ghost.account_id)
        await own.view(lambda view: not view.knocks)
        await redis.hset(f"lobby:knocks:{{{code}}}", ghost.account_id, entry)  # as a process killed with -9 leaves it
        await own.view(lambda view: view.knocks)
        for _ in range(2):
            fake_clock.advance(15)
            await eventually(lambda: is_alive(redis, code, fake_clock))
        await own.view(lambda view: not view.knocks)
        assert await refused(accept(process, host, code, ghost.account_id)) == "GUEST_NOT_FOUND"


async def is_alive(redis, code, clock) -> bool:
    return int(await redis.hget(f"lobby:room:{{{code}}}", "alive_until")) > clock.now() * 1000 + 29_000


async def test_a_newer_knock_takes_over_and_the_older_ones_end_changes_nothing(process):
    host, guest = process.newcomer(), make_caller()
    code = (await opened(process, host, needs_approval=True)).room.code
    async with watching(process, host, code) as own:
        older = Tape(process.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=process.bearer(guest)))
        await own.view(lambda view: view.knocks)
        async with watching(process, process.bearer(guest), code) as newer:
            await newer.view()
            await older.stop()
            answer = await accept(process, host, code, guest.account_id)
            assert (await newer.view(lambda view: view.contract)).contract == answer.contract


async def test_the_kicked_are_out_and_see_nothing_any_more(process):
    host, guest = process.newcomer(), make_caller()
    code = (await opened(process, host, needs_approval=True)).room.code
    says = process.bearer(guest)
    async with watching(process, says, code) as tape, watching_list(process, says) as rooms:
        await tape.view()
        await rooms.until(lambda message: message.HasField("snapshot") and message.snapshot.rooms)
        await kick(process, host, code, guest.account_id)
        await kick(process, host, code, guest.account_id)
        assert await tape.closed() == "KICKED"
        change = await rooms.until(lambda message: message.HasField("change"))
        assert list(change.change.removed_codes) == [code]
    assert await refused(process.stub.GetRoom(pb.GetRoomRequest(code=code), metadata=says)) == "ROOM_NOT_FOUND"
    assert await refused(process.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=says)) == "ROOM_NOT_FOUND"
    assert await refused(joined(process, says, code)) == "ROOM_NOT_FOUND"
    assert not (await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=says)).rooms
    assert await refused(kick(process, says, code, "x")) == "ROOM_NOT_FOUND"
    assert await refused(kick(process, host, code, "")) == "FIELD_INVALID"


async def test_a_host_cannot_kick_itself_or_a_seated_guest(process):
    caller, guest = make_caller(), make_caller()
    host = process.bearer(caller)
    code = (await opened(process, host)).room.code
    assert await refused(kick(process, host, code, caller.account_id)) == "FIELD_INVALID"
    await joined(process, process.bearer(guest), code)
    assert await refused(kick(process, host, code, guest.account_id)) == "ROOM_NOT_FOUND"


async def test_a_door_has_room_for_twenty(start_lobby):
    async with start_lobby() as process:
        host = process.newcomer()
        code = (await opened(process, host, needs_approval=True)).room.code
        tapes = [
            Tape(process.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=process.newcomer())) for _ in range(20)
        ]
        async with watching(process, host, code) as own:
            await own.view(lambda view: len(view.knocks) == 20)
            one_more = process.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=process.newcomer())
            assert await refused(one_more) == "TOO_MANY_KNOCKS"
            await tapes.pop().stop()
            await own.view(lambda view: len(view.knocks) == 19)
            async with watching(process, process.newcomer(), code):
                await own.view(lambda view: len(view.knocks) == 20)
        for tape in tapes:
            await tape.stop()


async def test_knocking_needs_the_password_or_the_invitation(process):
    host = process.newcomer()
    made = await opened(process, host, needs_approval=True, password="tsuki", with_invite=True)
    watch, code = process.stub.WatchRoom, made.room.code
    guest = process.newcomer()
    assert await refused(watch(pb.WatchRoomRequest(code=code), metadata=guest)) == "PASSWORD_INVALID"
    assert await refused(watch(pb.WatchRoomRequest(code=code, password="x"), metadata=guest)) == "PASSWORD_WRONG"
    async with watching(process, guest, code, password="tsuki") as tape:
        await tape.view()
    async with watching(process, process.newcomer(), code, invite_secret=made.invite.secret) as tape:
        assert not (await tape.view()).HasField("invite")
    async with watching(process, host, code) as tape:
        assert (await tape.view()).invite == made.invite


async def test_who_is_in_another_room_knocks_only_after_leaving_it(process):
    host, caller = process.newcomer(), make_caller()
    guest = process.bearer(caller)
    code = (await opened(process, host, needs_approval=True)).room.code
    own = (await opened(process, guest)).room.code
    assert await refused(process.stub.WatchRoom(pb.WatchRoomRequest(code=code), metadata=guest)) == "ALREADY_IN_ROOM"
    async with watching(process, guest, own) as tape, watching(process, guest, code, leave_other=True) as knock:
        assert await tape.closed() == "LEFT"
        await knock.view()
        elsewhere = (await opened(process, guest)).room.code
        assert await refused(accept(process, host, code, caller.account_id)) == "GUEST_NOT_FOUND"
        await process.stub.LeaveRoom(pb.LeaveRoomRequest(code=elsewhere, request_id="x"), metadata=guest)
        assert (await accept(process, host, code, caller.account_id)).contract


async def test_a_block_hides_every_room_and_outlives_redis(process, redis_url, fake_clock):
    host, pest = make_caller(), make_caller()
    says, theirs = process.bearer(host), process.bearer(pest)
    code = (await opened(process, says)).room.code
    await block(process, says, pest.account_id)
    assert await refused(joined(process, theirs, code)) == "ROOM_NOT_FOUND"
    async with Redis.from_url(redis_url) as redis:
        await redis.flushall()
    code = (await opened(process, says)).room.code
    assert await refused(joined(process, theirs, code)) == "ROOM_NOT_FOUND"
    assert not (await process.stub.ListRooms(pb.ListRoomsRequest(), metadata=theirs)).rooms
    fake_clock.advance(1)
    await block(process, says, "another")
    (newest, oldest) = (await process.stub.ListBlocks(pb.ListBlocksRequest(), metadata=says)).blocks
    assert (newest.account_id, oldest.account_id) == ("another", pest.account_id)
    assert newest.create_time.seconds == oldest.create_time.seconds + 1 == int(fake_clock.now())
    assert not (await process.stub.ListBlocks(pb.ListBlocksRequest(), metadata=theirs)).blocks
    request = pb.UnblockAccountRequest(account_id=pest.account_id, request_id="u")
    for _ in range(2):
        await process.stub.UnblockAccount(request, metadata=says)
    wanted = (await opened(process, says, leave_other=True)).room.code
    assert (await joined(process, theirs, wanted)).contract


async def test_the_script_itself_seats_only_who_knocks_now_and_is_not_kept_out(bench):
    """Should a check before it be lost one day, the one atomic step still holds."""
    host, guest, pest = player(), player(), player()
    room = await bench.lobby.create_room(host, wish(needs_approval=True), somewhere())
    now = bench.now()
    contract = draw_contract("iss", room.rules, host, guest, now=now, random=bytes(10))
    older, newer = (Attendance(room.code, guest.account_id, generation, now, guest) for generation in ("aa", "bb"))
    assert (await bench.rooms.take_seat(room, guest, contract, now, "aa")).guest is None
    await bench.presence.attend(older, now, "open")
    await bench.presence.attend(newer, now, "open")
    for generation in ("", "aa"):
        assert (await bench.rooms.take_seat(room, guest, contract, now, generation)).guest is None
    assert await bench.rooms.bar(room.code, host.account_id, pest.account_id, now)
    assert (await bench.rooms.take_seat(room, pest, contract, now, "bb")).guest is None
    await bench.presence.end(older)  # took over by a newer one: changes nothing
    assert (await bench.rooms.take_seat(room, guest, contract, now, "bb")).guest == guest


async def test_a_room_without_a_door_keeps_out_whom_its_host_bars_also_at_the_last_step(bench):
    host, pest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    await bench.rooms.bar(room.code, host.account_id, pest.account_id, bench.now())
    contract = draw_contract("iss", room.rules, host, pest, now=bench.now(), random=bytes(10))
    assert (await bench.rooms.take_seat(room, pest, contract, bench.now())).guest is None


async def test_blocks_are_bounded(bench):
    for number in range(200):
        assert await bench.blocks.add("me", f"pest-{number}", bench.now())
    assert await bench.blocks.add("me", "pest-7", bench.now())
    assert not await bench.blocks.add("me", "one more", bench.now())
    assert len(await bench.blocks.read("me")) == 200
    await bench.blocks.remove("me", "pest-7")
    assert await bench.blocks.add("me", "one more", bench.now())


async def test_bad_blocks_are_refused(process):
    caller = make_caller()
    me = process.bearer(caller)
    for account_id in ("", "x" * 65, "a b", caller.account_id):
        assert await refused(block(process, me, account_id)) == "FIELD_INVALID"
    nameless = pb.BlockAccountRequest(account_id="pest")
    assert await refused(process.stub.BlockAccount(nameless, metadata=me)) == "FIELD_INVALID"
