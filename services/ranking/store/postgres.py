"""Results and ratings on Postgres."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy
from asyncpg.transaction import Transaction

from services.kit.postgres import Pool
from services.ranking.domain.errors import ResultConflict
from services.ranking.domain.leaderboard import Cursor, Standing
from services.ranking.domain.ratings import Rating, Ratings
from services.ranking.domain.result import Proof, Receipt, SeatReceipt
from services.ranking.domain.statement import Ending
from services.ranking.ports import Rate

SCHEMA = "ranking"
MIGRATIONS = Path(__file__).with_name("sql")
MAX_CONFLICTS = 8
Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"

_TOP = "SELECT * FROM account WHERE matches > 0 ORDER BY rating DESC, account_id LIMIT $1"
_AFTER = """
    SELECT * FROM account WHERE matches > 0 AND (rating < $2 OR (rating = $2 AND account_id > $3))
    ORDER BY rating DESC, account_id LIMIT $1
"""
_PLACES = """
    SELECT count(*) FILTER (WHERE rating > $1) AS better, count(*) AS before FROM account
    WHERE matches > 0 AND (rating > $1 OR (rating = $1 AND account_id < $2))
"""
_ADD_ACCOUNTS = """
    INSERT INTO account (account_id, display_name, mu, sigma, rating)
    SELECT account_id, display_name, $3, $4, $5 FROM unnest($1::text[], $2::text[]) AS new (account_id, display_name)
    ON CONFLICT DO NOTHING
"""
_ADD_RESULT = """
    INSERT INTO result (match_id, session_id, contract, contract_hash, lobby_key_id, lobby_key, statement, signature_0,
        signature_1, is_rated, ending, winner, rounds, create_time)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING order_number
"""
_ADD_CONFLICT = """
    INSERT INTO conflict (match_id, statement_hash, contract, statement, signature_0, signature_1, create_time)
    SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT count(*) FROM conflict WHERE match_id = $1) < $8
    ON CONFLICT DO NOTHING
"""


class PostgresResults:
    """The log of results, and the ratings that follow from it."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def record(self, proof: Proof, now: float, rate: Rate) -> Receipt:
        """Record a proven result and what it does to ratings, in one transaction.

        The locks of both accounts are taken in id order, so crossing pairs cannot deadlock, and the
        order number is given while they are held.
        """
        time = datetime.fromtimestamp(now, UTC)
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                return await self._record(connection, proof, time, rate)
        # Unique: another contract with this match id came at the same time; it shares no lock with this one.
        except (ResultConflict, asyncpg.UniqueViolationError):
            await self._note_conflict(proof, time)
            raise _conflict(proof) from None

    async def list_standings(self, after: Cursor | None, count: int) -> tuple[list[Standing], int, int]:
        """Give rated accounts after the cursor, and both places of the first of them."""
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            if after is None:
                rows = await connection.fetch(_TOP, count)
            else:
                rows = await connection.fetch(_AFTER, count, after.rating, after.account_id)
            if not rows or after is None:
                return [_standing(row) for row in rows], 1, 1
            better, before = await _count_better(connection, rows[0])
        return [_standing(row) for row in rows], before + 1, better + 1

    async def find_standing(self, account_id: str) -> tuple[Standing, int] | None:
        """Give an account with its shared place, 0 without a rated match."""
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            row = await connection.fetchrow("SELECT * FROM account WHERE account_id = $1", account_id)
            if row is None:
                return None
            better, _ = await _count_better(connection, row) if row["matches"] else (-1, 0)
        return _standing(row), better + 1

    async def _record(self, connection: Connection, proof: Proof, time: datetime, rate: Rate) -> Receipt:
        """Give the receipt, the stored one for a statement that stands already; a contradiction undoes everything."""
        before = await _lock_accounts(connection, proof)
        stored = await connection.fetchrow("SELECT * FROM result WHERE match_id = $1", proof.contract.match_id)
        if stored is not None:
            if stored["statement"] != proof.claim.statement:
                raise _conflict(proof)
            return await _read_receipt(connection, stored)
        after = rate(before, proof.statement.winner) if proof.contract.is_ranked else before
        order_number = await _add_result(connection, proof, time)
        await _save_seats(connection, proof, order_number, before, after)
        return _receipt(proof, order_number, time, before, after)

    async def _note_conflict(self, proof: Proof, time: datetime) -> None:
        claim = proof.claim
        digest = hashlib.sha256(claim.statement).digest()
        async with self._pool.acquire() as connection:
            await connection.execute(
                _ADD_CONFLICT,
                proof.contract.match_id,
                digest,
                claim.contract,
                claim.statement,
                *claim.signatures,
                time,
                MAX_CONFLICTS,
            )


