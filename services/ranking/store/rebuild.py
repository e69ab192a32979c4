"""Ratings made anew from the log of results, compared with what stands, and mended where they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import asyncpg

from services.kit.postgres import Pool
from services.ranking.domain.ratings import History, RatedMatch, Rating
from services.ranking.store.postgres import save_accounts
from services.ranking.store.standings import Connection

_PREFETCH = 1000
_LOG = """
    SELECT result.order_number, is_rated, winner, seat, account_id, display_name, mu_before, sigma_before, mu_after,
        sigma_after
    FROM result JOIN result_seat USING (order_number) ORDER BY result.order_number, seat
"""
_MEND_SEAT = """
    UPDATE result_seat SET mu_before = $3, sigma_before = $4, mu_after = $5, sigma_after = $6
    WHERE order_number = $1 AND seat = $2
"""
_COUNT_WRONG = """
    WITH stands AS (SELECT * FROM appearance), follows AS (SELECT * FROM log_appearance)
    SELECT count(*) FROM ((TABLE stands EXCEPT TABLE follows) UNION ALL (TABLE follows EXCEPT TABLE stands)) AS wrong
"""
_MEND_APPEARANCES = "DELETE FROM appearance; INSERT INTO appearance SELECT * FROM log_appearance"
_WHOLE_LOG_S = 3600.0


@dataclass(frozen=True, slots=True)
class Report:
    """What a rebuild saw: how many of how many rows did not follow from the log."""

    results: int
    seats_wrong: int
    accounts: int
    accounts_wrong: int
    appearances_wrong: int

    @property
    def is_clean(self) -> bool:
        """Tell whether everything that stood follows from the log."""
        return not (self.seats_wrong or self.accounts_wrong or self.appearances_wrong)


async def rebuild(pool: Pool, *, repair: bool) -> Report:
    """Replay all results in order; with `repair`, write what differs.

    New results wait meanwhile; readers do not. Last digits may differ between machines' math
    libraries, so equal means equal to 9 digits.
    """
    async with pool.acquire() as connection, connection.transaction():
        await connection.execute("LOCK TABLE account IN EXCLUSIVE MODE")
        history, names, wrong_seats, results = await _replay(connection)
        rows = await connection.fetch("SELECT * FROM account")
        accounts = {account_id: (names[account_id], rating) for account_id, rating in history.ratings.items()}
        wrong_accounts = [
            (row["account_id"], *accounts[row["account_id"]])
            for row in rows
            if not _is_account(row, *accounts[row["account_id"]])
        ]
        wrong_appearances = await connection.fetchval(_COUNT_WRONG, timeout=_WHOLE_LOG_S)
        if repair and wrong_appearances:
            await connection.execute(_MEND_APPEARANCES, timeout=_WHOLE_LOG_S)
        if repair:
            await connection.executemany(_MEND_SEAT, wrong_seats)
            await save_accounts(connection, wrong_accounts)
    return Report(results, len(wrong_seats), len(rows), len(wrong_accounts), wrong_appearances)


Seat = tuple[int, int, float, float, float, float]


async def _replay(connection: Connection) -> tuple[History, dict[str, str], list[Seat], int]:
    history, names, wrong, results = History(), dict[str, str](), list[Seat](), 0
    pair: list[asyncpg.Record] = []
    async for row in connection.cursor(_LOG, prefetch=_PREFETCH):
        names[row["account_id"]] = row["display_name"]
        pair.append(row)
        if len(pair) == 2:
            wrong += _compare(history, pair)
            results += 1
            pair = []
    return history, names, wrong, results


def _compare(history: History, pair: list[asyncpg.Record]) -> list[Seat]:
    """Replay one result; give the seats whose stored ratings are not what comes out."""
    first, second = pair
    match = RatedMatch((first["account_id"], second["account_id"]), first["winner"], first["is_rated"])
    wrong: list[Seat] = []
    for row, before, after in zip(pair, *history.apply(match), strict=True):
        stood = (row["mu_before"], row["sigma_before"], row["mu_after"], row["sigma_after"])
        follows = (before.mu, before.sigma, after.mu, after.sigma)
        if not _is_close(stood, follows):
            wrong.append((row["order_number"], row["seat"], *follows))
    return wrong


def _is_account(row: asyncpg.Record, display_name: str, rating: Rating) -> bool:
    counts = (row["display_name"], row["rating"], row["matches"], row["wins"])
    return counts == (display_name, rating.shown, rating.matches, rating.wins) and _is_close(
        (row["mu"], row["sigma"]), (rating.mu, rating.sigma)
    )


def _is_close(stood: tuple[float, ...], follows: tuple[float, ...]) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(stood, follows, strict=True))
