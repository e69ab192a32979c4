"""Several relay processes on one Redis: delivery across, kill -9, moving on, drain, loss of the store."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from koikoi.match.v1 import match_service_pb2 as pb
from redis.asyncio import Redis

from services.kit.clock import SystemClock
from services.match.domain import relay
from services.match.domain.deadlines import Limits
from services.match.ports import Stored
from services.match.store.redis import RedisMatches, bucket_of, match_key
from tests.integration.match.conftest import Place, eventually
from tests.integration.match.raw_client import envelope, hello, sealed


@contextlib.asynccontextmanager
async def process(place: Place, **settings: str) -> AsyncIterator[Any]:
    """Run `python -m services.match` for real; gives its ports and the process."""
    environ = {
        **os.environ,
        **{f"KOIKOI_MATCH_{name.upper()}": value for name, value in {**place.settings, **settings}.items()},
        "KOIKOI_MATCH_GRPC_ADDRESS": "127.0.0.1:0",
        "KOIKOI_MATCH_WEBSOCKET_ADDRESS": "127.0.0.1:0",
        "KOIKOI_MATCH_METRICS_ADDRESS": "127.0.0.1:0",
        "KOIKOI_PARENT_DEATH_SIGNAL": "1",
        "PYTHONPATH": os.pathsep.join(["gen", "."]),
    }
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.match", env=environ, stderr=asyncio.subprocess.PIPE
    )
    assert child.stderr is not None
    lines: list[bytes] = []
    drain: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(20):
            while b"match.started" not in (line := await child.stderr.readline()):
                lines.append(line)
                assert line, b"".join(lines).decode()

        async def read_on() -> None:
            while line := await child.stderr.readline():  # type: ignore[union-attr]
                lines.append(line)

        drain = asyncio.get_running_loop().create_task(read_on())
        yield SimpleNamespace(ports=json.loads(line)["ports"], child=child, lines=lines)
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
        if drain is not None:
            await drain


@pytest.fixture(autouse=True)
def _door(place: Place) -> None:
    place.door = "websocket"


async def test_two_processes_share_a_match(place: Place, door: str):
    place.door = door
    apps = [await place.start(), await place.start()]
    game = place.game()
    clients = []
    for app, seat in zip(apps, game.order, strict=True):
        clients.append(await place.enter(app, game, seat))
        await clients[-1].expect("welcome")
    for number, phase in enumerate((0, 0, 1, 2, 2, 3, 3, 4)):
        data = hello() if number < 2 else sealed()
        await clients[number % 2].send(**envelope(number, phase, data))
        assert (await clients[1 - number % 2].expect("envelope")).sealed == data
    moved = await place.enter(apps[1], game, game.order[0], position=8)
    await moved.expect("welcome")
    assert (await clients[0].expect("closed")).code == 4505  # superseded across processes
    await clients[1].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 1})
    await moved.expect("ended")


async def test_presence_and_endings_are_told_across_processes(place: Place):
    apps = [await place.start(), await place.start()]
    game = place.game()
    a = await place.enter(apps[0], game, game.order[0])
    await a.expect("welcome")
    b = await place.enter(apps[1], game, game.order[1])
    await a.expect_status(connected=[True, True])
    await b.hang_up()
    await a.expect_status(connected=[seat == game.order[0] for seat in (0, 1)])


async def test_an_acknowledged_envelope_survives_kill_9(place: Place):
    """A process dies between the append and the forward; the peer gets the envelope from the other one."""
    other = await place.start()
    game = place.game()
    async with process(place) as doomed:
        a = await place.enter(doomed, game, game.order[0])
        await a.expect("welcome")
        data = hello()
        await a.send(**envelope(0, 0, data))
        await a.expect_acknowledged(1)
        doomed.child.send_signal(signal.SIGKILL)
        assert (await a.expect("closed")).code == 1006
    b = await place.enter(other, game, game.order[1])
    assert (await b.expect("welcome")).counter == 1
    assert (await b.expect("envelope")).sealed == data
    a = await place.enter(other, game, game.order[0], position=1)
    await a.expect("welcome")
    await b.send(**envelope(1, 0, hello()))
    await a.expect("envelope")


async def test_the_append_itself_may_die_unanswered_and_is_simply_sent_again(place: Place):
    """Killed at many points around the append: what the client sends again is stored exactly once."""
    other = await place.start()
    game = place.game()
    b = await place.enter(other, game, game.order[1])
    await b.expect("welcome")
    for number, wait_s in enumerate((0.0, 0.002, 0.01)):
        if number % 2:  # B's turn goes through the living process
            await b.send(**envelope(number, 0, hello()))
            await b.expect_acknowledged(number + 1)
            continue
        data = hello() if number < 2 else sealed()
        async with process(place) as doomed:
            a = await place.enter(doomed, game, game.order[0], position=number)
            await a.expect("welcome")
            await a.send(**envelope(number, 0 if number < 2 else 1, data))
            await asyncio.sleep(wait_s)
            doomed.child.send_signal(signal.SIGKILL)
        a = await place.enter(other, game, game.order[0], position=number)
        assert (await a.expect("welcome")).counter in (number, number + 1)
        await a.send(**envelope(number, 0 if number < 2 else 1, data))
        await a.expect_acknowledged(number + 1)
        assert (await b.expect("envelope")).sealed == data
        await a.hang_up()


async def test_presence_of_a_dead_process_is_unknown_and_not_charged(place: Place):
    """The seat's process dies with 0.6 s left on its turn; it is not charged before its whole gone time is over."""
    short = {"step_s": "1.0", "first_hello_s": "1.0", "grace_s": "0", "gone_s": "5", "silence_s": "0.6"}
    other = await place.start(**short)
    game = place.game()
    async with process(place, **short) as doomed:
        a = await place.enter(doomed, game, game.order[0])
        await a.expect("welcome")
        b = await place.enter(other, game, game.order[1])
        await b.expect("welcome")
        doomed.child.send_signal(signal.SIGKILL)
        await b.expect_status(connected=[seat == game.order[1] for seat in (0, 1)])
        await asyncio.sleep(1.2)  # its turn would be over by now
        again = await place.enter(other, game, game.order[0])
        await again.expect("welcome")
        await again.send(**envelope(0, 0, hello()))
        await b.expect("envelope")


