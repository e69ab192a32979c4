"""What an operator's bad day does to outcomes: Postgres hangs, Redis falls back or holds half a match."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from koikoi.match.v1 import match_service_pb2 as pb
from redis.asyncio import Redis

from services.kit.clock import SystemClock
from services.match.store.redis import bucket_of, match_key
from tests.integration.match.conftest import Place, begin, eventually
from tests.integration.match.raw_client import envelope, hello, sealed
from tests.integration.match.test_outcomes import record
from tests.integration.match.test_processes import process


class WrongClock(SystemClock):
    """A machine's clock that is off."""

    def __init__(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s

    def now(self) -> float:
        return super().now() + self.ahead_s


SHORT = {"step_s": "1", "first_hello_s": "1", "grace_s": "0.1"}


async def test_a_hung_postgres_delays_no_deadline_and_loses_no_outcome(place: Place, database_url: Callable[..., str]):
    app = await place.start(**SHORT)
    games = [place.game() for _ in range(3)]
    pairs = [await place.pair(app, game) for game in games]
    owner = await asyncpg.connect(database_url("match", "postgres"))
    async with owner.transaction():
        await owner.execute("LOCK TABLE match.ended_match IN ACCESS EXCLUSIVE MODE")
        await pairs[0][0].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 1})
        await pairs[0][0].expect("ended")
        for pair in pairs[1:]:
            assert (await pair[0].expect("ended", timeout=3)).outcome == pb.OUTCOME_NEVER_STARTED
        async with aiohttp.ClientSession() as http:
            text = await (await http.get(f"http://127.0.0.1:{app.ports['metrics']}/metrics")).text()
        assert "koikoi_match_unserved_seconds_total 0.0" in text
        await asyncio.sleep(5.5)  # an attempt to record has been given up by now
    await owner.close()
    async with asyncio.timeout(20):
        for game in games:
            while True:
                try:
                    await record(place, game, is_stormy=True)
                    break
                except TimeoutError:
                    continue


async def test_a_redis_that_fell_back_behind_an_end_changes_no_outcome(place: Place):
    """A restored dump holds the match as open; what was recorded first stands, for devices and for readers."""
    app = await place.start(**SHORT)
    game = place.game()
    a, b = await begin(place, [app], game)
    key, tag = match_key(game.match_id), f"{{b{bucket_of(game.match_id):03d}}}"
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        before = await redis.hgetall(key)
        due: Any = await redis.zscore(f"{tag}:deadlines", game.match_id)
        await a.send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 2})
        await b.expect("ended")
        await record(place, game)
        await redis.delete(key, "outcomes")
        await redis.hset(key, mapping=before)
        await redis.zadd(f"{tag}:deadlines", {game.match_id: due + 1000})
        late = await place.enter(app, game, game.order[0], position=9, epoch=bytes(8))
        await late.expect("welcome")
        assert (await late.expect("ended")).outcome == pb.OUTCOME_DISPUTED

        async def is_told() -> bool:
            return bool(await redis.xlen("outcomes"))

        await eventually(is_told)
        row = await record(place, game)
        assert (row["outcome"], row["dispute_reason"]) == ("disputed", 2)


async def test_a_redis_that_forgets_an_end_before_it_is_recorded_charges_nobody_for_it(place: Place):
    """Both devices were told, and left; in the store the match is open again and somebody seems to be late."""
    await place.start(**SHORT, sweep_s="1")
    app = await place.start(**SHORT, sweep_s="1")
    game = place.game()
    a, b = await begin(place, [app], game)
    key, tag = match_key(game.match_id), f"{{b{bucket_of(game.match_id):03d}}}"
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        before = await redis.hgetall(key)
        due: Any = await redis.zscore(f"{tag}:deadlines", game.match_id)
        await a.send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 2})
        await b.expect("ended")
        async with redis.pipeline(transaction=True) as fall_back:
            fall_back.hset(key, mapping=before)
            fall_back.zadd(f"{tag}:deadlines", {game.match_id: due})
            fall_back.zrem(f"{tag}:closed", game.match_id)
            await fall_back.execute()
        row = await record(place, game)
        assert (row["outcome"], row["seat"], row["dispute_reason"]) == ("disputed", None, 2)

        async def has_ended_again() -> bool:
            return not await redis.zcard(f"{tag}:deadlines")

        await eventually(has_ended_again)
        told = {entry[b"outcome"] for _, entry in await redis.xrange("outcomes")}
        assert told == {b"disputed"}


