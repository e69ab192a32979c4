"""Guessing codes and passwords, and the cost of checking them."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections import Counter

import pytest

from services.lobby.domain.codes import ALPHABET
from services.lobby.domain.errors import Busy, PasswordInvalid, PasswordTries, PasswordWrong, RateLimited, RoomNotFound
from services.lobby.domain.rooms import Room
from services.lobby.passwords import ArgonPasswords
from tests.integration.lobby.conftest import Bench, player, somewhere, wish
from tests.integration.lobby.test_rooms import outcome

_codes = itertools.product(ALPHABET, repeat=6)


def unused_code() -> str:
    """A code that no test opened: they are drawn at random, these are the first few of 387 million."""
    return "".join(next(_codes))


async def guess(bench: Bench, account: str, address: str, code: str | None = None) -> str:
    return await outcome(bench.lobby.get_room(account, address, code or unused_code()))


async def stay(bench: Bench, room: Room, seconds: float) -> None:
    """Let time pass while the host is there."""
    while seconds > 0:
        bench.clock.advance(min(seconds, 29.0))
        seconds -= 29.0
        await bench.lobby.get_room(room.host.account_id, "local", room.code)


async def test_five_misses_a_minute_per_account_from_wherever(bench: Bench):
    room = await bench.lobby.create_room(player(), wish(), somewhere())
    for number in range(5):
        assert await guess(bench, "guesser", f"198.51.100.{number}") == "ROOM_NOT_FOUND"
    with pytest.raises(RateLimited) as caught:
        await bench.lobby.get_room("guesser", "198.51.100.9", unused_code())
    assert caught.value.retry_after_s == 60.0
    # A right code now looks like a wrong one, with every method.
    assert await guess(bench, "guesser", "198.51.100.9", room.code) == "RATE_LIMITED"
    assert await outcome(bench.lobby.join_room(player(account_id="guesser"), "", room.code, "", "x")) == "RATE_LIMITED"
    assert await guess(bench, "somebody else", "198.51.100.9", room.code) == "OK"
    await stay(bench, room, 60)
    assert await guess(bench, "guesser", "198.51.100.9", room.code) == "OK"


async def test_thirty_misses_an_hour(bench: Bench):
    for _ in range(6):
        for number in range(5):
            assert await guess(bench, "guesser", f"198.51.100.{number}") == "ROOM_NOT_FOUND"
        bench.clock.advance(61)
    with pytest.raises(RateLimited) as caught:
        await bench.lobby.get_room("guesser", "203.0.113.1", unused_code())
    assert caught.value.retry_after_s == 3600 - 6 * 61
    bench.clock.advance(3600 - 6 * 61)
    assert await guess(bench, "guesser", "203.0.113.1") == "ROOM_NOT_FOUND"


@pytest.mark.parametrize(
    ("address", "neighbour", "stranger"),
    [
        ("203.0.113.7", "::ffff:203.0.113.7", "203.0.113.8"),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", "2001:db8:0:1::1"),
    ],
)
async def test_five_misses_a_minute_per_address_whoever(bench: Bench, address, neighbour, stranger):
    for number in range(5):
        assert await guess(bench, f"sock puppet {number}", address) == "ROOM_NOT_FOUND"
    assert await guess(bench, "one more", address) == "RATE_LIMITED"
    assert await guess(bench, "one more", neighbour) == "RATE_LIMITED"
    assert await guess(bench, "one more", stranger) == "ROOM_NOT_FOUND"


async def test_fifty_guesses_at_once_are_five_guesses(bench: Bench):
    outcomes = await asyncio.gather(*(guess(bench, "guesser", "203.0.113.7") for _ in range(50)))
    assert Counter(outcomes) == {"ROOM_NOT_FOUND": 5, "RATE_LIMITED": 45}


async def test_members_read_their_room_whatever_their_neighbours_do(bench: Bench):
    host, guest = player(), player()
    open_room = await bench.lobby.create_room(host, wish(), somewhere())
    full_room = await bench.lobby.create_room(player(), wish(), somewhere())
    await bench.lobby.join_room(guest, "203.0.113.7", full_room.code, "", "join")
    for _ in range(6):
        await guess(bench, "guesser", "203.0.113.7")
    assert await guess(bench, host.account_id, "203.0.113.7", open_room.code) == "OK"
    assert await guess(bench, guest.account_id, "203.0.113.7", full_room.code) == "OK"
    assert await outcome(bench.lobby.join_room(guest, "203.0.113.7", full_room.code, "", "join")) == "OK"


async def test_unknown_dead_closed_and_long_full_rooms_look_and_count_alike(bench: Bench):
    dead = await bench.lobby.create_room(player(), wish(), somewhere())
    bench.clock.advance(25)
    host = player()
    closed = await bench.lobby.create_room(host, wish(), somewhere())
    await bench.lobby.leave_room(host.account_id, closed.code, "leave")
    full = await bench.lobby.create_room(player(), wish(), somewhere())
    await bench.lobby.join_room(player(), "local", full.code, "", "join")
    bench.clock.advance(10)
    messages = set()
    for number, code in enumerate((unused_code(), dead.code, closed.code, full.code)):
        for call in (
            bench.lobby.get_room(f"visitor {number}", f"198.51.100.{number}", code),
            bench.lobby.join_room(player(account_id=f"visitor {number}"), f"198.51.100.{number}", code, "pw", "x"),
        ):
            with pytest.raises(RoomNotFound) as caught:
                await call
            messages.add((caught.value.message, str(caught.value.metadata), caught.value.field))
        for _ in range(3):
            assert await guess(bench, f"visitor {number}", f"198.51.100.{number}", code) == "ROOM_NOT_FOUND"
        assert await guess(bench, f"visitor {number}", f"198.51.100.{number}", code) == "RATE_LIMITED"
    assert len(messages) == 1


async def test_a_room_with_a_password_opens_for_the_password_only(bench: Bench):
    room = await bench.lobby.create_room(player(), wish(password="か\u3099くせい"), somewhere())
    guest = player()
    seen, contract = await bench.lobby.get_room(guest.account_id, "local", room.code)
    assert (seen.has_password, contract) == (True, "")
    with pytest.raises(PasswordInvalid):
        await bench.lobby.join_room(guest, "local", room.code, "", "join")
    for wrong in ("がくせ", "がくせい ", "x"):
        with pytest.raises(PasswordWrong) as caught:
            await bench.lobby.join_room(guest, "local", room.code, wrong, "join")
        assert wrong not in caught.value.message
    ready, jws = await bench.lobby.join_room(guest, "local", room.code, "がくせい", "join")
    assert ready.guest == guest
    assert (await bench.lobby.join_room(guest, "local", room.code, "whatever", "again"))[1] == jws


async def test_a_password_for_a_room_without_one_is_ignored(bench: Bench):
    room = await bench.lobby.create_room(player(), wish(), somewhere())
    assert (await bench.lobby.join_room(player(), "local", room.code, "needless", "join"))[1]


async def test_five_passwords_then_ten_minutes_for_this_account_and_room_only(bench: Bench):
    room = await bench.lobby.create_room(player(), wish(password="right"), somewhere())
    other = await bench.lobby.create_room(player(), wish(password="right"), somewhere())
    guest = player()
    for _ in range(5):
        bench.clock.advance(20)
        for kept in (room, other):
            await bench.lobby.get_room(kept.host.account_id, "local", kept.code)
        assert await outcome(bench.lobby.join_room(guest, "local", room.code, "wrong", "join")) == "PASSWORD_WRONG"
    for password in ("wrong", "right"):
        with pytest.raises(PasswordTries) as caught:
            await bench.lobby.join_room(guest, "local", room.code, password, "join")
        assert caught.value.retry_after_s == 600.0
    assert await outcome(bench.lobby.join_room(guest, "local", other.code, "wrong", "join")) == "PASSWORD_WRONG"
    await stay(bench, room, 599.5)
    assert await outcome(bench.lobby.join_room(guest, "local", room.code, "right", "join")) == "PASSWORD_TRIES"
    bench.clock.advance(0.5)
    assert await outcome(bench.lobby.join_room(guest, "local", room.code, "wrong", "join")) == "PASSWORD_WRONG"
    assert await outcome(bench.lobby.join_room(player(), "local", room.code, "right", "join")) == "OK"


class CountedPasswords(ArgonPasswords):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.verified = 0

    async def verify(self, password: str, password_hash: str) -> bool:
        self.verified += 1
        return await super().verify(password, password_hash)


async def test_the_limit_is_enforced_before_anything_is_hashed(bench: Bench):
    passwords = CountedPasswords()
    lobby = bench.process(passwords=passwords)
    room = await lobby.create_room(player(), wish(password="right"), somewhere())
    guest = player()
    outcomes = await asyncio.gather(
        *(outcome(lobby.join_room(guest, somewhere(), room.code, f"guess {number}", "join")) for number in range(40))
    )
    assert Counter(outcomes) == {"PASSWORD_WRONG": 5, "PASSWORD_TRIES": 35}
    assert passwords.verified == 5
    for _ in range(3):
        assert await outcome(lobby.join_room(room.host, "local", room.code, "right", "join")) == "OWN_ROOM"
    assert passwords.verified == 5
    passwords.close()


async def test_too_many_passwords_at_once_are_refused_not_queued(bench: Bench):
    passwords = ArgonPasswords(max_waiting=3)
    hashed = await passwords.hash("right")
    results = await asyncio.gather(*(passwords.verify("right", hashed) for _ in range(30)), return_exceptions=True)
    assert results.count(True) == 5
    refused = [result for result in results if isinstance(result, Busy)]
    assert len(refused) == 25
    assert refused[0].retry_after_s
    assert await passwords.verify("right", hashed)
    passwords.close()


async def test_giving_up_a_call_does_not_make_room_for_more_work(bench: Bench):
    passwords = ArgonPasswords(max_waiting=2)
    hashed = await passwords.hash("right")
    tasks = [asyncio.create_task(passwords.verify("x", hashed)) for _ in range(4)]
    await asyncio.sleep(0)
    for task in tasks[:2]:  # these are being hashed and cannot be stopped
        task.cancel()
    await asyncio.gather(*tasks[:2], return_exceptions=True)
    with pytest.raises(Busy):
        await asyncio.gather(*(passwords.verify("x", hashed) for _ in range(4)))
    await asyncio.gather(*tasks[2:])
    passwords.close()


async def test_right_and_wrong_passwords_cost_the_same(bench: Bench):
    passwords = ArgonPasswords()
    hashed = await passwords.hash("right")

    async def cost(password: str) -> float:
        times = []
        for _ in range(9):
            started = time.process_time()  # of all threads, so that a busy machine makes no difference
            await passwords.verify(password, hashed)
            times.append(time.process_time() - started)
        return statistics.median(times)

    right, wrong, long = await cost("right"), await cost("wrong"), await cost("w" * 64)
    assert max(right, wrong, long) < 3 * min(right, wrong, long)
    passwords.close()
