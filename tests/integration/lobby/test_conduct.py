"""Outcomes become conduct: each match once, whoever dies and whatever is lost."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.lobby.v1 import lobby_service_pb2 as pb
from redis.asyncio import Redis
from structlog.testing import capture_logs

from services.kit import postgres
from services.kit.app import end_task
from services.kit.clock import SystemClock
from services.lobby.conduct import Conducts, Counting
from services.lobby.domain.conduct import WINDOW, Behaviour, Conduct, Mark
from services.lobby.store.conduct import PostgresMarks
from services.lobby.store.outcomes import GROUP, STREAM, RedisOutcomes
from tests.harness import make_caller
from tests.integration.lobby.test_lobby_rpc import HOUSE, create, join, refusal

NINTENDO = pb.Rules(preset="nintendo")
END = 1_700_000_000_000


def new_id() -> str:
    return f"account-{secrets.token_hex(6)}"


def entry(host: str, guest: str, outcome: str = "abandoned", seat: object = 1, end: int = END, match_id: str = ""):
    return {
        "match_id": match_id or str(uuid.uuid4()), "outcome": outcome, "seat": "" if seat is None else str(seat),
        "account_0": host, "account_1": guest, "end_time_ms": end,
    }  # fmt: skip


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
async def marks(database_url: Callable[..., str]) -> AsyncIterator[PostgresMarks]:
    pool = await postgres.open_pool(database_url("lobby"), schema="lobby", max_size=8)
    yield PostgresMarks(pool)
    await pool.close()


@asynccontextmanager
async def counting(redis_url: str, marks: PostgresMarks, processes: int, counts: Counter[str], claim_after_ms: int):
    """So many processes' worth of counting, each with connections of its own."""
    clients = [Redis.from_url(redis_url) for _ in range(processes)]
    conducts = Conducts(marks, 300.0, SystemClock())
    tasks = [
        asyncio.create_task(
            Counting(
                RedisOutcomes(client, claim_after_ms=claim_after_ms, block_ms=20),
                marks,
                conducts,
                lambda result: counts.update([result]),
            ).run()
        )
        for client in clients
    ]
    try:
        yield
    finally:
        for task in tasks:
            await end_task(task)
        for client in clients:
            await client.aclose()


async def settled(check, limit_s: float = 20.0):
    """Wait until a check holds."""
    async with asyncio.timeout(limit_s):
        while not await check():
            await asyncio.sleep(0.05)


async def is_drained(redis: Redis) -> bool:
    groups = await redis.xinfo_groups(STREAM) if await redis.exists(STREAM) else []
    return any(group["name"] == GROUP.encode() and not group["pending"] and group["lag"] == 0 for group in groups)


async def test_the_same_outcome_fifty_times_before_five_consumers_counts_once(redis_url, redis, marks):
    host, guest, counts = new_id(), new_id(), Counter()
    same = entry(host, guest)
    for _ in range(50):
        await redis.xadd(STREAM, same)
    async with counting(redis_url, marks, 5, counts, claim_after_ms=0):  # each may take from each at any time
        await settled(lambda: is_drained(redis))
    assert counts["counted"] == 1
    assert set(counts) <= {"counted", "repeated"}
    [charged], [completed] = await marks.read(guest), await marks.read(host)
    assert charged == Mark(guest, same["match_id"], host, Behaviour.CHARGED, END)
    assert completed == Mark(host, same["match_id"], guest, Behaviour.COMPLETED, END)


async def test_fifty_outcomes_of_one_account_in_every_order_leave_the_newest_thirty(redis_url, redis, marks):
    host, counts = new_id(), Counter()
    sent = [entry(host, new_id(), "stalled", number % 2, END + number * 1000) for number in range(50)]
    for one in sorted([*sent, *sent], key=lambda _: secrets.randbits(32)):
        await redis.xadd(STREAM, one)
    async with counting(redis_url, marks, 5, counts, claim_after_ms=0):
        await settled(lambda: is_drained(redis))
    kept = await marks.read(host)
    assert [mark.match_id for mark in kept] == [one["match_id"] for one in reversed(sent[-WINDOW:])]
    await marks.add(kept[:1])  # whatever a crash left over, the next match takes away
    assert await marks._pool.fetchval("SELECT count(*) FROM mark WHERE account_id = $1", host) == WINDOW