async def test_a_process_taken_for_dead_speaks_up(place: Place):
    """Its presence was doubted, but its sockets live: it says so, and nobody loses a connection."""
    app = await place.start()
    game = place.game()
    a, b = await place.pair(app, game)
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        store = RedisMatches(redis, SystemClock())
        stored = await store.load(game.match_id)
        assert stored is not None
        now_ms = int(SystemClock().now() * 1000)
        held = {seat.process: now_ms for seat in stored.match.seats}
        doubted = relay.lose_processes(stored.match, held, now_ms, Limits())
        assert isinstance(await store.commit(stored, stored.contract, doubted), Stored)

        async def are_both_back() -> bool:
            now = await store.load(game.match_id)
            return now is not None and all(seat.is_connected for seat in now.match.seats)

        await eventually(are_both_back)
    await a.send(**envelope(0, 0, hello()))
    await b.expect("envelope")


async def test_a_drain_moves_everybody_and_loses_nothing(place: Place):
    other = await place.start()
    game = place.game()
    async with process(place) as leaving:
        a, b = await place.pair(leaving, game)
        idle = await place.dial(leaving, game.match_id)
        await idle.expect("challenge")
        data = hello()
        await a.send(**envelope(0, 0, data))
        leaving.child.send_signal(signal.SIGTERM)
        for client in (a, b):
            frame = await client.next()
            while isinstance(frame, pb.ServerFrame):
                frame = await client.next()
            assert (frame.code, frame.reason.split()[0]) == (4003, "DRAINING")
        assert await asyncio.wait_for(leaving.child.wait(), 15) == 0
    b = await place.enter(other, game, game.order[1])
    await b.expect("welcome")
    a = await place.enter(other, game, game.order[0])
    await a.expect("welcome")
    await a.send(**envelope(0, 0, data))
    await a.expect_acknowledged(1)
    assert (await b.expect("envelope")).sealed == data


