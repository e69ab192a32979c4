"""The seams between processes: news lost on the way, subscriptions that fail, clocks that are set."""

import asyncio
import contextlib
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Any

from koikoi.match.v1 import match_service_pb2 as pb
from redis.asyncio import Redis

from services.kit.clock import SystemClock
from services.kit.redis import open_client
from services.match.domain import relay
from services.match.domain.deadlines import Limits
from services.match.domain.envelope import Envelope
from services.match.domain.errors import StoreUnavailable
from services.match.store.clock import RedisClock
from services.match.store.news import RedisNews
from services.match.store.redis import RedisMatches, bucket_of, channel_of, match_key
from services.match.store.state import dump_match
from tests.integration.match.conftest import Place, begin, eventually
from tests.integration.match.raw_client import envelope, sealed, uuid7
from tests.integration.match.test_bad_days import WrongClock
from tests.integration.match.wire import Wire


async def test_news_that_were_lost_with_the_subscriber_s_connection_are_made_good(place: Place):
    """Redis drops subscribers that are slow, and whoever it finds at a failover; the library reconnects silently."""
    app = await place.start()
    game = place.game()
    a, b = await begin(place, [app], game)
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        stored = await RedisMatches(redis, SystemClock()).load(game.match_id)
        assert stored is not None
        now_ms = int(SystemClock().now() * 1000)
        sent, seat = Envelope(2, 1, sealed()), game.order[0]
        connection = stored.match.seats[seat].connection
        after = relay.accept(stored.match, seat, connection, sent, now_ms, Limits())  # as another process would
        revision = secrets.token_bytes(8)
        fields: dict[Any, Any] = {"revision": revision, "state": dump_match(after), "sealed": sent.sealed}
        async with redis.pipeline(transaction=False) as pipeline:
            pipeline.client_kill_filter(_type="pubsub")
            pipeline.hset(match_key(game.match_id), mapping=fields)
            pipeline.execute_command(
                "SPUBLISH", channel_of(bucket_of(game.match_id)), game.match_id.encode() + revision
            )
            await pipeline.execute()
    assert (await b.expect("envelope")).sealed == sent.sealed
    await a.expect_acknowledged(3)


async def test_a_receipt_does_not_swallow_what_it_read(place: Place):
    """The state that a receipt is made of may be newer than what its connection was told."""
    apps = [await place.start(), await place.start()]
    game = place.game()
    clients = await begin(place, apps, game)
    for number in range(2, 8):
        sender, receiver = clients[number % 2], clients[1 - number % 2]
        for _ in range(25):
            await receiver.send(receipt_request={})
        await sender.send(**envelope(number, 1 if number == 2 else 2, data := sealed()))
        async with asyncio.timeout(3):
            while True:
                frame = await receiver.next()
                assert isinstance(frame, pb.ServerFrame)
                if frame.WhichOneof("frame") == "envelope":
                    assert frame.envelope.sealed == data
                    break


async def test_a_subscription_that_failed_is_made_by_whoever_comes_next(redis_url: str, tmp_path: Path):
    """Both players come back at once while Redis is away; when it is there again, so are they."""
    path = tmp_path / "away.sock"
    client = open_client(f"unix://{path}")
    news, match_id = RedisNews(client), uuid7()

    async def come_back() -> None:
        while True:
            with contextlib.suppress(StoreUnavailable):
                await news.watch(match_id)
                return
            await asyncio.sleep(1)

    async def nothing() -> None: ...

    reader = asyncio.create_task(news.follow(lambda *_: None, nothing))
    players = [asyncio.create_task(come_back()) for _ in range(2)]
    await asyncio.sleep(0.5)
    path.symlink_to(redis_url.removeprefix("unix://").partition("?")[0])
    try:
        _, waiting = await asyncio.wait(players, timeout=8)
        assert not waiting
    finally:
        for task in (reader, *players):
            task.cancel()
        await asyncio.gather(reader, *players, return_exceptions=True)
        await news.aclose()
        await client.aclose()


async def test_a_subscription_whose_other_end_is_gone_without_a_word_is_made_again(redis_url: str, tmp_path: Path):
    """As after a failover: no packet comes, not even a reset. The kernel would notice after a quarter of an hour."""
    wire, match_id = Wire(redis_url), uuid7()
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def on_gap(match_ids: Collection[str]) -> None:
        for one in match_ids:
            heard.put_nowait(f"gap {one}")

    async with wire.serving(tmp_path / "redis.sock") as url, Redis.from_url(redis_url) as redis:
        client = open_client(url)
        news = RedisNews(client, silence_s=0.3)
        reader = asyncio.create_task(news.follow(lambda one, _: heard.put_nowait(one), on_gap))
        try:
            await news.watch(match_id)
            await asyncio.sleep(1)  # quiet, but alive
            wire.go_dead()
            for expected in (f"gap {match_id}", match_id):
                await redis.execute_command("SPUBLISH", channel_of(bucket_of(match_id)), match_id.encode() + bytes(8))
                async with asyncio.timeout(5):
                    assert await heard.get() == expected
        finally:
            reader.cancel()
            await asyncio.gather(reader, return_exceptions=True)
            await news.aclose()
            await client.aclose()


async def test_a_client_that_leaves_while_its_arrival_is_stored_leaves_no_ghost(
    place: Place, door: str, redis_url: str, tmp_path: Path
):
    """A ghost would be charged for a turn it cannot take, and keep its opponent waiting for nobody."""
    place.door, wire = door, Wire(redis_url)
    async with wire.serving(tmp_path / "redis.sock") as url, Redis.from_url(redis_url) as redis:
        app = await place.start(redis_url=url)
        game = place.game()
        b = await place.enter(app, game, game.order[1])
        await b.expect("welcome")
        wire.withhold_answers_at(b'"joins":1},{"presence":"connected"')  # both are here
        a = await place.enter(app, game, game.order[0])
        await wire.wait_until_withheld()
        await a.hang_up()
        await asyncio.sleep(1.6)
        wire.go_on()

        async def is_gone() -> bool:
            stored = await RedisMatches(redis, SystemClock()).load(game.match_id)
            assert stored is not None
            seat = stored.match.seats[game.order[0]]
            return seat.joins == 1 and not seat.is_connected

        await eventually(is_gone)
        await place.stack.aclose()


async def test_a_machine_s_clock_that_is_set_moves_no_deadline(redis_url: str):
    """Not even for what is decided before the store is asked for its time again."""
    machine, client = WrongClock(0), open_client(redis_url)
    clock = RedisClock(client, machine)
    await clock.adjust()
    before = clock.now()
    machine.ahead_s = -600
    assert 0 <= clock.now() - before < 1
    await client.aclose()
