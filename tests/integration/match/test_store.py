"""The scripts on a real server, and the same promises of a tiny model in memory."""

import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from services.kit.clock import SystemClock
from services.match.domain import relay
from services.match.domain.contract import Contract
from services.match.domain.deadlines import Limits
from services.match.domain.envelope import Envelope
from services.match.domain.errors import StoreUnavailable
from services.match.domain.match import Match
from services.match.ports import Conflict, Due, MatchStore, Stored
from services.match.store.redis import BUCKETS, RedisMatches, bucket_of, channel_of, match_key
from tests.integration.match.raw_client import uuid7

LIMITS = Limits()
NOW = 1_800_000_000_000


class MemoryMatches:
    """The model: what `ports.MatchStore` promises, in one process."""

    def __init__(self) -> None:
        self.held: dict[str, Stored] = {}
        self.closed: dict[str, int] = {}
        self.swept: dict[int, int] = {}
        self.heard: dict[int, dict[str, int]] = {}

    async def load(self, match_id: str) -> Stored | None:
        return self.held.get(match_id)

    async def commit(self, before: Stored | None, contract: Contract, match: Match) -> Stored | Conflict:
        held = self.held.get(contract.match_id)
        if (held.revision if held else None) != (before.revision if before else None):
            return Conflict(held)
        stored = self.held[contract.match_id] = Stored(secrets.token_bytes(8), contract, match)
        if match.ending is not None:
            self.closed[contract.match_id] = 0
        return stored

    async def sweep(self, buckets: Sequence[int], process: str, now_ms: int) -> list[tuple[int, Due]]:
        found = []
        for bucket in buckets:
            heard = self.heard.setdefault(bucket, {})
            heard[process] = max(now_ms, heard.get(process, 0))
            gap = now_ms - self.swept.get(bucket, now_ms - 1000)
            if 1000 > gap >= -5000:
                continue
            self.swept[bucket] = now_ms
            mine = {name: held for name, held in self.held.items() if bucket_of(name) == bucket}
            is_gap = gap > 5000
            for name, held in mine.items():
                if is_gap and held.match.ending is None:
                    self.held[name] = Stored(secrets.token_bytes(8), held.contract, held.match.shifted(gap))
            still_open = sorted(name for name in mine if self.held[name].match.ending is None)
            dead = {name: at for name, at in heard.items() if at <= now_ms - 3000}
            due = [name for name in still_open if self.held[name].match.due_ms <= now_ms]  # type: ignore[operator]
            closed = sorted(name for name in mine if self.closed.get(name, now_ms + 1) <= now_ms)
            self.closed.update(dict.fromkeys(closed, now_ms + 10_000))
            found.append((bucket, Due(due, closed, dead or None, still_open if dead else (), gap if is_gap else 0)))
        return found

    async def bury(self, bucket: int, process: str, last_heard_ms: int) -> None:
        if self.heard[bucket].get(process) == last_heard_ms:
            del self.heard[bucket][process]

    async def forget(self, match_id: str, expires_s: int) -> None:
        self.closed.pop(match_id, None)


