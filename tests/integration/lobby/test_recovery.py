"""What survives: crashes between two steps, lost indexes, rotated keys, a lost Redis."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from redis.asyncio import Redis

from services.kit.app import end_task
from services.kit.redis import open_client
from services.lobby.domain.contracts import draw_contract
from services.lobby.domain.rooms import RoomState
from services.lobby.store.news import RedisNews
from services.lobby.store.rooms import CHANNEL
from tests.integration.lobby.conftest import ISSUER, Bench, player, somewhere, wish
from tests.integration.lobby.test_rooms import open_rooms, outcome


class Crashed(Exception):
    """The process died here."""


class Dying:
    """Passes every call on, until the named one, before which the process dies."""

    def __init__(self, real: object, method: str) -> None:
        self._real = real
        self._method = method

    def __getattr__(self, name: str):
        if name != self._method:
            return getattr(self._real, name)

        async def die(*_: object, **__: object) -> None:
            raise Crashed

        return die


async def test_a_crash_between_seat_and_signature_heals_for_whoever_asks_first(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    with pytest.raises(Crashed):
        dying = bench.process(rooms=Dying(bench.rooms, "keep_signature"))
        await dying.join_room(guest, "local", room.code, "", "join")
    (stored,) = await bench.rooms.read([room.code])
    assert stored.state is RoomState.READY
    assert stored.contract.jws is None
    # Two processes with different signing keys answer both players at once: one signature is kept.
    rotated = bench.process(signer=bench.signing_keys("rotated"))
    (_, of_host), (_, of_guest), (_, later) = await asyncio.gather(
        bench.lobby.get_room(host.account_id, "local", room.code),
        rotated.join_room(guest, "local", room.code, "", "join"),
        rotated.get_room(guest.account_id, "local", room.code),
    )
    assert of_host == of_guest == later
    (kept,) = await bench.rooms.read([room.code])
    assert kept.contract == replace(stored.contract, jws=of_host)
    assert [jws for _, jws in await rotated.list_my_matches(host.account_id)] == [of_host]


async def test_list_my_matches_signs_what_a_crash_left_unsigned(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    with pytest.raises(Crashed):
        dying = bench.process(rooms=Dying(bench.rooms, "keep_signature"))
        await dying.join_room(guest, "local", room.code, "", "join")
    ((_, jws),) = await bench.lobby.list_my_matches(guest.account_id)
    assert (await bench.lobby.get_room(host.account_id, "local", room.code))[1] == jws


async def test_a_signature_is_kept_only_for_its_own_contract(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    ready, jws = await bench.lobby.join_room(guest, "local", room.code, "", "join")
    contract = draw_contract(ISSUER, room.rules, host, guest, now=0, random=bytes(10))
    assert await bench.rooms.keep_signature(replace(ready, contract=contract), "forged") is None
    assert await bench.rooms.keep_signature(ready, "second") == jws
    await bench.client.delete(f"lobby:room:{{{room.code}}}")
    assert await bench.rooms.keep_signature(ready, "third") is None


@pytest.mark.parametrize(("part", "method"), [("index", "claim_hold"), ("index", "add_room")])
async def test_creating_again_after_a_crash_in_the_middle_leaves_one_room(bench: Bench, part, method):
    host, asked = player(), wish()
    with pytest.raises(Crashed):
        await bench.process(**{part: Dying(getattr(bench, part), method)}).create_room(host, asked, somewhere())
    assert await bench.lobby.list_rooms("x", "local", 0, "") == []
    room = await bench.lobby.create_room(host, asked, somewhere())
    assert [found.code for found in await bench.lobby.list_rooms("x", "local", 0, "")] == [room.code]
    await bench.sweeper.sweep()
    assert await open_rooms(bench) == [room.code]
    assert [found.code for found in await bench.lobby.list_rooms("x", "local", 0, "")] == [room.code]


async def test_the_sweeper_gives_a_left_over_room_back_to_the_call_that_made_it(bench: Bench):
    host, asked = player(), wish()
    with pytest.raises(Crashed):
        await bench.process(index=Dying(bench.index, "claim_hold")).create_room(host, asked, somewhere())
    (code,) = await open_rooms(bench)
    await bench.sweeper.sweep()
    assert (await bench.lobby.create_room(host, asked, somewhere())).code == code
    assert await outcome(bench.lobby.create_room(host, wish(), somewhere())) == "ALREADY_IN_ROOM"


async def test_the_sweeper_repairs_list_and_index(bench: Bench):
    host, guest, other = player(), player(), player()
    full = await bench.lobby.create_room(host, wish(), somewhere())
    await bench.lobby.join_room(guest, "local", full.code, "", "join")
    public = await bench.lobby.create_room(host, wish(leave_other=True), somewhere())
    await bench.lobby.create_room(other, wish(is_public=False), somewhere())
    index = [key async for key in bench.client.scan_iter("lobby:*") if b":room:" not in key]
    await bench.client.delete(*index)
    await bench.client.zadd("lobby:list", {"GHOST2": 1, full.code: 2})
    await bench.sweeper.sweep()
    assert await bench.client.zrange("lobby:list", 0, -1) == [public.code.encode()]
    for account in (host.account_id, guest.account_id):
        assert len(await bench.lobby.list_my_matches(account)) == 1
    assert await outcome(bench.lobby.create_room(host, wish(), somewhere())) == "ALREADY_IN_ROOM"
    assert await outcome(bench.lobby.create_room(other, wish(), somewhere())) == "ALREADY_IN_ROOM"
    bench.clock.advance(121)
    await bench.sweeper.sweep()
    assert await bench.client.zcard("lobby:list") == 0


async def test_the_sweeper_goes_through_a_long_list(bench: Bench):
    rooms = [await bench.lobby.create_room(player(), wish(), somewhere()) for _ in range(205)]
    await bench.client.zadd("lobby:list", {f"GHOST{number}": 2**53 - number for number in range(405)})
    await bench.sweeper.sweep()
    assert await bench.client.zcard("lobby:list") == 205
    assert {room.code for room in rooms} == {code.decode() for code in await bench.client.zrange("lobby:list", 0, -1)}


async def test_one_process_sweeps_a_period(bench: Bench):
    assert [await bench.index.lease_sweep(30) for _ in range(3)] == [True, False, False]


async def test_everything_in_redis_expires(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(password="right"), somewhere())
    await outcome(bench.lobby.join_room(guest, "local", room.code, "wrong", "join"))
    await outcome(bench.lobby.get_room("x", "local", "999999"))
    await bench.lobby.join_room(guest, "local", room.code, "right", "join")
    await bench.lobby.create_room(host, wish(leave_other=True), somewhere())
    await bench.index.lease_sweep(30)
    keys = [key async for key in bench.client.scan_iter("*")]
    assert len(keys) > 8
    lives = {key: await bench.client.ttl(key) for key in keys}
    assert all(0 < life <= 3 * 3600 for life in lives.values()), lives


async def test_after_a_total_loss_of_redis_the_lobby_goes_on(bench: Bench):
    host, guest = player(), player()
    room = await bench.lobby.create_room(host, wish(), somewhere())
    await bench.lobby.join_room(guest, "local", room.code, "", "join")
    await bench.client.flushall()
    assert await bench.lobby.list_my_matches(host.account_id) == []
    assert await outcome(bench.lobby.get_room(host.account_id, "local", room.code)) == "ROOM_NOT_FOUND"
    again = await bench.lobby.create_room(host, wish(), somewhere())
    assert (await bench.lobby.join_room(guest, "local", again.code, "", "join"))[1]


async def test_my_matches_are_mine_running_and_newest_first(bench: Bench):
    me, mine = player(), []
    for number in range(4):
        bench.clock.advance(60)
        room = await bench.lobby.create_room(me if number % 2 else player(), wish(), somewhere())
        other = player() if number % 2 else me
        mine.append((await bench.lobby.join_room(other, f"198.51.100.{number}", room.code, "", "join"))[1])
        bench.clock.advance(60)
    await bench.lobby.join_room(
        player(), "", (await bench.lobby.create_room(player(), wish(), somewhere())).code, "", "join"
    )
    assert [jws for _, jws in await bench.lobby.list_my_matches(me.account_id)] == mine[::-1]
    bench.clock.advance(3 * 3600 - 420)
    assert [jws for _, jws in await bench.lobby.list_my_matches(me.account_id)] == mine[:0:-1]
    # An index entry alone shows nobody a contract.
    (room, _), *_ = await bench.lobby.list_my_matches(me.account_id)
    await bench.client.zadd("lobby:matches:{thief}", {room.code: 2**50})
    assert await bench.lobby.list_my_matches("thief") == []


async def test_an_account_keeps_its_newest_fifty_matches(bench: Bench):
    me = player()
    for number in range(52):
        bench.clock.advance(10)
        room = await bench.lobby.create_room(player(), wish(), somewhere())
        await bench.lobby.join_room(me, f"198.51.100.{number}", room.code, "", "join", leave_other=True)
    matches = await bench.lobby.list_my_matches(me.account_id)
    assert len(matches) == 50
    times = [room.contract.fill_time for room, _ in matches]
    assert times == sorted(times, reverse=True)
    assert times[0] == int(bench.clock.now() * 1000)


async def test_keys_of_a_room_share_a_slot(bench: Bench):
    room = await bench.lobby.create_room(player(), wish(password="right"), somewhere())
    await outcome(bench.lobby.join_room(player(), "local", room.code, "wrong", "join"))
    keys = [key async for key in bench.client.scan_iter(f"lobby:*{{{room.code}}}*")]
    assert sorted(key.split(b":")[1] for key in keys) == [b"room", b"tries"]
    assert len({await bench.client.execute_command("CLUSTER", "KEYSLOT", key) for key in keys}) == 1


async def test_news_that_were_lost_with_the_subscribers_connection_are_made_good(redis_url: str):
    """Redis drops subscribers that are slow, and whoever it finds at a failover; the library reconnects silently."""
    gaps, heard = asyncio.Queue[None](), asyncio.Queue[str]()
    client = open_client(redis_url)
    following = asyncio.create_task(RedisNews(client).follow(heard.put_nowait, lambda: gaps.put_nowait(None)))
    try:
        async with asyncio.timeout(10), Redis.from_url(redis_url) as redis:
            await gaps.get()
            await redis.client_kill_filter(_type="pubsub")
            await gaps.get()
            await redis.publish(CHANNEL, "ABCDEF")
            assert await heard.get() == "ABCDEF"
    finally:
        await end_task(following)
        await client.aclose()
