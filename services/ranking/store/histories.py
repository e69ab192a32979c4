"""What single accounts played, on Postgres."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import asyncpg

from services.kit.postgres import Pool
from services.ranking.domain.history import OrderBound, Query, RatingHistory, RatingPoint, ReceiptPage, Window, spread
from services.ranking.domain.pages import cut_page
from services.ranking.domain.ratings import Rating
from services.ranking.domain.result import Receipt, SeatReceipt
from services.ranking.domain.statement import Ending
from services.ranking.store.standings import Connection, snapshot

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# All of it is in the primary key of `appearance`. What is not asked for is null, and the planner sees that.
_WINDOW = """
    account_id = $1 AND ($2::timestamptz IS NULL OR create_time >= $2) AND ($3::timestamptz IS NULL OR create_time < $3)
"""
_FILTERS = f"""{_WINDOW}
    AND ($4::text IS NULL OR opponent_id = $4) AND ($5::smallint IS NULL OR outcome = $5)
    AND ($6::smallint IS NULL OR ending = $6) AND (is_rated OR NOT $7)
"""
_OLDER = f"""
    SELECT order_number FROM appearance WHERE {_FILTERS} AND order_number < $8 ORDER BY order_number DESC LIMIT $9
"""  # noqa: S608 - constants of this module
_NEWER = f"""
    SELECT order_number FROM appearance WHERE {_FILTERS} AND order_number > $8 ORDER BY order_number LIMIT $9
"""  # noqa: S608
_COUNT_RATED = f"SELECT count(*) FROM appearance WHERE is_rated AND {_WINDOW}"  # noqa: S608
_PICK_RATED = f"""
    SELECT order_number FROM (
        SELECT order_number, row_number() OVER (ORDER BY order_number) - 1 AS position
        FROM appearance WHERE is_rated AND {_WINDOW}
    ) AS numbered WHERE position = ANY ($4::bigint[])
"""  # noqa: S608
_LAST_RATED = """
    SELECT order_number FROM appearance WHERE is_rated AND account_id = $1 AND create_time < $2
    ORDER BY order_number DESC LIMIT 1
"""
_POINTS = """
    SELECT order_number, create_time, mu_before, sigma_before, mu_after, sigma_after
    FROM appearance JOIN result_seat USING (account_id, order_number)
    WHERE result_seat.order_number = ANY ($2::bigint[]) AND account_id = $1 ORDER BY order_number
"""
_RECEIPTS = """
    SELECT result.order_number, match_id, is_rated, ending, winner, rounds, create_time, seat, account_id, display_name,
        points, mu_before, sigma_before, mu_after, sigma_after
    FROM result JOIN result_seat USING (order_number)
    WHERE result.order_number = ANY ($1::bigint[]) AND result_seat.order_number = ANY ($1::bigint[])
    ORDER BY result.order_number DESC, seat
"""
_FIND = "SELECT order_number FROM result WHERE match_id = $1"
_NEWEST = (1 << 63) - 1


class PostgresHistories:
    """The results of accounts.

    An account's order numbers are given under its lock, so a smaller one never appears after a larger one: a page that
    goes on from an order number misses nothing.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def list_receipts(self, query: Query, bound: OrderBound | None, size: int) -> ReceiptPage:
        """Give a page of an account's results, newest first."""
        async with self._pool.acquire() as connection, snapshot(connection):
            numbers = await _list_numbers(connection, query, bound, size + 1)
            has_behind = bound is not None and bool(await _list_numbers(connection, query, bound.turned, 1))
            receipts = await read_receipts(connection, numbers)
        ordered = receipts if bound is None or bound.is_forward else receipts[::-1]
        return cut_page(ordered, size, bound, attrgetter("order_number"), has_behind=has_behind)

    async def find_receipt(self, match_id: uuid.UUID) -> Receipt | None:
        """Give the result of a match, if one is recorded."""
        async with self._pool.acquire() as connection:
            order_number = await connection.fetchval(_FIND, match_id)
            if order_number is None:
                return None
            (receipt,) = await read_receipts(connection, [order_number])
            return receipt

    async def trace_rating(self, account_id: str, window: Window, most: int) -> RatingHistory:
        """Give at most so many points of an account's rating."""
        start, end = _time(window.start_us), _time(window.end_us)
        async with self._pool.acquire() as connection, snapshot(connection):
            count = await connection.fetchval(_COUNT_RATED, account_id, start, end)
            if not count:
                return RatingHistory((), 0, await _rating_at(connection, account_id, start))
            picked = await connection.fetch(_PICK_RATED, account_id, start, end, spread(count, most))
            rows = await connection.fetch(_POINTS, account_id, [row["order_number"] for row in picked])
        points = [
            RatingPoint(row["order_number"], row["create_time"].timestamp(), _shown(row, "after")) for row in rows
        ]
        return RatingHistory(tuple(points), count, _shown(rows[0], "before"))


async def read_receipts(connection: Connection, order_numbers: Sequence[int]) -> list[Receipt]:
    """Give recorded results, newest first."""
    rows = await connection.fetch(_RECEIPTS, order_numbers)
    return [_receipt(first, second) for first, second in zip(rows[::2], rows[1::2], strict=True)]


async def _rating_at(connection: Connection, account_id: str, time: datetime | None) -> int:
    last = await connection.fetchval(_LAST_RATED, account_id, time)
    rows = await connection.fetch(_POINTS, account_id, [] if last is None else [last])
    return _shown(rows[0], "after") if rows else Rating().shown


async def _list_numbers(connection: Connection, query: Query, bound: OrderBound | None, count: int) -> list[int]:
    """Give order numbers from the bound in its direction."""
    is_forward = bound is None or bound.is_forward
    number = _NEWEST
    if bound is not None:
        number = bound.key + (bound.is_included if is_forward else -bound.is_included)
    rows = await connection.fetch(
        _OLDER if is_forward else _NEWER,
        query.account_id,
        _time(query.window.start_us),
        _time(query.window.end_us),
        query.opponent_id,
        query.outcome,
        query.ending,
        query.is_rated_only,
        number,
        count,
    )
    return [row["order_number"] for row in rows]


def _receipt(first: asyncpg.Record, second: asyncpg.Record) -> Receipt:
    return Receipt(
        match_id=first["match_id"],
        order_number=first["order_number"],
        is_rated=first["is_rated"],
        ending=Ending(first["ending"]),
        winner=first["winner"],
        rounds=first["rounds"],
        seats=(_seat(first), _seat(second)),
        create_time=first["create_time"].timestamp(),
    )


def _seat(row: asyncpg.Record) -> SeatReceipt:
    return SeatReceipt(
        row["account_id"], row["display_name"], row["points"], _shown(row, "before"), _shown(row, "after")
    )


def _shown(row: asyncpg.Record, moment: str) -> int:
    return Rating(row[f"mu_{moment}"], row[f"sigma_{moment}"]).shown


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + timedelta(microseconds=microseconds)
