"""Opening, seeing, joining and leaving rooms: what holds when many do it at once, or twice, or too late."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter
from dataclasses import replace

import pytest

from services.lobby.domain.codes import ALPHABET
from services.lobby.domain.contracts import draw_contract
from services.lobby.domain.errors import (
    AlreadyInRoom,
    Busy,
    FieldInvalid,
    LobbyError,
    OwnRoom,
    RateLimited,
    RequestIdReused,
    RoomFull,
    RoomNotFound,
    SameDeviceKey,
)
from services.lobby.domain.rooms import RoomState, Visibility
from tests.integration.lobby.conftest import Bench, player, somewhere, wish


async def outcome(call) -> str:
    """Name what became of a call: its reason, or OK."""
    try:
        await call
    except LobbyError as error:
        return error.reason
    return "OK"


def scripted(*codes: str):
    """A source of characters that spells these codes first, then all of them in turn."""
    letters = itertools.chain("".join(codes), itertools.cycle("".join(a + b for a in ALPHABET for b in ALPHABET)))
    return lambda alphabet: next(letters)


async def test_of_fifty_for_the_last_seat_exactly_one_gets_it(bench: Bench):
    host, guests = player(), [player() for _ in range(50)]
    room = await bench.lobby.create_room(host, wish(), somewhere())
    processes = [bench.process() for _ in range(4)]
    calls = [
        processes[number % 4].join_room(guest, f"198.51.100.{number}", room.code, "", "join")
        for number, guest in enumerate(guests)
    ]
    results = await asyncio.gather(*calls, return_exceptions=True)
    winners = [(guest, result) for guest, result in zip(guests, results, strict=True) if isinstance(result, tuple)]
    assert len(winners) == 1
    assert Counter(type(result).__name__ for result in results) == {"tuple": 1, "RoomFull": 49}
    winner, (ready, jws) = winners[0]
    assert ready.guest == winner
    assert (await bench.lobby.get_room(host.account_id, "local", room.code))[1] == jws
    assert json.loads(ready.contract.payload)["seats"][1]["account"] == winner.account_id
    assert bench.events == {"opened": 1, "filled": 1}


async def test_of_fifty_for_one_code_each_gets_its_own(bench: Bench):
    one_code = iter("222222" * 50)
    processes = [bench.process(choose=lambda alphabet: next(one_code, "3")) for _ in range(4)]
    calls = [processes[number % 4].create_room(player(), wish(), somewhere()) for number in range(50)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    rooms = [result for result in results if not isinstance(result, BaseException)]
    codes = [room.code for room in rooms]
    assert len(set(codes)) == len(codes) == 2  # 222222 once, 333333 once: nothing else could be drawn
    assert all(isinstance(result, Busy) for result in results if isinstance(result, BaseException))
    for room in rooms:
        assert (await bench.rooms.read([room.code])) == [room]


async def test_a_taken_code_is_drawn_again(bench: Bench):
    lobby = bench.process(choose=scripted("222222", "222222", "333333"))
    assert (await lobby.create_room(player(), wish(), somewhere())).code == "222222"
    assert (await lobby.create_room(player(), wish(), somewhere())).code == "333333"


async def test_the_code_of_a_dead_or_closed_room_leads_nowhere_new_for_ten_minutes(bench: Bench):
    lobby = bench.process(choose=scripted("222222", "333333", "222222", "333333", "444444"))
    host = player()
    await lobby.create_room(player(), wish(), somewhere())
    await lobby.create_room(host, wish(), somewhere())
    assert await lobby.leave_room(host.account_id, "333333", "leave")
    bench.clock.advance(31)
    assert (await lobby.create_room(player(), wish(), somewhere())).code == "444444"
    assert 590 < await bench.client.ttl("lobby:room:{333333}") <= 600
    assert 610 < await bench.client.ttl("lobby:room:{222222}") <= 630


async def test_the_same_account_never_sits_on_both_seats(bench: Bench):
    host = player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    other_device = player(account_id=host.account_id)
    for guest in (host, other_device):
        with pytest.raises(OwnRoom):
            await bench.lobby.join_room(guest, "local", room.code, "", "join")
    with pytest.raises(SameDeviceKey):
        await bench.lobby.join_room(player(device_key=host.device_key), "local", room.code, "", "join")
    assert (await bench.lobby.get_room(host.account_id, "local", room.code))[0].state is RoomState.OPEN


async def test_the_script_itself_refuses_equal_accounts_keys_and_another_room(bench: Bench):
    """Should a check before it be lost one day, the one atomic step still holds."""
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    now = int(bench.clock.now() * 1000)
    contract = draw_contract("iss", room.rules, host, guest, now=now, random=bytes(10))
    for wanted, seat, at in (
        (room, replace(guest, account_id=host.account_id), now),
        (room, replace(guest, device_key=host.device_key), now),
        (replace(room, room_id="an earlier one"), guest, now),
        (room, guest, room.alive_until),
    ):
        after = await bench.rooms.take_seat(wanted, seat, contract, at)
        assert after is not None
        assert (after.state, after.guest, after.contract) == (RoomState.OPEN, None, None)
    assert await bench.rooms.take_seat(replace(room, code="999999"), guest, contract, now) is None


async def test_creating_again_with_the_same_request_gives_the_same_room(bench: Bench):
    host, asked = player(), wish(password="ひらけごま")
    room = await bench.lobby.create_room(host, asked, somewhere())
    assert await bench.lobby.create_room(host, asked, somewhere()) == room
    for other in (
        wish(request_id=asked.request_id, password="another"),
        wish(request_id=asked.request_id),
        wish(request_id=asked.request_id, password="ひらけごま", rounds=12),
        wish(request_id=asked.request_id, password="ひらけごま", is_public=False),
    ):
        with pytest.raises(RequestIdReused):
            await bench.lobby.create_room(host, other, somewhere())
    guest = player()
    await bench.lobby.join_room(guest, "local", room.code, "ひらけごま", "join")
    assert (await bench.lobby.create_room(host, asked, somewhere())).guest == guest
    assert bench.events["opened"] == 1


async def test_creating_with_the_request_of_a_closed_room_opens_no_ghost(bench: Bench):
    host, asked = player(), wish()
    room = await bench.lobby.create_room(host, asked, somewhere())
    await bench.lobby.leave_room(host.account_id, room.code, "leave")
    with pytest.raises(RoomNotFound):
        await bench.lobby.create_room(host, asked, somewhere())
    assert await bench.lobby.list_rooms(host.account_id, "local", 0, "") == []
    assert (await bench.lobby.create_room(host, wish(), somewhere())).code != room.code


async def test_twenty_equal_creates_at_once_make_one_room(bench: Bench):
    host, asked = player(), wish()
    results = await asyncio.gather(
        *(bench.process().create_room(host, asked, somewhere()) for _ in range(20)), return_exceptions=True
    )
    rooms = [result for result in results if not isinstance(result, BaseException)]
    assert rooms
    assert len({room.code for room in rooms}) == 1
    assert await bench.lobby.create_room(host, asked, somewhere()) == rooms[0]
    assert [room.code for room in await bench.lobby.list_rooms("x", "local", 0, "")] == [rooms[0].code]
    assert await open_rooms(bench) == [rooms[0].code]


async def test_twenty_different_creates_at_once_make_one_room(bench: Bench):
    host = player()
    outcomes = await asyncio.gather(
        *(outcome(bench.process().create_room(host, wish(), somewhere())) for _ in range(20))
    )
    assert Counter(outcomes) == {"OK": 1, "ALREADY_IN_ROOM": 19}
    assert len(await open_rooms(bench)) == 1


async def test_a_host_has_one_open_room_and_a_dead_or_closed_one_does_not_count(bench: Bench):
    host = player()
    first = await bench.lobby.create_room(host, wish(), somewhere())
    with pytest.raises(AlreadyInRoom) as caught:
        await bench.lobby.create_room(host, wish(), somewhere())
    assert caught.value.metadata == {"code": first.code}
    bench.clock.advance(30)
    second = await bench.lobby.create_room(host, wish(), somewhere())
    assert await bench.lobby.leave_room(host.account_id, second.code, "leave")
    third = await bench.lobby.create_room(host, wish(), somewhere())
    await bench.lobby.join_room(player(), "local", third.code, "", "join")
    with pytest.raises(AlreadyInRoom) as caught:  # the match to be counts, for two minutes
        await bench.lobby.create_room(host, wish(), somewhere())
    (ready,) = await bench.rooms.read([third.code])
    assert caught.value.metadata == {"code": third.code, "match_id": ready.contract.match_id}
    bench.clock.advance(120)
    fourth = await bench.lobby.create_room(host, wish(), somewhere())
    assert len({room.code for room in (first, second, third, fourth)}) == 4


async def test_opening_rooms_is_limited(bench: Bench):
    host, asked = player(), wish()
    for _ in range(30):
        await bench.lobby.create_room(host, asked, somewhere())
    with pytest.raises(RateLimited) as caught:
        await bench.lobby.create_room(host, asked, somewhere())
    assert caught.value.retry_after_s == 60.0
    bench.clock.advance(60)
    await bench.lobby.create_room(player(), wish(), somewhere())


async def test_a_room_dies_after_30_seconds_unless_its_host_looks(bench: Bench):
    host, visitor = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    for _ in range(3):
        bench.clock.advance(29.999)
        await bench.lobby.get_room(host.account_id, "local", room.code)
    bench.clock.advance(29.999)
    seen, contract = await bench.lobby.get_room(visitor.account_id, "local", room.code)  # a visitor's look adds nothing
    assert (seen.code, contract) == (room.code, "")
    assert len(await bench.lobby.list_rooms("x", "local", 0, "")) == 1
    bench.clock.advance(0.001)
    assert await bench.lobby.list_rooms("x", "local", 0, "") == []
    for call in (
        bench.lobby.get_room(visitor.account_id, "local", room.code),
        bench.lobby.get_room(host.account_id, "local", room.code),
        bench.lobby.join_room(visitor, "local", room.code, "", "join"),
    ):
        with pytest.raises(RoomNotFound):
            await call
    assert not await bench.lobby.leave_room(host.account_id, room.code, "leave")


async def test_joining_again_gives_the_same_contract_from_any_device(bench: Bench):
    guest = player()
    room = await bench.lobby.create_room(player(), wish(), somewhere())
    first = await bench.lobby.join_room(guest, "local", room.code, "", "join")
    bench.clock.advance(3 * 3600 - 1)
    again = await bench.lobby.join_room(guest, "local", room.code, "", "join again")
    elsewhere = await bench.lobby.join_room(player(account_id=guest.account_id), "local", room.code, "", "join")
    assert first[1] == again[1] == elsewhere[1]
    assert first[0].contract.payload == again[0].contract.payload == elsewhere[0].contract.payload
    assert elsewhere[0].guest == guest


async def test_fifty_equal_joins_at_once_give_one_contract(bench: Bench):
    guest = player()
    room = await bench.lobby.create_room(player(), wish(), somewhere())
    results = await asyncio.gather(
        *(bench.process().join_room(guest, "local", room.code, "", "join") for _ in range(50))
    )
    assert len({(ready.contract.payload, jws) for ready, jws in results}) == 1
    assert bench.events["filled"] == 1


async def test_a_full_room_is_dead_for_newcomers_and_stays_for_members_until_the_contract_ends(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    await bench.lobby.join_room(guest, "local", room.code, "", "join")
    late = player()
    assert await outcome(bench.lobby.join_room(late, "local", room.code, "", "join")) == "ROOM_FULL"
    assert await outcome(bench.lobby.get_room(late.account_id, "local", room.code)) == "ROOM_NOT_FOUND"
    bench.clock.advance(10)
    assert await outcome(bench.lobby.join_room(late, "local", room.code, "", "join")) == "ROOM_NOT_FOUND"
    bench.clock.advance(3 * 3600 - 11)
    for member in (host, guest):
        assert (await bench.lobby.get_room(member.account_id, "local", room.code))[1]
    with pytest.raises(OwnRoom):
        await bench.lobby.join_room(host, "local", room.code, "", "join")
    bench.clock.advance(1)
    for member in (host, guest):
        assert await outcome(bench.lobby.get_room(member.account_id, "local", room.code)) == "ROOM_NOT_FOUND"
    assert 10_700 < await bench.client.ttl(f"lobby:room:{{{room.code}}}") <= 10_800


async def test_leaving_closes_an_open_room_once_and_only_for_its_host(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    assert not await bench.lobby.leave_room(guest.account_id, room.code, "leave")
    assert await bench.lobby.leave_room(host.account_id, room.code.lower(), "leave")
    assert await bench.lobby.leave_room(host.account_id, room.code, "leave")  # a repetition hears the same
    assert not await bench.lobby.leave_room(host.account_id, room.code, "leave again")
    assert not await bench.lobby.leave_room(host.account_id, "999999", "leave")
    assert await outcome(bench.lobby.get_room(host.account_id, "local", room.code)) == "ROOM_NOT_FOUND"
    assert await outcome(bench.lobby.join_room(guest, "local", room.code, "", "join")) == "ROOM_NOT_FOUND"
    assert await bench.lobby.list_rooms("x", "local", 0, "") == []


async def test_leaving_a_full_room_changes_nothing(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    _, jws = await bench.lobby.join_room(guest, "local", room.code, "", "join")
    for member in (host, guest):
        assert not await bench.lobby.leave_room(member.account_id, room.code, "leave")
        assert (await bench.lobby.get_room(member.account_id, "local", room.code))[1] == jws


async def test_leaving_and_joining_at_once_never_give_both(bench: Bench):
    for number in range(20):
        host, guest = player(), player()
        room = await bench.lobby.create_room(host, wish(), somewhere())
        left, joined = await asyncio.gather(
            bench.lobby.leave_room(host.account_id, room.code, "leave"),
            outcome(bench.lobby.join_room(guest, f"198.51.100.{number}", room.code, "", "join")),
        )
        assert (left, joined) in ((True, "ROOM_NOT_FOUND"), (False, "OK"))


async def test_a_loser_by_a_hair_hears_that_the_room_is_full_or_gone(bench: Bench):
    """The room changes between the look and the step that takes the seat."""
    host, first, second = player(), player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())

    class Slow:
        """Passes everything on, after letting `before` happen ahead of the atomic step."""

        def __init__(self, before) -> None:
            self.before = before

        def __getattr__(self, name):
            return getattr(bench.rooms, name)

        async def take_seat(self, *arguments):
            await self.before()
            return await bench.rooms.take_seat(*arguments)

    async def somebody_else() -> None:
        await bench.lobby.join_room(first, "local", room.code, "", "join")

    with pytest.raises(RoomFull):
        await bench.process(rooms=Slow(somebody_else)).join_room(second, "local", room.code, "", "join")

    other = await bench.lobby.create_room(host, wish(leave_other=True), somewhere())

    async def host_leaves() -> None:
        await bench.lobby.leave_room(host.account_id, other.code, "leave")

    with pytest.raises(RoomNotFound):
        await bench.process(rooms=Slow(host_leaves)).join_room(second, "local", other.code, "", "join")

    last = await bench.lobby.create_room(host, wish(), somewhere())

    async def it_vanishes() -> None:
        await bench.client.flushall()

    with pytest.raises(RoomNotFound):
        await bench.process(rooms=Slow(it_vanishes)).join_room(second, "local", last.code, "", "join")


async def test_the_list_has_open_public_rooms_newest_first(bench: Bench):
    codes = []
    for number in range(7):
        preset = "sdin" if number % 2 else "house"
        room = await bench.lobby.create_room(player(), wish(preset=preset, is_public=number != 3), somewhere())
        bench.clock.advance(1)
        codes.append(room.code)
    shown = [0, 1, 2, 4, 5, 6]
    await bench.lobby.join_room(player(), "local", codes[4], "", "join")
    shown.remove(4)
    rooms = await bench.lobby.list_rooms("x", "local", 0, "")
    assert [room.code for room in rooms] == [codes[number] for number in reversed(shown)]
    assert all(room.visibility is Visibility.PUBLIC for room in rooms)
    assert [room.code for room in await bench.lobby.list_rooms("x", "local", 2, "")] == [codes[6], codes[5]]
    assert [room.code for room in await bench.lobby.list_rooms("x", "local", 200, "sdin")] == [codes[5], codes[1]]
    with pytest.raises(FieldInvalid):
        await bench.lobby.list_rooms("x", "local", 201, "")


async def test_the_list_looks_behind_dead_entries_and_is_limited(bench: Bench):
    room = await bench.lobby.create_room(player(), wish(), somewhere())
    newer = int(bench.clock.now() * 1000) + 1
    await bench.client.zadd("lobby:list", {f"DEAD{number:02}": newer + number for number in range(450)})
    assert [found.code for found in await bench.lobby.list_rooms("x", "local", 0, "")] == [room.code]
    for _ in range(119):
        await bench.lobby.list_rooms("x", "local", 1, "")
    with pytest.raises(RateLimited):
        await bench.lobby.list_rooms("x", "local", 1, "")


async def open_rooms(bench: Bench) -> list[str]:
    now = int(bench.clock.now() * 1000)
    return [room.code async for batch in bench.rooms.scan() for room in batch if room.is_open(now)]
