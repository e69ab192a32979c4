"""Places on the leaderboard.

Rows stand in the order of the shown rating, highest first, then of the account id's bytes, so that the order is total.
A rank is one more than the number of accounts with a higher rating: equal ratings share it (1, 2, 2, 4).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

from services.ranking.domain.errors import field_invalid
from services.ranking.domain.pages import Bound, Page, Tokens

MAX_ACCOUNT_ID_CHARS = 256
DEFAULT_NEIGHBORS = 5
MAX_NEIGHBORS = 100
_RATING = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order: the account that stands there, and its rating."""

    rating: int
    account_id: str


@dataclass(frozen=True, slots=True)
class Standing:
    """One account as the leaderboard shows it; `rating` is the shown number."""

    account_id: str
    display_name: str
    rating: int
    matches: int
    wins: int

    @property
    def place(self) -> Place:
        """Give its place in the order."""
        return Place(self.rating, self.account_id)


PlaceBound: TypeAlias = Bound[Place]
StandingPage: TypeAlias = Page[Standing, Place]


@dataclass(frozen=True, slots=True)
class Entry:
    """A standing with its rank, from 1; 0 for an account without a rated match."""

    rank: int
    standing: Standing


@dataclass(frozen=True, slots=True)
class Board:
    """Consecutive rows of the leaderboard with the tokens of the pages beside them, empty at the ends."""

    entries: tuple[Entry, ...]
    next_page_token: str = ""
    previous_page_token: str = ""


def check_account_id(account_id: str, field: str = "account_id") -> str:
    """Give back an account id that may exist.

    Raises:
        FieldInvalid: Empty, too long, or with a character no id has.
    """
    if not 0 < len(account_id) <= MAX_ACCOUNT_ID_CHARS or "\0" in account_id:
        raise field_invalid(field, f"1 to {MAX_ACCOUNT_ID_CHARS} characters, none of them NUL")
    return account_id


def check_neighbors(wanted: int | None, field: str) -> int:
    """Give the number of rows to show on one side, 5 when nothing is said.

    Raises:
        FieldInvalid: More than 100.
    """
    if wanted is None:
        return DEFAULT_NEIGHBORS
    if wanted > MAX_NEIGHBORS:
        raise field_invalid(field, f"0 to {MAX_NEIGHBORS}, or unset for {DEFAULT_NEIGHBORS}")
    return wanted


def make_board(page: StandingPage, *, better: int, before: int) -> Board:
    """Give ranks to the rows of a page.

    Of the first row, `better` is the number of accounts with a higher rating, `before` of those that stand before it.
    """
    entries: list[Entry] = []
    rank = better + 1
    for index, row in enumerate(page.rows):
        if index and row.rating != page.rows[index - 1].rating:
            rank = before + index + 1
        entries.append(Entry(rank, row))
    return Board(tuple(entries), TOKENS.write(page.next), TOKENS.write(page.previous))


def _encode(place: Place) -> bytes:
    return _RATING.pack(place.rating) + place.account_id.encode()


def _decode(data: bytes) -> Place:
    if len(data) < _RATING.size:
        raise ValueError("too short")
    (rating,) = _RATING.unpack_from(data)
    return Place(rating, check_account_id(data[_RATING.size :].decode()))


TOKENS = Tokens("leaderboard", _encode, _decode)
"""The page tokens of the leaderboard, which has no filters."""