async def test_a_draining_process_is_not_ready_and_takes_no_joins(place: Place):
    app = await place.start()
    url = f"http://127.0.0.1:{app.ports['metrics']}"
    async with aiohttp.ClientSession() as http:
        assert (await http.get(f"{url}/readyz")).status == 200
        await app.begin_drain()
        assert (await http.get(f"{url}/readyz")).status == 503
        assert (await http.get(f"{url}/healthz")).status == 200
    client = await place.enter(app, place.game(), 0)
    closed = await client.expect("closed")
    assert closed.code == 4003
    assert closed.reason.startswith("DRAINING retry_after_ms=")


async def test_a_match_survives_the_total_loss_of_redis(place: Place, door: str):
    place.door = door
    app = await place.start()
    game = place.game()
    a, b = await place.pair(app, game)
    epoch = a.seen[-1].welcome.epoch
    last = b""
    for number, phase in enumerate((0, 0, 1, 2, 2)):
        last = hello() if number < 2 else sealed()
        await (a, b)[number % 2].send(**envelope(number, phase, last))
        await (b, a)[number % 2].expect("envelope")
    await a.expect_acknowledged(5)
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        await redis.flushall()
    await b.send(**envelope(5, 3, sealed()))
    closed = await b.expect("closed")
    assert (closed.code, closed.reason.split()[0]) == (4004, "STORE_UNAVAILABLE")
    b = await place.enter(app, game, game.order[1], position=5, epoch=epoch)
    welcome = await b.expect("welcome")
    assert (welcome.is_recovering, welcome.is_recovered) == (True, False)
    a = await place.enter(app, game, game.order[0], position=5, epoch=epoch)
    for client in (a, b):
        welcome = await client.expect("welcome")
        assert (welcome.is_recovering, welcome.is_recovered, welcome.counter) == (False, False, 5)
        assert welcome.epoch != epoch
    await a.send(**envelope(4, 2, last))  # the owner of the message before sends it again
    await a.expect_acknowledged(5)
    answer = sealed()
    await b.send(**envelope(5, 3, answer))
    assert (await a.expect("envelope")).sealed == answer
    assert not any(getattr(frame, "HasField", lambda _: False)("envelope") for frame in b.seen)  # b had number 4


async def test_a_lost_tail_is_repaired_by_the_seat_that_is_ahead(place: Place):
    app = await place.start()
    game = place.game()
    a, b = await place.pair(app, game)
    epoch = a.seen[-1].welcome.epoch
    await a.send(**envelope(0, 0, first := hello()))
    await b.expect("envelope")
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        before = await redis.hgetall(match_key(game.match_id))
        await b.send(**envelope(1, 0, second := hello()))
        await a.expect("envelope")
        await b.expect_acknowledged(2)
        await redis.hset(match_key(game.match_id), mapping=before)
    await a.send(**envelope(2, 1, third := sealed()))  # counted on the number that the store lost
    assert (await a.expect("closed")).code == 4004
    assert (await b.expect("closed")).code == 4004
    a = await place.enter(app, game, game.order[0], position=2, epoch=epoch)
    assert (await a.expect("welcome")).is_recovering
    b = await place.enter(app, game, game.order[1], position=2, epoch=epoch)
    assert (await b.expect("welcome")).counter == 2
    await b.send(**envelope(1, 0, second))
    await b.expect_acknowledged(2)
    welcome = await a.expect("welcome")
    assert (welcome.counter, welcome.is_recovering) == (2, False)
    await a.send(**envelope(2, 1, third))
    assert (await b.expect("envelope")).sealed == third
    assert first != second


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_lie_about_the_position_gains_nothing_and_disturbs_nobody(place: Place, processes: int):
    apps = [await place.start() for _ in range(processes)]
    game = place.game()
    a = await place.enter(apps[0], game, game.order[0])
    await a.expect("welcome")
    b = await place.enter(apps[-1], game, game.order[1])
    epoch = (await b.expect("welcome")).epoch
    await a.send(**envelope(0, 0, hello()))
    await b.expect("envelope")
    liar = await place.enter(apps[0], game, game.order[0], position=30, epoch=epoch)
    for client in (liar, b):
        assert (await client.expect("welcome")).is_recovering
    a = await place.enter(apps[0], game, game.order[0], position=1, epoch=epoch)
    for client in (a, b):
        welcome = await client.expect("welcome")
        assert (welcome.is_recovering, welcome.counter, welcome.epoch) == (False, 1, epoch)
    await b.send(**envelope(1, 0, hello()))
    await a.expect("envelope")


