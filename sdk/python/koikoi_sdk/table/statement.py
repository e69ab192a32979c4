"""The two fixed layouts that both devices agree on: a round's result and the match's (section 18).

    round  = byte(kind: 0 shobu, 1 exhausted, 2 hand yaku) | byte(winner seat or 255) | u16 score | u16 payment
           | u16 points of seat 0 after | u16 points of seat 1 after
    match  = byte(1) | contract_hash(32) | session_id(32) | byte(ending) | byte(winner seat, 2 = draw)
           | u16 points 0 | u16 points 1 | byte(number of rounds) | rounds | final head(32)

Only signatures over the match's statement travel: each device builds it from its own state.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from koikoi_sdk.poker import digest
from koikoi_sdk.rules import Pair, ResultKind, RoundResult

VERSION = 1
NOBODY = 255
DRAW = 2
_KINDS = {ResultKind.SHOBU: 0, ResultKind.EXHAUSTED: 1, ResultKind.TEYAKU: 2}


class Ending(IntEnum):
    """How a match ended, as the statement says it."""

    PLAYED = 0
    BUST = 1
    RESIGNED = 2


def encode_round(result: RoundResult) -> bytes:
    """Give the canonical result of a round that counts, 10 bytes."""
    winner = NOBODY if result.winner is None else result.winner
    numbers = (result.score, result.payment, *result.points_after)
    return bytes([_KINDS[result.kind], winner]) + b"".join(number.to_bytes(2, "big") for number in numbers)


def hash_round(session_id: bytes, number: int, canonical: bytes) -> bytes:
    """Give the hash of a round's result that AU1 and AU2 carry; rounds count from 1."""
    return digest("round-result", session_id, number.to_bytes(2, "big"), canonical)[:32]


@dataclass(frozen=True, slots=True)
class Statement:
    """What both devices sign of a match; `winner` is None for a draw, `rounds` are canonical results."""

    contract_hash: bytes
    session_id: bytes
    ending: Ending
    winner: int | None
    points: Pair
    rounds: tuple[bytes, ...]
    head: bytes

    def encode(self) -> bytes:
        """Give the one encoding of this statement."""
        winner = DRAW if self.winner is None else self.winner
        points = b"".join(number.to_bytes(2, "big") for number in self.points)
        start = bytes([VERSION]) + self.contract_hash + self.session_id + bytes([self.ending, winner])
        return start + points + bytes([len(self.rounds)]) + b"".join(self.rounds) + self.head


@dataclass(frozen=True, slots=True)
class SignedResult:
    """A match result that both devices signed; `signatures` are by seat, over `digest`."""

    statement: Statement
    signatures: tuple[bytes, bytes]

    @property
    def digest(self) -> bytes:
        """Give the 64 bytes that are signed; they show nothing of the match."""
        return digest("match-result", self.statement.encode())
