"""Blocks in Postgres: they have to outlive every loss of Redis."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from services.kit.postgres import Pool
from services.lobby.domain.rooms import MAX_BLOCKS

SCHEMA = "lobby"
MIGRATIONS = Path(__file__).parent / "sql"


class PostgresBlocks:
    """Implements `ports.Blocks`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, account_id: str, blocked_id: str, now: int) -> bool:
        """Block an account; False when there are as many blocks as one may have. Again changes nothing."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", f"lobby-block/{account_id}")
            others = await connection.fetchval(
                "SELECT count(*) FROM block WHERE account_id = $1 AND blocked_id <> $2", account_id, blocked_id
            )
            if others >= MAX_BLOCKS:
                return False
            await connection.execute(
                "INSERT INTO block (account_id, blocked_id, create_time) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                account_id,
                blocked_id,
                datetime.fromtimestamp(now / 1000, UTC),
            )
            return True

    async def remove(self, account_id: str, blocked_id: str) -> None:
        """Take a block back."""
        await self._pool.execute("DELETE FROM block WHERE account_id = $1 AND blocked_id = $2", account_id, blocked_id)

    async def read(self, account_id: str) -> list[tuple[str, int]]:
        """Give whom an account blocked and when, newest first."""
        rows = await self._pool.fetch(
            "SELECT blocked_id, create_time FROM block WHERE account_id = $1 ORDER BY create_time DESC, blocked_id",
            account_id,
        )
        return [(row["blocked_id"], int(row["create_time"].timestamp() * 1000)) for row in rows]