async def test_what_a_dead_process_took_is_taken_over(redis_url, redis, marks):
    host, guest, counts = new_id(), new_id(), Counter()
    dead = RedisOutcomes(redis, block_ms=20)
    await dead.read()
    await redis.xadd(STREAM, entry(host, guest))
    assert len(await dead.read()) == 1  # and dies: neither counted nor acknowledged
    async with counting(redis_url, marks, 1, counts, claim_after_ms=100):
        await settled(lambda: is_drained(redis))
    assert counts == {"counted": 1}
    assert len(await marks.read(guest)) == 1


async def test_a_lost_stream_begins_anew_and_conduct_stays(redis_url, redis, marks):
    host, guest, counts = new_id(), new_id(), Counter()
    async with counting(redis_url, marks, 2, counts, claim_after_ms=100):
        await redis.xadd(STREAM, entry(host, guest))
        await settled(lambda: _has(marks, guest, 1))
        await redis.flushall()
        assert len(await marks.read(guest)) == 1
        await redis.xadd(STREAM, entry(host, guest))
        await settled(lambda: _has(marks, guest, 2))
    assert len(await marks.read(guest)) == 2


async def _has(marks: PostgresMarks, account_id: str, number: int) -> bool:
    return len(await marks.read(account_id)) == number


async def test_malformed_entries_are_counted_skipped_and_not_quoted(redis_url, redis, marks):
    host, guest, counts = new_id(), new_id(), Counter()
    bad = [{"x": "SECRET"}, entry(host, "SECRET SECRET"), {**entry(host, guest), "outcome": "SECRET"}]
    for one in [*bad, entry(host, guest, "expired", None), entry(host, guest)]:
        await redis.xadd(STREAM, one)
    with capture_logs() as lines:
        async with counting(redis_url, marks, 1, counts, claim_after_ms=100):
            await settled(lambda: is_drained(redis))
    assert counts == {"malformed": 3, "neutral": 1, "counted": 1}
    assert "lobby.outcomes.malformed" in {line["event"] for line in lines}
    assert "SECRET" not in repr(lines)


class NoMarks:
    """Postgres that is away."""

    async def add(self, marks):
        raise ConnectionRefusedError

    async def read(self, account_id):
        raise ConnectionRefusedError


async def test_without_postgres_nothing_is_acknowledged_and_nobody_is_stopped(redis_url, redis, marks, fake_clock):
    host, guest, counts = new_id(), new_id(), Counter()
    async with counting(redis_url, NoMarks(), 1, counts, claim_after_ms=0):
        await redis.xadd(STREAM, entry(host, guest))
        await asyncio.sleep(0.5)
        assert not await is_drained(redis)
        assert not counts
    assert await Conducts(NoMarks(), 300.0, fake_clock).check(guest) == Conduct()
    async with counting(redis_url, marks, 1, counts, claim_after_ms=0):
        await settled(lambda: is_drained(redis))
    assert counts == {"counted": 1}