async def test_a_connected_seat_s_position_is_known_without_asking(place: Place):
    """Only the seat that is ahead joins again; its peer's connection lives on, in another process."""
    apps = [await place.start(), await place.start()]
    game = place.game()
    b = await place.enter(apps[1], game, game.order[1])
    epoch = (await b.expect("welcome")).epoch
    a = await place.enter(apps[0], game, game.order[0], position=1, epoch=epoch)  # as if number 0 had been lost
    welcome = await a.expect("welcome")
    if welcome.is_recovering:
        welcome = await a.expect("welcome")
    assert (welcome.counter, welcome.is_recovered) == (1, False)
    await a.send(**envelope(0, 0, data := hello()))
    while True:
        frame = await b.next()
        assert isinstance(frame, pb.ServerFrame)
        if frame.WhichOneof("frame") == "envelope":
            assert frame.envelope.sealed == data
            break
    await b.send(**envelope(1, 0, hello()))
    await a.expect("envelope")


async def test_positions_that_cannot_be_reconciled_end_disputed_and_charge_nobody(place: Place):
    app = await place.start(recovery_s="1.5")
    game = place.game(age_s=10)
    a = await place.enter(app, game, game.order[0], position=9, epoch=bytes(8))
    b = await place.enter(app, game, game.order[1], position=20, epoch=bytes(8))
    for client in (a, b):
        assert (await client.expect("welcome")).is_recovering
        await client.send(**envelope(20, 4, sealed()))
        assert pb.Reason.Name((await client.expect("refusal")).reason) == "REASON_NOT_YOUR_TURN"
    for client in (a, b):
        ended = await client.expect("ended")
        assert ended.outcome == pb.OUTCOME_DISPUTED
        assert not ended.HasField("seat")


async def test_a_pause_of_redis_only_delays(place: Place):
    app = await place.start()
    game = place.game()
    a, _b = await place.pair(app, game)
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        await redis.client_pause(1500, all=True)
        await a.send(**envelope(0, 0, hello()))
    await a.expect_acknowledged(1, timeout=8)


async def test_the_sweep_of_one_process_is_enough(place: Place):
    """Three processes sweep; every match ends exactly once."""
    short = {"step_s": "0.2", "first_hello_s": "0.2", "grace_s": "0"}
    apps = [await place.start(**short) for _ in range(3)]
    games = [place.game() for _ in range(6)]
    for index, game in enumerate(games):
        await place.pair(apps[index % 3], game)
    async with Redis.from_url(place.settings["redis_url"]) as redis:

        async def are_all_told() -> bool:
            return len({entry[b"match_id"] for _, entry in await redis.xrange("outcomes")}) == len(games)

        await eventually(are_all_told)
        await asyncio.sleep(0.5)
        assert len(await redis.xrange("outcomes")) == len(games)
        for game in games:
            tag = f"{{b{bucket_of(game.match_id):03d}}}"
            assert await redis.zcard(f"{tag}:closed") == 0
            assert await redis.zcard(f"{tag}:deadlines") == 0
            assert await redis.pttl(match_key(game.match_id)) > 0
