"""What ranking needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from services.ranking.domain.leaderboard import Cursor, Standing
from services.ranking.domain.ratings import Ratings
from services.ranking.domain.result import Proof, Receipt

Rate = Callable[[Ratings, int | None], Ratings]
"""Gives both ratings after a rated match with this winner's seat (None for a draw)."""


@dataclass(frozen=True, slots=True)
class VerifiedContract:
    """A contract whose signature, type and issuer were verified, and the key that did."""

    payload: bytes
    key_id: str
    public_key: bytes


class Contracts(Protocol):
    """Knows the lobby's keys."""

    async def verify(self, compact: str) -> VerifiedContract:
        """Check the lobby's signature.

        Raises:
            ContractInvalid: It does not verify.
            KeysUnavailable: The lobby's keys cannot be read now.
        """
        ...


class Limits(Protocol):
    """Counts calls by address."""

    async def take(self, address: str) -> None:
        """Count one submission.

        Raises:
            RateLimited: There were too many.
        """
        ...


class Results(Protocol):
    """The log of results, and the ratings that follow from it."""

    async def record(self, proof: Proof, now: float, rate: Rate) -> Receipt:
        """Record a proven result and what it does to ratings, in one transaction.

        The same statement again gives the receipt of the first time.

        Raises:
            ResultConflict: Another statement of this match, or another match of this session, was
                recorded before. This one was noted.
        """
        ...

    async def list_standings(self, after: Cursor | None, count: int) -> tuple[list[Standing], int, int]:
        """Give up to `count` rated accounts after the cursor, best first.

        Also gives the first one's place in the total order and its shared place, both from 1.
        """
        ...

    async def find_standing(self, account_id: str) -> tuple[Standing, int] | None:
        """Give an account with its shared place (0 without a rated match), if it ever played."""
        ...