async def test_a_cool_down_closes_ranked_rooms_only_and_ends(process, fake_clock, redis):
    quitter, other = make_caller("Jiro"), make_caller("Hanako")
    says, hosts = process.bearer(quitter), process.bearer(other)
    conduct = pb.GetMyConductRequest()
    assert await process.stub.GetMyConduct(conduct, metadata=says) == pb.GetMyConductResponse(window=30)
    ranked = (await process.stub.CreateRoom(create(), metadata=hosts)).room
    assert not ranked.HasField("host_completion_percent")
    now_ms = int(fake_clock.now() * 1000)
    await redis.xadd(STREAM, entry(quitter.account_id, other.account_id, "stalled", 0, now_ms - 1000))

    async def is_counted() -> bool:
        return bool((await process.stub.GetMyConduct(conduct, metadata=says)).charged)

    await settled(is_counted)
    mine = await process.stub.GetMyConduct(conduct, metadata=says)
    assert (mine.completion_percent, mine.completed, mine.charged, mine.disputed) == (0, 0, 1, 0)
    assert mine.cool_down_end_time == Timestamp(seconds=(now_ms - 1000) // 1000 + 300)
    assert (await process.stub.GetMyConduct(conduct, metadata=hosts)).completion_percent == 100
    for call in (
        process.stub.CreateRoom(create(rules=HOUSE), metadata=says),
        process.stub.JoinRoom(join(ranked.code), metadata=says),
    ):
        code, info, retry_s = await refusal(call)
        assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "COOLING_DOWN")
        assert retry_s == 299
        assert info.metadata["until"].endswith("Z")
    unranked = (await process.stub.CreateRoom(create(rules=NINTENDO), metadata=says)).room
    assert unranked.host_completion_percent == 0
    await process.stub.LeaveRoom(pb.LeaveRoomRequest(code=unranked.code, request_id="leave"), metadata=says)
    fake_clock.advance(299.5)
    joined = process.bearer(make_caller("Taro"))
    again = (await process.stub.CreateRoom(create(), metadata=process.bearer(quitter))).room
    assert again.host_completion_percent == 0
    assert (await process.stub.GetRoom(pb.GetRoomRequest(code=again.code), metadata=joined)).room == again


async def test_a_knock_at_a_ranked_room_is_refused_in_a_cool_down(process, fake_clock, redis):
    quitter = make_caller("Jiro")
    room = (await process.stub.CreateRoom(create(needs_approval=True), metadata=process.newcomer())).room
    await redis.xadd(STREAM, entry(quitter.account_id, new_id(), "abandoned", 0, int(fake_clock.now() * 1000)))
    says = process.bearer(quitter)

    async def is_counted() -> bool:
        return bool((await process.stub.GetMyConduct(pb.GetMyConductRequest(), metadata=says)).charged)

    await settled(is_counted)
    stream = process.stub.WatchRoom(pb.WatchRoomRequest(code=room.code), metadata=says)
    _, info, _ = await refusal(stream.__aiter__().__anext__())
    assert info.reason == "COOLING_DOWN"


async def test_outcomes_are_read_where_the_setting_says_and_counted_in_metrics(start_lobby, redis_url, redis):
    host, guest = new_id(), new_id()
    async with start_lobby(redis_url=redis_url + "/1", outcomes_redis_url=redis_url) as process:
        await redis.xadd(STREAM, entry(host, guest))
        address = f"http://127.0.0.1:{process.ports['metrics']}/metrics"
        async with aiohttp.ClientSession() as session:

            async def is_counted() -> bool:
                text = await (await session.get(address)).text()
                return 'koikoi_lobby_outcomes_total{result="counted"} 1.0' in text

            await settled(is_counted)


_TAKE_AND_HANG = """
import asyncio, sys
from services.kit.redis import open_client
from services.lobby.store.outcomes import RedisOutcomes
async def main():
    outcomes = RedisOutcomes(open_client(sys.argv[1]))
    while not await outcomes.read():
        pass
    print("taken", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_a_process_killed_with_outcomes_in_its_hands(redis_url, redis, marks):
    host, guest, counts = new_id(), new_id(), Counter()
    environ = {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _TAKE_AND_HANG, redis_url, env=environ, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    await redis.xadd(STREAM, entry(host, guest))
    async with asyncio.timeout(20):
        assert await child.stdout.readline() == b"taken\n"
    child.send_signal(signal.SIGKILL)
    await child.wait()
    assert not await is_drained(redis)
    async with counting(redis_url, marks, 2, counts, claim_after_ms=100):
        await settled(lambda: is_drained(redis))
    assert counts == {"counted": 1}
    assert len(await marks.read(host)) == len(await marks.read(guest)) == 1
