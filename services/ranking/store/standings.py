"""The leaderboard on Postgres."""

from __future__ import annotations

from operator import attrgetter
from typing import TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction

from services.kit.postgres import Pool
from services.ranking.domain.leaderboard import Place, PlaceBound, Standing, StandingPage
from services.ranking.domain.pages import Bound, Page, cut_page

Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"

# `rating <= $2` says nothing new: it is what lets the index begin at the bound instead of at the top.
_TOP = "SELECT * FROM account WHERE matches > 0 ORDER BY rating DESC, account_id LIMIT $1"
_FORWARD = """
    SELECT * FROM account
    WHERE matches > 0 AND rating <= $2 AND (rating < $2 OR account_id > $3 OR ($4 AND account_id = $3))
    ORDER BY rating DESC, account_id LIMIT $1
"""
_BACKWARD = """
    SELECT * FROM account
    WHERE matches > 0 AND rating >= $2 AND (rating > $2 OR account_id < $3 OR ($4 AND account_id = $3))
    ORDER BY rating, account_id DESC LIMIT $1
"""
_COUNTS = """
    SELECT (SELECT count(*) FROM account WHERE matches > 0 AND rating > $1) AS better,
        (SELECT count(*) FROM account WHERE matches > 0 AND rating = $1 AND account_id < $2) AS beside
"""


class PostgresStandings:
    """The accounts in the order of the leaderboard; each answer is of one moment."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list_standings(self, bound: PlaceBound | None, size: int) -> tuple[StandingPage, int, int]:
        """Give a page of rated accounts, and how many are better than and stand before its first row."""
        async with self._pool.acquire() as connection, snapshot(connection):
            rows = await _list(connection, bound, size + 1)
            has_behind = bound is not None and bool(await _list(connection, bound.turned, 1))
            page = cut_page(rows, size, bound, attrgetter("place"), has_behind=has_behind)
            if bound is None or not page.rows:
                return page, 0, 0
            return page, *await _count(connection, page.rows[0])

    async def list_neighbors(
        self, account_id: str, above: int, below: int
    ) -> tuple[StandingPage, int, int] | Standing | None:
        """Give an account with those around it, and both numbers as above."""
        async with self._pool.acquire() as connection, snapshot(connection):
            own = await _find(connection, account_id)
            if own is None or not own.matches:
                return own
            higher = await _list(connection, Bound(own.place, is_forward=False), above + 1)
            lower = await _list(connection, Bound(own.place, is_forward=True), below + 1)
            rows = (*reversed(higher[:above]), own, *lower[:below])
            previous = Bound(rows[0].place, is_forward=False) if len(higher) > above else None
            following = Bound(rows[-1].place, is_forward=True) if len(lower) > below else None
            page: StandingPage = Page(rows, previous, following)
            return page, *await _count(connection, rows[0])

    async def find_standing(self, account_id: str) -> tuple[Standing, int] | None:
        """Give an account with its rank, 0 without a rated match."""
        async with self._pool.acquire() as connection, snapshot(connection):
            own = await _find(connection, account_id)
            if own is None:
                return None
            rank = (await _count(connection, own))[0] + 1 if own.matches else 0
            return own, rank


def snapshot(connection: Connection) -> Transaction:
    """Let several reads see one state."""
    return connection.transaction(isolation="repeatable_read", readonly=True)


async def _list(connection: Connection, bound: Bound[Place] | None, count: int) -> list[Standing]:
    """Give rows from the bound in its direction."""
    if bound is None:
        rows = await connection.fetch(_TOP, count)
    else:
        query, place = _FORWARD if bound.is_forward else _BACKWARD, bound.key
        rows = await connection.fetch(query, count, place.rating, place.account_id, bound.is_included)
    return [_standing(row) for row in rows]


async def _find(connection: Connection, account_id: str) -> Standing | None:
    row = await connection.fetchrow("SELECT * FROM account WHERE account_id = $1", account_id)
    return _standing(row) if row is not None else None


async def _count(connection: Connection, row: Standing) -> tuple[int, int]:
    """Count the rated accounts with a higher rating, and those that stand before this row."""
    counts = await connection.fetchrow(_COUNTS, row.rating, row.account_id)
    assert counts is not None, "an aggregate always gives a row"
    return counts["better"], counts["better"] + counts["beside"]


def _standing(row: asyncpg.Record) -> Standing:
    return Standing(row["account_id"], row["display_name"], row["rating"], row["matches"], row["wins"])
