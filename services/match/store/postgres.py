"""Ended matches in Postgres, and their announcement on the stream `outcomes`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import asyncpg
from redis.asyncio import Redis

from services.match.domain.errors import StoreUnavailable
from services.match.domain.outcomes import Ending, Outcome
from services.match.ports import Record
from services.match.store.redis import translated

__all__ = ["MIGRATIONS", "OUTCOMES", "SCHEMA", "PostgresRecords"]

SCHEMA = "match"
MIGRATIONS = Path(__file__).parent / "sql"
OUTCOMES = "outcomes"
_LONGEST_STREAM = 100_000
_LIMIT_S = 5.0  # with the wait for a connection, so that a hung Postgres keeps nobody waiting for long

_ADD = """
INSERT INTO ended_match (match_id, contract_hash, account_0, account_1, outcome, seat, dispute_reason, counter, phase,
                         create_time, end_time)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (match_id) DO NOTHING
"""
_FIND = "SELECT outcome, seat, dispute_reason, counter, end_time FROM ended_match WHERE match_id = $1"


class PostgresRecords:
    """Implements `ports.Records`.

    The row comes first, then the entry in `outcomes`: a crash in between repeats both, so readers of the stream
    deduplicate by match id.
    """

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", outcomes: Redis) -> None:
        self._pool, self._outcomes = pool, outcomes

    async def find(self, match_id: str) -> tuple[Ending, int] | None:
        """Return a recorded ending and the match's last counter."""
        async with _translated():
            row = await self._pool.fetchrow(_FIND, UUID(match_id))
        if row is None:
            return None
        time_ms = round(row["end_time"].timestamp() * 1000)
        return Ending(Outcome(row["outcome"]), time_ms, row["seat"], row["dispute_reason"]), row["counter"]

    async def add(self, record: Record) -> None:
        """Write the record, if none is there yet, and announce the outcome that is recorded."""
        contract, ending = record.contract, record.ending
        values = (
            UUID(contract.match_id), contract.contract_hash, *contract.accounts, ending.outcome.value, ending.seat,
            ending.dispute_reason, record.counter, record.phase, _time(record.created_ms), _time(ending.time_ms),
        )  # fmt: skip
        async with _translated():
            await self._pool.execute(_ADD, *values)
        if (recorded := await self.find(contract.match_id)) is not None:
            ending, _ = recorded  # another one if Redis fell back behind a match's end: what was recorded first stands
        entry: dict[str | bytes, str | int | bytes] = {
            "match_id": contract.match_id,
            "outcome": ending.outcome.value,
            "seat": "" if ending.seat is None else ending.seat,
            "account_0": contract.accounts[0],
            "account_1": contract.accounts[1],
            "end_time_ms": ending.time_ms,
        }
        async with translated():
            await self._outcomes.xadd(OUTCOMES, entry, maxlen=_LONGEST_STREAM, approximate=True)  # type: ignore[arg-type]

    async def ping(self) -> None:
        """Raise unless Postgres answers."""
        await self._pool.fetchval("SELECT 1")


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(_LIMIT_S):
            yield
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise StoreUnavailable("The relay cannot reach its store; connect again.", retry_after_s=1.0) from error


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