def _conflict(proof: Proof) -> ResultConflict:
    return ResultConflict(
        "Another result of this match was recorded before; this one was noted.",
        metadata={"match_id": str(proof.contract.match_id)},
    )


async def _lock_accounts(connection: Connection, proof: Proof) -> Ratings:
    """Lock both accounts in id order, new ones too; give their ratings in seat order."""
    initial = Rating()
    names = {player.account_id: player.display_name for player in proof.contract.seats}
    ids = sorted(names)
    new_names = [names[account_id] for account_id in ids]
    await connection.execute(_ADD_ACCOUNTS, ids, new_names, initial.mu, initial.sigma, initial.shown)
    rows = await connection.fetch(
        'SELECT * FROM account WHERE account_id = ANY ($1) ORDER BY account_id COLLATE "C" FOR UPDATE', ids
    )
    found = {row["account_id"]: Rating(row["mu"], row["sigma"], row["matches"], row["wins"]) for row in rows}
    first, second = (found[player.account_id] for player in proof.contract.seats)
    return first, second


async def _add_result(connection: Connection, proof: Proof, time: datetime) -> int:
    claim, contract, statement = proof.claim, proof.contract, proof.statement
    return cast(
        "int",
        await connection.fetchval(
            _ADD_RESULT,
            contract.match_id,
            statement.session_id,
            claim.contract,
            contract.hash,
            proof.key_id,
            proof.public_key,
            claim.statement,
            *claim.signatures,
            contract.is_ranked,
            statement.ending,
            statement.winner,
            len(statement.rounds),
            time,
        ),
    )


async def _save_seats(connection: Connection, proof: Proof, order_number: int, before: Ratings, after: Ratings) -> None:
    seats = list(zip(proof.contract.seats, proof.statement.points, before, after, strict=True))
    await connection.executemany(
        "INSERT INTO result_seat VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        [
            (order_number, seat, player.account_id, player.display_name, points, old.mu, old.sigma, new.mu, new.sigma)
            for seat, (player, points, old, new) in enumerate(seats)
        ],
    )
    await save_accounts(connection, [(player.account_id, player.display_name, new) for player, _, _, new in seats])


async def save_accounts(connection: Connection, accounts: Sequence[tuple[str, str, Rating]]) -> None:
    """Write what is known of accounts; the caller holds their locks."""
    await connection.executemany(
        "UPDATE account SET display_name = $2, mu = $3, sigma = $4, rating = $5, matches = $6, wins = $7 "
        "WHERE account_id = $1",
        [(key, name, new.mu, new.sigma, new.shown, new.matches, new.wins) for key, name, new in accounts],
    )


async def _read_receipt(connection: Connection, row: asyncpg.Record) -> Receipt:
    seats = await connection.fetch(
        "SELECT * FROM result_seat WHERE order_number = $1 ORDER BY seat", row["order_number"]
    )
    first, second = (
        SeatReceipt(
            seat["account_id"],
            seat["display_name"],
            seat["points"],
            Rating(seat["mu_before"], seat["sigma_before"]).shown,
            Rating(seat["mu_after"], seat["sigma_after"]).shown,
        )
        for seat in seats
    )
    return Receipt(
        match_id=row["match_id"],
        order_number=row["order_number"],
        is_rated=row["is_rated"],
        ending=Ending(row["ending"]),
        winner=row["winner"],
        rounds=row["rounds"],
        seats=(first, second),
        create_time=row["create_time"].timestamp(),
    )


def _receipt(proof: Proof, order_number: int, time: datetime, before: Ratings, after: Ratings) -> Receipt:
    contract, statement = proof.contract, proof.statement
    first, second = (
        SeatReceipt(player.account_id, player.display_name, points, old.shown, new.shown)
        for player, points, old, new in zip(contract.seats, statement.points, before, after, strict=True)
    )
    return Receipt(
        match_id=contract.match_id,
        order_number=order_number,
        is_rated=contract.is_ranked,
        ending=statement.ending,
        winner=statement.winner,
        rounds=len(statement.rounds),
        seats=(first, second),
        create_time=time.timestamp(),
    )


def _snapshot(connection: Connection) -> Transaction:
    """Let several reads see one state."""
    return connection.transaction(isolation="repeatable_read", readonly=True)


async def _count_better(connection: Connection, row: asyncpg.Record) -> tuple[int, int]:
    """Count the accounts with a better rating, and those that stand before this row."""
    counts = await connection.fetchrow(_PLACES, row["rating"], row["account_id"])
    assert counts is not None, "an aggregate always gives a row"
    return counts["better"], counts["before"]


def _standing(row: asyncpg.Record) -> Standing:
    return Standing(row["account_id"], row["display_name"], row["rating"], row["matches"], row["wins"])
