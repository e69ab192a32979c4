"""Marks in Postgres: the newest of each account, written once however often they come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from services.kit.postgres import Pool
from services.lobby.domain.conduct import WINDOW, Behaviour, Mark

# Sorted, so that processes that write the same marks at once wait for each other in one order.
_ADD = """
INSERT INTO mark (account_id, match_id, opponent_id, behaviour, end_time)
SELECT * FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[]) AS new (a, m, o, b, t)
ORDER BY a, m
ON CONFLICT DO NOTHING RETURNING match_id
"""
_TRIM = """
DELETE FROM mark WHERE (account_id, match_id) IN (
    SELECT account_id, match_id FROM (
        SELECT account_id, match_id,
               row_number() OVER (PARTITION BY account_id ORDER BY end_time DESC, match_id DESC) AS place
        FROM mark WHERE account_id = ANY($1)
    ) AS placed WHERE place > $2 ORDER BY account_id, match_id
)
"""
_READ = """
SELECT match_id, opponent_id, behaviour, end_time FROM mark WHERE account_id = $1
ORDER BY end_time DESC, match_id DESC LIMIT $2
"""


class PostgresMarks:
    """Implements `ports.Marks`.

    What is kept is always the newest of all that ever came, so a mark that comes again after it was forgotten is
    forgotten again, and a trim that a crash cut off is made good by the account's next match.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, marks: Sequence[Mark]) -> set[str]:
        """Write marks that are not yet known; gives the matches of those that are new."""
        rows = await self._pool.fetch(
            _ADD,
            [mark.account_id for mark in marks],
            [UUID(mark.match_id) for mark in marks],
            [mark.opponent_id for mark in marks],
            [mark.behaviour.value for mark in marks],
            [datetime.fromtimestamp(mark.end_time / 1000, UTC) for mark in marks],
        )
        await self._trim({mark.account_id for mark in marks})
        return {str(row["match_id"]) for row in rows}

    async def read(self, account_id: str) -> list[Mark]:
        """Give what counts of an account, newest first."""
        rows = await self._pool.fetch(_READ, account_id, WINDOW)
        return [
            Mark(
                account_id,
                str(row["match_id"]),
                row["opponent_id"],
                Behaviour(row["behaviour"]),
                round(row["end_time"].timestamp() * 1000),
            )
            for row in rows
        ]

    async def _trim(self, account_ids: Iterable[str]) -> None:
        await self._pool.execute(_TRIM, sorted(account_ids), WINDOW)