async def test_half_a_match_in_redis_is_swept_away(place: Place):
    """A deadline without its match must not become a match that can neither be begun nor end."""
    app = await place.start()
    game = place.game()
    tag = f"{{b{bucket_of(game.match_id):03d}}}"
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        await redis.zadd(f"{tag}:deadlines", {game.match_id: 2**52})
        await redis.set(f"{tag}:swept", int(place.lobby.clock.now() * 1000) - 20_000)

        async def is_gone() -> bool:
            return not await redis.zcard(f"{tag}:deadlines")

        await eventually(is_gone)
    await place.pair(app, game)


async def test_a_hundred_halves_of_matches_hide_no_deadline(place: Place):
    """Their deadlines are the oldest of their bucket, and there is nothing to end."""
    await place.start(**SHORT)
    app = await place.start(**SHORT)
    game = place.game()
    a, _ = await place.pair(app, game)
    tag = f"{{b{bucket_of(game.match_id):03d}}}"
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        await redis.zadd(f"{tag}:deadlines", {f"half {number}": number for number in range(100)})
        assert (await a.expect("ended")).outcome == pb.OUTCOME_NEVER_STARTED
        assert await redis.zcard(f"{tag}:deadlines") == 0


async def test_a_match_whose_closer_died_is_recorded_by_another_process(place: Place, database_url: Callable[..., str]):
    await place.start()
    game = place.game()
    owner = await asyncpg.connect(database_url("match", "postgres"))
    async with process(place) as doomed:
        a, b = await place.pair(doomed, game)
        async with owner.transaction():
            await owner.execute("LOCK TABLE match.ended_match IN ACCESS EXCLUSIVE MODE")
            await a.send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 3})
            await b.expect("ended")
            doomed.child.kill()
            await doomed.child.wait()
    await owner.close()

    async def is_recorded() -> bool:
        async with Redis.from_url(place.settings["redis_url"]) as redis:
            return bool(await redis.xlen("outcomes"))

    await eventually(is_recorded, within_s=15)
    row = await record(place, game)
    assert (row["outcome"], row["dispute_reason"]) == ("disputed", 3)


async def test_machines_whose_clocks_disagree_still_agree_on_deadlines(place: Place, tmp_path: Path):
    """Each would take the other's sweeps for gaps, and the other for dead."""
    clocks = [WrongClock(20), WrongClock(-20)]
    apps = [await place.start_at(clock, **SHORT, key_directory=str(tmp_path / str(clock.ahead_s))) for clock in clocks]
    game = place.game()
    seats = [await place.enter(app, game, seat) for app, seat in zip(apps, game.order, strict=True)]
    for client in seats:
        await client.expect("welcome")
    await seats[0].send(**envelope(0, 0, hello()))
    await seats[1].expect("envelope")
    await seats[1].send(**envelope(1, 0, hello()))
    await seats[0].expect("envelope")
    await asyncio.sleep(0.5)
    clocks[0].ahead_s, clocks[1].ahead_s = -600, 600  # both are set, wrongly
    await asyncio.sleep(0.2)
    await seats[0].send(**envelope(2, 1, sealed()))
    await seats[1].expect("envelope")
    ended = await seats[0].expect("ended", timeout=4)
    assert (ended.outcome, ended.seat) == (pb.OUTCOME_STALLED, game.order[1])