@pytest.fixture(params=["redis", "memory"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[MatchStore]:
    if request.param == "memory":
        yield MemoryMatches()
        return
    async with Redis.from_url(request.getfixturevalue("redis_url")) as client:
        yield RedisMatches(client, SystemClock())


def contract() -> Contract:
    return Contract(uuid7(), bytes(32), (bytes(32), bytes([1]) * 32), ("a", "b"), NOW // 1000, NOW // 1000 + 10_800)


def fresh() -> Match:
    return relay.create(0, NOW, NOW + LIMITS.match_ms, b"epoch---", LIMITS)


def after_one(match: Match) -> Match:
    match = relay.join(match, 0, ("c", "p"), 0, NOW, b"new-----", LIMITS)
    return relay.accept(match, 0, "c", Envelope(0, 0, secrets.token_bytes(131)), NOW, LIMITS)


class TestStores:
    async def test_a_match_is_created_once(self, store: MatchStore):
        agreed = contract()
        assert await store.load(agreed.match_id) is None
        first = await store.commit(None, agreed, fresh())
        assert isinstance(first, Stored)
        second = await store.commit(None, agreed, replace(fresh(), epoch=b"another-"))
        assert second == Conflict(first)
        assert await store.load(agreed.match_id) == first

    async def test_a_change_counts_only_on_what_is_stored(self, store: MatchStore):
        agreed = contract()
        first = await store.commit(None, agreed, fresh())
        assert isinstance(first, Stored)
        second = await store.commit(first, agreed, after_one(first.match))
        assert isinstance(second, Stored)
        assert await store.commit(first, agreed, after_one(first.match)) == Conflict(second)
        loaded = await store.load(agreed.match_id)
        assert loaded == second
        third = await store.commit(second, agreed, relay.depart(second.match, 0, "c", NOW + 5))
        assert isinstance(third, Stored)
        assert (await store.load(agreed.match_id)) == third  # the envelope was not sent again, and is still there
        assert third.match.sealed == second.match.sealed

    async def test_a_match_that_is_gone_is_a_conflict_with_nothing(self, store: MatchStore):
        ghost = Stored(b"revision", contract(), fresh())
        assert await store.commit(ghost, ghost.contract, after_one(ghost.match)) == Conflict(None)
        assert await store.load(ghost.contract.match_id) is None

    async def test_a_sweep_finds_what_is_due_and_one_process_gets_it(self, store: MatchStore):
        agreed = contract()
        bucket = bucket_of(agreed.match_id)
        first = await store.commit(None, agreed, fresh())
        assert isinstance(first, Stored)
        due_ms = first.match.due_ms
        assert due_ms is not None
        await store.sweep([bucket], "p", due_ms - 1001)
        assert await store.sweep([bucket], "q", due_ms - 2) == []  # swept less than an interval ago
        found = await store.sweep([bucket], "p", due_ms - 1)
        assert [(number, list(due.matches)) for number, due in found] == [(bucket, [])]
        found = await store.sweep([bucket], "p", due_ms + 999)
        assert [(number, list(due.matches), list(due.closed)) for number, due in found] == [
            (bucket, [agreed.match_id], [])
        ]
        ended = await store.commit(first, agreed, relay.expire(first.match, due_ms))
        assert isinstance(ended, Stored)
        found = await store.sweep([bucket], "p", due_ms + 1999)
        assert [(list(due.matches), list(due.closed)) for _, due in found] == [([], [agreed.match_id])]
        for later_ms, is_given in ((2999, False), (11_998, False), (12_998, True)):  # it was given to one process
            [(_, due)] = await store.sweep([bucket], "p", due_ms + later_ms)
            assert (list(due.matches), list(due.closed)) == ([], [agreed.match_id] if is_given else [])
        await store.forget(agreed.match_id, agreed.expires_s)
        [(_, due)] = await store.sweep([bucket], "p", due_ms + 40_000)
        assert (list(due.matches), list(due.closed)) == ([], [])
        assert await store.load(agreed.match_id) == ended  # a closed match still answers

    @pytest.mark.parametrize(("gap_ms", "is_charged"), [(5000, True), (5001, False), (3_600_000, False)])
    async def test_time_in_which_nobody_swept_moves_every_deadline(
        self, store: MatchStore, gap_ms: int, is_charged: bool
    ):
        agreed = contract()
        bucket = bucket_of(agreed.match_id)
        await store.sweep([bucket], "p", NOW)
        first = await store.commit(None, agreed, fresh())
        assert isinstance(first, Stored)
        [(_, due)] = await store.sweep([bucket], "p", NOW + gap_ms)
        assert due.gap_ms == (0 if is_charged else gap_ms)
        loaded = await store.load(agreed.match_id)
        assert loaded is not None
        assert loaded.match == (first.match if is_charged else first.match.shifted(gap_ms))
        assert list(due.matches) == []
        if not is_charged:
            late = await store.commit(first, agreed, after_one(first.match))
            assert late == Conflict(loaded)  # whoever decided on the old deadlines decides again
            stored = await store.commit(loaded, agreed, after_one(loaded.match))
            assert isinstance(stored, Stored)
            assert await store.load(agreed.match_id) == stored  # the credit is not given twice
            [(_, due)] = await store.sweep([bucket], "p", NOW + gap_ms + 1000)
            assert due.gap_ms == 0

    async def test_a_silent_process_is_dead_until_it_is_heard(self, store: MatchStore):
        agreed = contract()
        bucket = bucket_of(agreed.match_id)
        await store.commit(None, agreed, fresh())
        await store.sweep([bucket], "dead", NOW)
        [(_, due)] = await store.sweep([bucket], "alive", NOW + 2999)
        assert due.dead is None
        [(_, due)] = await store.sweep([bucket], "alive", NOW + 4000)
        assert due.dead == {"dead": NOW}
        assert list(due.doubtful) == [agreed.match_id]
        await store.bury(bucket, "dead", NOW - 1)  # it was heard since
        [(_, due)] = await store.sweep([bucket], "alive", NOW + 5000)
        assert due.dead == {"dead": NOW}
        await store.bury(bucket, "dead", NOW)
        [(_, due)] = await store.sweep([bucket], "alive", NOW + 6000)
        assert due.dead is None

    async def test_a_clock_far_ahead_does_not_stop_the_sweeps(self, store: MatchStore):
        bucket = 7
        await store.sweep([bucket], "p", NOW + 3_600_000)
        assert len(await store.sweep([bucket], "p", NOW)) == 1
        assert await store.sweep([bucket], "p", NOW + 10) == []


async def test_a_bucket_s_keys_and_channel_share_a_slot(redis_url: str):
    from redis.crc import key_slot

    agreed = contract()
    async with Redis.from_url(redis_url) as client:
        store = RedisMatches(client, SystemClock())
        await store.commit(None, agreed, fresh())
        await store.sweep(range(BUCKETS), "p", NOW)
        bucket = bucket_of(agreed.match_id)
        tag = f"{{b{bucket:03d}}}"
        keys = [key async for key in client.scan_iter(f"{tag}*")]
        assert len(keys) == 4
        assert {key_slot(key) for key in keys} == {key_slot(channel_of(bucket).encode())}
        assert await client.pttl(match_key(agreed.match_id)) == -1  # an open match never just disappears


async def test_the_state_of_a_match_has_constant_size(redis_url: str):
    agreed = contract()
    async with Redis.from_url(redis_url) as client:
        store = RedisMatches(client, SystemClock())
        stored: Any = await store.commit(None, agreed, fresh())
        match = relay.join(stored.match, 0, ("c0", "p"), 0, NOW, b"new-----", LIMITS)
        match = relay.join(match, 1, ("c1", "p"), 0, NOW, b"new-----", LIMITS)
        sizes = set()
        for number in range(60):
            phase = 0 if number < 2 else 1 if number == 2 else 2
            data = secrets.token_bytes(131 if number < 2 else 653)
            seat = match.owner(number)
            match = relay.accept(match, seat, f"c{seat}", Envelope(number, phase, data), NOW, LIMITS)
            stored = await store.commit(stored, agreed, match)
            assert isinstance(stored, Stored)
            if number >= 10:
                sizes.add(sum(len(value) for value in (await client.hgetall(match_key(agreed.match_id))).values()))
        assert max(sizes) - min(sizes) <= 2


async def test_a_retried_commit_recognises_its_own_first_attempt(redis_url: str):
    """The client repeats a command when the connection drops after it was executed."""
    agreed = contract()
    async with Redis.from_url(redis_url) as client:
        store = RedisMatches(client, SystemClock())
        script = store._commit

        async def twice(keys: Any, args: Any = ()) -> Any:
            await script(keys, args)
            return await script(keys, args)

        store._commit = twice
        stored = await store.commit(None, agreed, fresh())
        assert isinstance(stored, Stored)
        assert await store.load(agreed.match_id) == stored


async def test_an_unreachable_server_is_a_typed_refusal():
    client: Any = Redis.from_url("redis://127.0.0.1:1")
    store = RedisMatches(client, SystemClock())
    for call in (store.load(uuid7()), store.commit(None, contract(), fresh()), store.sweep([1], "p", NOW)):
        with pytest.raises(StoreUnavailable) as caught:
            await call
        assert caught.value.retry_after_s
    await client.aclose()


async def test_presence_names_no_process_that_could_die_unnoticed(redis_url: str):
    """A process that was paused and forgotten serves a join before it sweeps again, and dies."""
    agreed, now_ms = contract(), int(SystemClock().now() * 1000)
    bucket = bucket_of(agreed.match_id)
    async with Redis.from_url(redis_url) as client:
        paused, other = (RedisMatches(client, SystemClock(), process=name) for name in ("paused", "other"))
        first = await paused.commit(None, agreed, fresh())
        assert isinstance(first, Stored)
        await other.bury(bucket, "paused", int(await client.zscore(f"{{b{bucket:03d}}}:processes", "paused") or 0))
        joined = await paused.commit(first, agreed, relay.join(first.match, 0, ("c", "paused"), 0, NOW, b"", LIMITS))
        assert isinstance(joined, Stored)
        [(_, due)] = await other.sweep([bucket], "other", now_ms + 4000)
        assert set(due.dead or {}) == {"paused"}
        assert list(due.doubtful) == [agreed.match_id]
