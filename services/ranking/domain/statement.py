"""The match result statement: its one binary layout, and whether the rules allow what it says.

Layout (docs/protocol.md section 18), integers big-endian:

    version 1 | contract_hash 32 | session_id 32 | ending 1 | winner 1 | points u16 u16 | rounds 1
    then per round  kind 1 | winner 1 | score u16 | payment u16 | points after u16 u16
    then            final_head 32

`check` lets the rules replay the rounds. It proves that some match could have ended as stated,
never that this one did: that is what the two signatures say.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from koikoi_sdk.rules import (
    EndReason,
    Match,
    Pair,
    Player,
    ReportedRound,
    ResultKind,
    RulesError,
    Variant,
    replay,
)

from services.ranking.domain.errors import StatementImpossible, StatementMalformed

VERSION = 1
DRAW = 2
NOBODY = 255
MAX_SIZE = 512
"""Bytes; more than the longest statement of any preset, a limit to be enforced before any work."""
_HEADER = struct.Struct(">B32s32sBBHHB")
_ROUND = struct.Struct(">BBHHHH")
_HEAD_SIZE = 32
_MIN_SIZE = _HEADER.size + _HEAD_SIZE
_KINDS = (ResultKind.SHOBU, ResultKind.EXHAUSTED, ResultKind.TEYAKU)


class Ending(IntEnum):
    """How a match ended, as its byte."""

    ROUNDS_PLAYED = 0
    BUST = 1
    RESIGNED = 2


_ENDINGS = {EndReason.ROUNDS: Ending.ROUNDS_PLAYED, EndReason.BUST: Ending.BUST}


@dataclass(frozen=True, slots=True)
class Statement:
    """A decoded statement; `winner` is a seat, or None for a draw."""

    contract_hash: bytes
    session_id: bytes
    ending: Ending
    winner: Player | None
    points: Pair
    rounds: tuple[ReportedRound, ...]
    final_head: bytes


def decode(data: bytes) -> Statement:
    """Read a statement; every value of every byte has one meaning or is refused.

    Raises:
        StatementMalformed: Wrong size, or a byte without a meaning; metadata names field and limit.
    """
    if not _MIN_SIZE <= len(data) <= MAX_SIZE:
        raise _malformed("statement", f"{_MIN_SIZE} to {MAX_SIZE} bytes")
    version, contract_hash, session_id, ending, winner, first, second, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise _malformed("version", str(VERSION))
    if ending >= len(Ending):
        raise _malformed("ending", "0, 1 or 2")
    if winner > DRAW:
        raise _malformed("winner", "0, 1 or 2")
    end = _HEADER.size + count * _ROUND.size
    if len(data) != end + _HEAD_SIZE:
        raise _malformed("rounds", "the number of round results that follow it")
    listed = enumerate(_ROUND.iter_unpack(data[_HEADER.size : end]))
    return Statement(
        contract_hash=contract_hash,
        session_id=session_id,
        ending=Ending(ending),
        winner=None if winner == DRAW else winner,
        points=(first, second),
        rounds=tuple(_decode_round(index, *fields) for index, fields in listed),
        final_head=data[end:],
    )


def check(statement: Statement, variant: Variant) -> None:
    """Check that a match under these rules could have ended as stated.

    Raises:
        StatementImpossible: Metadata names the field (with its round, from 0) and what it may be.
    """
    try:
        match = replay(variant, statement.rounds)
    except RulesError as error:
        raise _impossible(error.field, error.limit) from None
    if statement.points != match.points:
        raise _impossible("points", "the points after the last round listed")
    if statement.ending is Ending.RESIGNED:
        _check_resigned(statement, match)
    else:
        _check_played(statement, match)


def _check_resigned(statement: Statement, match: Match) -> None:
    if match.final is not None:
        raise _impossible("ending", "0 or 1, since the rounds listed end the match")
    if statement.winner is None:
        raise _impossible("winner", "the seat that did not resign")


def _check_played(statement: Statement, match: Match) -> None:
    if match.final is None:
        raise _impossible("rounds", "as many as the contract says, or end with 0 points of a player who pays")
    if statement.ending is not _ENDINGS[match.final.reason]:
        raise _impossible("ending", "1 when a player who pays has 0 points, else 0")
    if statement.winner != match.final.winner:
        raise _impossible("winner", "the seat with more points, or 2 when they are equal")


def _decode_round(
    index: int, kind: int, winner: int, score: int, payment: int, first: int, second: int
) -> ReportedRound:
    if kind >= len(_KINDS):
        raise _malformed(f"rounds[{index}].kind", "0, 1 or 2")
    if winner not in (0, 1, NOBODY):
        raise _malformed(f"rounds[{index}].winner", "0, 1 or 255")
    return ReportedRound(_KINDS[kind], None if winner == NOBODY else winner, score, payment, (first, second))


def _malformed(field: str, limit: str) -> StatementMalformed:
    message = f"The statement's {field} must be {limit}."
    return StatementMalformed(message, field="statement", metadata={"part": field, "limit": limit})


def _impossible(field: str, limit: str) -> StatementImpossible:
    message = f"The statement's {field} cannot follow from the contract's rules: expected {limit}."
    return StatementImpossible(message, field="statement", metadata={"part": field, "limit": limit})
