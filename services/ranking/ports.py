"""What ranking needs from outside."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from services.ranking.domain.history import OrderBound, Query, RatingHistory, ReceiptPage, Window
from services.ranking.domain.leaderboard import PlaceBound, Standing, StandingPage
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


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who reads: an address and, where one was shown, an access token that nobody has verified yet."""

    address: str
    access_token: str = field(default="", repr=False)


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
    """Counts calls."""

    async def take_submission(self, address: str) -> None:
        """Count one submission of this address.

        Raises:
            RateLimited: There were too many.
        """
        ...

    async def take_read(self, visitor: Visitor) -> None:
        """Count one read of this address and, where the token is valid, of its account.

        Raises:
            RateLimited: There were too many.
        """
        ...


class Log(Protocol):
    """The log of results, and the ratings that follow from it."""

    async def record(self, proof: Proof, now: float, rate: Rate) -> Receipt:
        """Record a proven result and what it does to ratings, in one transaction.

        The same statement again gives the receipt of the first time.

        Raises:
            ResultConflict: Another statement of this match was recorded before. This one was noted.
        """
        ...


class Standings(Protocol):
    """The accounts in the order of the leaderboard."""

    async def list_standings(self, bound: PlaceBound | None, size: int) -> tuple[StandingPage, int, int]:
        """Give a page of rated accounts, and how many are better than and stand before its first row."""
        ...

    async def list_neighbors(
        self, account_id: str, above: int, below: int
    ) -> tuple[StandingPage, int, int] | Standing | None:
        """Give an account with those around it, and both numbers as above.

        Without a rated match the account alone; None when it never played.
        """
        ...

    async def find_standing(self, account_id: str) -> tuple[Standing, int] | None:
        """Give an account with its rank (0 without a rated match), if it ever played."""
        ...


class Histories(Protocol):
    """What single accounts played."""

    async def list_receipts(self, query: Query, bound: OrderBound | None, size: int) -> ReceiptPage:
        """Give a page of an account's results, newest first."""
        ...

    async def find_receipt(self, match_id: uuid.UUID) -> Receipt | None:
        """Give the result of a match, if one is recorded."""
        ...

    async def trace_rating(self, account_id: str, window: Window, most: int) -> RatingHistory:
        """Give at most so many points of an account's rating."""
        ...
