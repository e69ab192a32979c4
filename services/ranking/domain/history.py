"""What an account played: which of its results are asked for, and how its rating went."""

from __future__ import annotations

import enum
import json
import uuid
from dataclasses import dataclass
from typing import TypeAlias

from services.ranking.domain.errors import field_invalid
from services.ranking.domain.leaderboard import check_account_id
from services.ranking.domain.pages import Bound, Page, Tokens
from services.ranking.domain.result import Receipt
from services.ranking.domain.statement import Ending

DEFAULT_POINTS = 100
MAX_POINTS = 500
_ORDER_SIZE = 8
_MAX_ORDER = 1 << 62
_SECOND_NS = 1_000_000_000
_LAST_SECOND = 253_370_764_799
"""9998-12-31T23:59:59Z."""

OrderBound: TypeAlias = Bound[int]
ReceiptPage: TypeAlias = Page[Receipt, int]


class SeatOutcome(enum.IntEnum):
    """What a match meant for one account, as it is stored."""

    LOST = -1
    DRAWN = 0
    WON = 1


@dataclass(frozen=True, slots=True)
class Time:
    """A time as a request says it."""

    seconds: int
    nanos: int


@dataclass(frozen=True, slots=True)
class Window:
    """Times of recording in whole microseconds since 1970, from `start_us` to before `end_us`; None is open."""

    start_us: int | None = None
    end_us: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """Asks for results of one account; None lets everything through."""

    account_id: str
    is_rated_only: bool = False
    opponent_id: str | None = None
    outcome: SeatOutcome | None = None
    ending: Ending | None = None
    window: Window = Window()

    def tokens(self) -> Tokens[int]:
        """Give the page tokens of exactly this query."""
        window = (self.window.start_us, self.window.end_us)
        filters = (self.account_id, self.is_rated_only, self.opponent_id, self.outcome, self.ending, *window)
        return Tokens(f"results {json.dumps(filters)}", _encode, _decode)


@dataclass(frozen=True, slots=True)
class RatingPoint:
    """A shown rating after a result; `create_time` in unix seconds."""

    order_number: int
    create_time: float
    rating: int


@dataclass(frozen=True, slots=True)
class RatingHistory:
    """Points of a rating, oldest first, taken of `matches` results; `rating_before` stood when the window began."""

    points: tuple[RatingPoint, ...]
    matches: int
    rating_before: int


@dataclass(frozen=True, slots=True)
class Results:
    """Some results of an account, newest first, with the tokens of the pages beside them, empty at the ends."""

    receipts: tuple[Receipt, ...]
    next_page_token: str
    previous_page_token: str


def check_query(query: Query) -> Query:
    """Give back a query whose accounts may exist.

    Raises:
        FieldInvalid: One may not.
    """
    check_account_id(query.account_id)
    if query.opponent_id is not None:
        check_account_id(query.opponent_id, "opponent_id")
    return query


def check_window(start: Time | None, end: Time | None) -> Window:
    """Give the window between two times, either of which may be missing.

    Raises:
        FieldInvalid: A time is out of range, or the end is not after the start.
    """
    window = Window(_microseconds(start, "start_time"), _microseconds(end, "end_time"))
    if window.start_us is not None and window.end_us is not None and window.start_us >= window.end_us:
        raise field_invalid("end_time", "after start_time")
    return window


def check_match_id(text: str) -> uuid.UUID:
    """Read a match id.

    Raises:
        FieldInvalid: Not a UUID in its one usual form.
    """
    try:
        match_id = uuid.UUID(text)
    except ValueError:
        match_id = None
    if match_id is None or str(match_id) != text:
        raise field_invalid("match_id", "a UUID, lower-case with hyphens")
    return match_id


def check_points(wanted: int) -> int:
    """Give the number of points to show, 100 when none is wanted.

    Raises:
        FieldInvalid: More than 500.
    """
    if wanted > MAX_POINTS:
        raise field_invalid("max_points", f"1 to {MAX_POINTS}, or 0 for {DEFAULT_POINTS}")
    return wanted or DEFAULT_POINTS


def spread(count: int, most: int) -> list[int]:
    """Choose at most `most` of the positions 0 to count - 1, evenly; the first and the last are among them.

    Of one, the last: it is what stands now.
    """
    if count <= most:
        return list(range(count))
    if most == 1:
        return [count - 1]
    return [index * (count - 1) // (most - 1) for index in range(most)]


def _microseconds(time: Time | None, field: str) -> int | None:
    """Round up: stored times are whole microseconds, so this changes no comparison."""
    if time is None:
        return None
    if not 0 <= time.seconds <= _LAST_SECOND or not 0 <= time.nanos < _SECOND_NS:
        raise field_invalid(field, "a time of the years 1970 to 9998")
    return -(-(time.seconds * _SECOND_NS + time.nanos) // 1000)


def _encode(order_number: int) -> bytes:
    return order_number.to_bytes(_ORDER_SIZE, "big")


def _decode(data: bytes) -> int:
    order_number = int.from_bytes(data, "big")
    if len(data) != _ORDER_SIZE or not 0 < order_number < _MAX_ORDER:
        raise ValueError("not an order number")
    return order_number
