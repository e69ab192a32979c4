"""Who is first when many want one thing: exactly one right outcome, every time. KOIKOI_RACES sets how often."""

from __future__ import annotations

import asyncio
import os
from collections import Counter

import pytest

from services.lobby.domain.rooms import is_held
from services.lobby.ports import Attendance, Attended
from tests.integration.lobby.conftest import Bench, player, somewhere, wish
from tests.integration.lobby.test_recovery import Crashed, Dying
from tests.integration.lobby.test_rooms import open_rooms, outcome

ROUNDS = int(os.environ.get("KOIKOI_RACES", "20"))


async def test_fifty_for_the_last_seat(bench: Bench):
    processes = [bench.process() for _ in range(4)]
    for _ in range(ROUNDS):
        host = player()
        room = await bench.lobby.create_room(host, wish(), somewhere())
        outcomes = await asyncio.gather(
            *(outcome(processes[n % 4].join_room(player(), somewhere(), room.code, "", "join")) for n in range(50))
        )
        assert Counter(outcomes) == {"OK": 1, "ROOM_FULL": 49}
        assert len(await bench.lobby.list_my_matches(host.account_id)) == 1


async def test_the_host_leaves_while_a_guest_joins(bench: Bench):
    seen: Counter[tuple[bool, str]] = Counter()
    for number in range(ROUNDS):
        host, guest = player(), player()
        room = await bench.lobby.create_room(host, wish(), somewhere())
        calls = [
            bench.lobby.leave_room(host.account_id, room.code, "leave"),
            outcome(bench.process().join_room(guest, somewhere(), room.code, "", "join")),
        ]
        if number % 2:
            left, joined = await asyncio.gather(*calls)
        else:
            joined, left = await asyncio.gather(*calls[::-1])
        assert (left, joined) in ((True, "ROOM_NOT_FOUND"), (False, "OK"))
        seen[left, joined] += 1
        # Either way nobody is stuck: the guest who was told that there is no room may enter another at once.
        other = await bench.lobby.create_room(player(), wish(), somewhere())
        again = await outcome(bench.lobby.join_room(guest, somewhere(), other.code, "", "join"))
        assert again == ("OK" if left else "ALREADY_IN_ROOM")
    assert sum(seen.values()) == ROUNDS


async def test_one_account_joins_two_rooms_at_once_from_two_processes(bench: Bench):
    for _ in range(ROUNDS):
        guest = player()
        rooms = [await bench.lobby.create_room(player(), wish(), somewhere()) for _ in range(2)]
        outcomes = await asyncio.gather(
            *(outcome(bench.process().join_room(guest, somewhere(), room.code, "", "join")) for room in rooms)
        )
        assert outcomes.count("OK") == 1, outcomes
        assert set(outcomes) <= {"OK", "BUSY", "ALREADY_IN_ROOM"}
        assert len(await bench.lobby.list_my_matches(guest.account_id)) == 1


async def test_one_account_opens_and_joins_at_once(bench: Bench):
    for _ in range(ROUNDS):
        me = player()
        room = await bench.lobby.create_room(player(), wish(), somewhere())
        opened, joined = await asyncio.gather(
            outcome(bench.process().create_room(me, wish(), somewhere())),
            outcome(bench.process().join_room(me, somewhere(), room.code, "", "join")),
        )
        assert [opened, joined].count("OK") == 1, (opened, joined)
        own = [one for one in await open_rooms(bench) for r in await bench.rooms.read([one]) if r.host == me]
        assert len(own) + len(await bench.lobby.list_my_matches(me.account_id)) == 1


async def test_leaving_one_room_for_another_while_somebody_joins_the_first(bench: Bench):
    """Whatever comes first, the host is in one room, and never closes one that was filled under its hands."""
    for _ in range(ROUNDS):
        host, guest = player(), player()
        first = await bench.lobby.create_room(host, wish(), somewhere())
        made, joined = await asyncio.gather(
            outcome(bench.process().create_room(host, wish(leave_other=True), somewhere())),
            outcome(bench.process().join_room(guest, somewhere(), first.code, "", "join")),
        )
        # Both, when the seat went before the host's call looked: then it left a match to be, as it asked to.
        assert (made, joined) in (("OK", "ROOM_NOT_FOUND"), ("ALREADY_IN_ROOM", "OK"), ("OK", "OK")), (made, joined)
        assert len(await bench.lobby.list_my_matches(guest.account_id)) == (joined == "OK")


async def test_accepting_while_the_guest_goes_or_is_kicked(bench: Bench):
    for number in range(ROUNDS):
        host, guest = player(), player()
        room = await bench.lobby.create_room(host, wish(needs_approval=True), somewhere())
        knock = Attendance(room.code, guest.account_id, bench.presence.new_generation(), bench.now(), guest)
        assert await bench.presence.attend(knock, bench.now(), "open") is Attended.HERE
        other = (
            bench.presence.end(knock)
            if number % 2
            else outcome(bench.hosting.kick_guest(host.account_id, room.code, guest.account_id, "kick"))
        )
        accepted, _ = await asyncio.gather(
            outcome(bench.hosting_process().accept_guest(host.account_id, room.code, guest.account_id, "accept")),
            other,
        )
        (after,) = await bench.rooms.read([room.code])
        assert accepted in ("OK", "GUEST_NOT_FOUND", "ROOM_NOT_FOUND")
        assert (after.guest is not None) == (accepted == "OK")
        assert is_held(after, guest.account_id, bench.now()) == (accepted == "OK")


async def test_fifty_accepts_of_two_guests_give_one_contract(bench: Bench):
    for _ in range(max(1, ROUNDS // 10)):
        host, guests = player(), [player(), player()]
        room = await bench.lobby.create_room(host, wish(needs_approval=True), somewhere())
        for guest in guests:
            knock = Attendance(room.code, guest.account_id, bench.presence.new_generation(), bench.now(), guest)
            await bench.presence.attend(knock, bench.now(), "open")
        outcomes = await asyncio.gather(
            *(
                outcome(bench.hosting_process().accept_guest(host.account_id, room.code, guests[n % 2].account_id, "a"))
                for n in range(50)
            )
        )
        (after,) = await bench.rooms.read([room.code])
        winner = guests.index(after.guest)
        assert set(outcomes[winner::2]) == {"OK"}
        assert set(outcomes[1 - winner :: 2]) <= {"ROOM_FULL", "GUEST_NOT_FOUND", "ROOM_NOT_FOUND"}


async def test_a_call_that_died_while_entering_holds_its_account_for_a_moment_only(bench: Bench):
    guest = player()
    rooms = [await bench.lobby.create_room(player(), wish(), somewhere()) for _ in range(2)]
    dying = bench.process(rooms=Dying(bench.rooms, "take_seat"))
    with pytest.raises(Crashed):
        await dying.join_room(guest, somewhere(), rooms[0].code, "", "join")
    other = bench.lobby.join_room(guest, somewhere(), rooms[1].code, "", "join")
    assert await outcome(other) == "BUSY"
    bench.clock.advance(15)
    assert await outcome(bench.lobby.join_room(guest, somewhere(), rooms[1].code, "", "join")) == "OK"
