"""Places on the leaderboard, and the cursor that continues a page.

Rows are ordered by shown rating, best first, then by account id, so that the order is total and a
page continues after a row and not after a count: rows that move between two calls neither break a
cursor nor shift the rest.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from services.ranking.domain.errors import FieldInvalid, field_invalid

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
MAX_ACCOUNT_ID_CHARS = 256
_MAX_TOKEN_CHARS = 2048
_RATING = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The row after which a page begins."""

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


@dataclass(frozen=True, slots=True)
class Entry:
    """A standing with its place, from 1; 0 for an account without a rated match."""

    rank: int
    standing: Standing


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows of the leaderboard; `next_page_token` is empty at the end."""

    entries: tuple[Entry, ...]
    next_page_token: str


def check_page_size(wanted: int) -> int:
    """Give the number of rows to show, 50 when none is wanted.

    Raises:
        FieldInvalid: More than 200.
    """
    if wanted > MAX_PAGE_SIZE:
        raise field_invalid("page_size", f"1 to {MAX_PAGE_SIZE}, or 0 for {DEFAULT_PAGE_SIZE}")
    return wanted or DEFAULT_PAGE_SIZE


def check_account_id(account_id: str) -> str:
    """Give back an account id that may exist.

    Raises:
        FieldInvalid: Empty, too long, or with a character no id has.
    """
    if not 0 < len(account_id) <= MAX_ACCOUNT_ID_CHARS or "\0" in account_id:
        raise field_invalid("account_id", f"1 to {MAX_ACCOUNT_ID_CHARS} characters")
    return account_id


def encode_cursor(cursor: Cursor) -> str:
    """Write a cursor as a page token."""
    return base64.urlsafe_b64encode(_RATING.pack(cursor.rating) + cursor.account_id.encode()).decode()


def decode_cursor(token: str) -> Cursor | None:
    """Read a page token; None for the empty one, which begins at the top.

    Raises:
        FieldInvalid: Not a token that `encode_cursor` could have written.
    """
    if not token:
        return None
    try:
        data = base64.b64decode(token[:_MAX_TOKEN_CHARS], b"-_", validate=True)
        (rating,) = _RATING.unpack_from(data)
        cursor = Cursor(rating, check_account_id(data[_RATING.size :].decode()))
    except (ValueError, struct.error, FieldInvalid):
        cursor = None
    if cursor is None or encode_cursor(cursor) != token:
        raise field_invalid("page_token", "empty, or the next_page_token of an earlier answer")
    return cursor


def paginate(rows: Sequence[Standing], page_size: int, position: int, rank: int) -> Page:
    """Give places to consecutive rows and cut them to a page.

    `rows` may hold one row more than the page, which says that there is a next one. `position` is
    the first row's place in the total order and `rank` its shared place, both from 1.
    """
    entries: list[Entry] = []
    for index, row in enumerate(rows[:page_size]):
        if index and row.rating != rows[index - 1].rating:
            rank = position + index
        entries.append(Entry(rank, row))
    has_more = len(rows) > page_size
    last = entries[-1].standing if has_more else None
    token = encode_cursor(Cursor(last.rating, last.account_id)) if last else ""
    return Page(tuple(entries), token)
