"""Running matches in Redis: one hash per match, one script per atomic step, one slot per bucket.

A match's state, its bucket's deadlines and its bucket's channel share the hash tag `{b000}`-`{b511}`. All decisions are
made in `domain`; the scripts only compare, store and tell. Open matches never expire here - the sweep ends each one.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, RedisError

from services.kit.clock import Clock
from services.kit.redis import load_script
from services.match.domain.contract import Contract
from services.match.domain.errors import StoreUnavailable
from services.match.domain.match import Match
from services.match.ports import Conflict, Due, Stored
from services.match.store.state import dump_contract, dump_match, load_contract, load_match

__all__ = ["BUCKETS", "RedisMatches", "bucket_of", "channel_of", "match_key"]

BUCKETS = 512
REVISION_BYTES = 8
_MOST_AT_ONCE = 100
_LONGEST_GAP_MS = 5_000
_RECORDING_MS = 10_000  # a closed match is given to another process only after this time
_MINUTE_MS = 60_000


def bucket_of(match_id: str) -> int:
    """Return a match's bucket."""
    return int.from_bytes(hashlib.sha256(match_id.encode()).digest()[:4], "big") % BUCKETS


def match_key(match_id: str) -> str:
    """Return the key of a match's hash."""
    return f"{_tag(bucket_of(match_id))}:match:{match_id}"


def channel_of(bucket: int) -> str:
    """Return the sharded channel on which a bucket's changes are told: match id, then the new revision."""
    return f"{_tag(bucket)}:news"


def _tag(bucket: int) -> str:
    return f"{{b{bucket:03d}}}"


@asynccontextmanager
async def translated() -> AsyncIterator[None]:
    """Turn any failure of Redis into StoreUnavailable."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise StoreUnavailable("The relay cannot reach its store; connect again.", retry_after_s=1.0) from error


class RedisMatches:
    """Implements `ports.MatchStore`.

    Args:
        client: Redis.
        clock: Time, for the lives of recorded matches and of processes.
        process: The name of this process, as presence names it.
        sweep_interval_ms: Shortest time between two sweeps of a bucket, over all processes.
        silence_ms: A process not heard for longer is dead.
        observe_commit: Told the seconds each commit took.
    """

    def __init__(
        self,
        client: Redis,
        clock: Clock,
        *,
        process: str = "",
        sweep_interval_ms: int = 1000,
        silence_ms: int = 3000,
        observe_commit: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._client, self._clock, self._process = client, clock, process
        self._sweep_interval_ms, self._silence_ms = sweep_interval_ms, silence_ms
        self._observe_commit = observe_commit
        self._commit = load_script(client, _text("commit_match"))
        self._sweep = _text("sweep_bucket")
        self._sweep_hash = hashlib.sha1(self._sweep.encode(), usedforsecurity=False).hexdigest()

    async def load(self, match_id: str) -> Stored | None:
        """Return the newest state."""
        async with translated():
            fields = await _await(self._client.hmget(match_key(match_id), *_FIELDS))
        return _stored(fields)

    async def commit(self, before: Stored | None, contract: Contract, match: Match) -> Stored | Conflict:
        """Replace `before` by `match` if it is still stored; safe to run twice, also inside the client's retry."""
        match_id, bucket = contract.match_id, bucket_of(contract.match_id)
        revision, due_ms = secrets.token_bytes(REVISION_BYTES), match.due_ms
        is_new = before is None or before.match.sealed is not match.sealed
        has_moved = before is None or before.match.seats != match.seats
        tag = _tag(bucket)
        started = self._clock.monotonic()
        async with translated():
            answer = await self._commit(
                [match_key(match_id), f"{tag}:deadlines", f"{tag}:closed", f"{tag}:processes"],
                [
                    b"" if before is None else before.revision, revision, match_id, dump_match(match),
                    dump_contract(contract), "1" if is_new else "0", match.sealed if is_new else b"",
                    "" if due_ms is None else due_ms, channel_of(bucket), self._process if has_moved else "",
                    int(self._clock.now() * 1000), _RECORDING_MS,
                ],
            )  # fmt: skip
        self._observe_commit(self._clock.monotonic() - started)
        if answer == 1 or (answer[0] == revision):  # the second: a retry met its own first attempt
            return Stored(revision, contract, match)
        return Conflict(_stored(answer))

    async def sweep(self, buckets: Sequence[int], process: str, now_ms: int) -> list[tuple[int, Due]]:
        """Say that `process` lives, and return what is to be done; one round trip."""
        async with translated():
            try:
                answers = await self._sweep_once(buckets, process, now_ms)
            except NoScriptError:
                await _await(self._client.script_load(self._sweep))
                answers = await self._sweep_once(buckets, process, now_ms)
        return [(bucket, _due(answer)) for bucket, answer in zip(buckets, answers, strict=True) if answer != 0]

    async def _sweep_once(self, buckets: Sequence[int], process: str, now_ms: int) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for bucket in buckets:
                tag = _tag(bucket)
                pipeline.evalsha(
                    self._sweep_hash, 4, f"{tag}:swept", f"{tag}:deadlines", f"{tag}:closed", f"{tag}:processes",
                    now_ms, self._sweep_interval_ms, _LONGEST_GAP_MS, self._silence_ms, process,
                    secrets.token_bytes(REVISION_BYTES), f"{tag}:match:", channel_of(bucket), _MOST_AT_ONCE,
                    _RECORDING_MS,
                )  # fmt: skip
            answers: list[Any] = await pipeline.execute()
        return answers

    async def bury(self, bucket: int, process: str, last_heard_ms: int) -> None:
        """Forget a dead process; one that lives after all says so again within a sweep."""
        key = f"{_tag(bucket)}:processes"
        async with translated():
            if await _await(self._client.zscore(key, process)) == last_heard_ms:
                await _await(self._client.zrem(key, process))

    async def forget(self, match_id: str, expires_s: int) -> None:
        """Let a recorded match go when its contract has expired, and take it off the closed ones."""
        now_ms = int(self._clock.now() * 1000)
        async with translated(), self._client.pipeline(transaction=True) as pipeline:
            pipeline.pexpireat(match_key(match_id), max(expires_s * 1000, now_ms) + _MINUTE_MS)
            pipeline.zrem(f"{_tag(bucket_of(match_id))}:closed", match_id)
            await pipeline.execute()

    async def ping(self) -> None:
        """Raise unless Redis answers."""
        await _await(self._client.ping())


_FIELDS = ("revision", "contract", "state", "sealed", "credit")


def _stored(fields: list[bytes | None]) -> Stored | None:
    revision, contract, state, sealed, credit = fields
    if revision is None or contract is None or state is None:
        return None
    return Stored(revision, load_contract(contract), load_match(state, sealed or b"", int(credit or 0)))


def _texts(values: list[bytes]) -> tuple[str, ...]:
    return tuple(value.decode() for value in values)


def _due(answer: list[Any]) -> Due:
    due, closed, dead, doubtful, gap_ms = answer
    heard = {dead[i].decode(): int(float(dead[i + 1])) for i in range(0, len(dead), 2)}
    return Due(_texts(due), _texts(closed), heard or None, _texts(doubtful), gap_ms)


def _text(name: str) -> str:
    return (Path(__file__).parent / "lua" / f"{name}.lua").read_text(encoding="utf-8")


async def _await(command: Any) -> Any:
    """Await a command; redis-py types its answers as sync or async at once."""
    return await asyncio.ensure_future(command)
