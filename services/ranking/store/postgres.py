"""The log of results on Postgres, and the ratings that follow from it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import asyncpg

from services.kit.postgres import Pool
from services.ranking.domain.errors import ResultConflict
from services.ranking.domain.ratings import Rating, Ratings
from services.ranking.domain.result import Proof, Receipt, SeatReceipt
from services.ranking.ports import Rate
from services.ranking.store.histories import read_receipts
from services.ranking.store.standings import Connection

SCHEMA = "ranking"
MIGRATIONS = Path(__file__).with_name("sql")
MAX_CONFLICTS = 8

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
_FIND_RESULT = "SELECT order_number, statement FROM result WHERE match_id = $1"
_ADD_CONFLICT = """
    INSERT INTO conflict (match_id, statement_hash, contract, statement, signature_0, signature_1, create_time)
    SELECT $1, $2, $3, $4, $5, $6, $7 WHERE (SELECT count(*) FROM conflict WHERE match_id = $1) < $8
    ON CONFLICT DO NOTHING
"""


class PostgresLog:
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

    async def _record(self, connection: Connection, proof: Proof, time: datetime, rate: Rate) -> Receipt:
        """Give the receipt, the stored one for a statement that stands already; a contradiction undoes everything."""
        before = await _lock_accounts(connection, proof)
        stored = await connection.fetchrow(
            "SELECT order_number, statement FROM result WHERE match_id = $1", proof.contract.match_id
        )
        if stored is not None:
            if stored["statement"] != proof.claim.statement:
                raise _conflict(proof)
            (receipt,) = await read_receipts(connection, [stored["order_number"]])
            return receipt
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
        "SELECT * FROM account WHERE account_id = ANY ($1) ORDER BY account_id FOR UPDATE", ids
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
