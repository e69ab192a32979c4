"""Pages of a list in a total order, and the tokens that go on from one in either direction.

A token holds a bound: the key of a row, and on which side of it the page begins. Rows that come, go or move in between
neither break it nor shift the rest. It also holds a digest over itself and the query it was given for. There is no
secret in it, and none is needed: whoever computes a token of his own asks for rows that anybody may see.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.ranking.domain.errors import FieldInvalid, field_invalid

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
_MAX_TOKEN_CHARS = 2048
_DIGEST_SIZE = 12
_FORWARD, _INCLUDED = 1, 2

Row = TypeVar("Row")
Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Bound(Generic[Key]):
    """Where a page begins, at a row that stood there once, and which way it goes.

    `is_included` tells whether that row itself, when it still stands there, belongs to the page.
    """

    key: Key
    is_forward: bool
    is_included: bool = False

    @property
    def turned(self) -> Bound[Key]:
        """Give the same place, looked at the other way."""
        return Bound(self.key, not self.is_forward, not self.is_included)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row, Key]):
    """Some rows in the order of the list, and where the pages beside it begin; None where there is none."""

    rows: tuple[Row, ...]
    previous: Bound[Key] | None
    next: Bound[Key] | None


def check_page_size(wanted: int) -> int:
    """Give the number of rows to show, 50 when none is wanted.

    Raises:
        FieldInvalid: More than 200.
    """
    if wanted > MAX_PAGE_SIZE:
        raise field_invalid("page_size", f"1 to {MAX_PAGE_SIZE}, or 0 for {DEFAULT_PAGE_SIZE}")
    return wanted or DEFAULT_PAGE_SIZE


def cut_page(
    rows: Sequence[Row], size: int, bound: Bound[Key] | None, key: Callable[[Row], Key], *, has_behind: bool
) -> Page[Row, Key]:
    """Cut rows to a page and find its neighbours.

    `rows` go from the bound in its direction (from the top without one); one row more than `size` says that there are
    more. `has_behind` tells whether there is a row on the other side of the bound.
    """
    shown, has_ahead = rows[:size], len(rows) > size
    is_forward = bound is None or bound.is_forward
    if not shown:
        back = bound.turned if bound is not None and has_behind else None
        return Page((), back, None) if is_forward else Page((), None, back)
    shown = shown if is_forward else shown[::-1]
    has_previous, has_next = (has_behind, has_ahead) if is_forward else (has_ahead, has_behind)
    return Page(
        tuple(shown),
        Bound(key(shown[0]), is_forward=False) if has_previous else None,
        Bound(key(shown[-1]), is_forward=True) if has_next else None,
    )


class Tokens(Generic[Key]):
    """Writes and reads the page tokens of one query.

    Args:
        query: Names the list and its filters; a token is valid for the same query only.
        encode: Writes a key as bytes.
        decode: Reads what `encode` wrote; raises ValueError for anything else.
    """

    def __init__(self, query: str, encode: Callable[[Key], bytes], decode: Callable[[bytes], Key]) -> None:
        self._query = hashlib.sha256(query.encode()).digest()
        self._encode, self._decode = encode, decode

    def write(self, bound: Bound[Key] | None) -> str:
        """Write a bound as a token; empty for None."""
        if bound is None:
            return ""
        flags = bound.is_forward * _FORWARD + bound.is_included * _INCLUDED
        body = bytes([flags]) + self._encode(bound.key)
        return base64.urlsafe_b64encode(self._digest(body) + body).rstrip(b"=").decode()

    def read(self, token: str) -> Bound[Key] | None:
        """Read a token; None for the empty one, which begins at the top.

        Raises:
            FieldInvalid: Not a token that `write` gave for this query.
        """
        if not token:
            return None
        bound = self._parse(token) if len(token) <= _MAX_TOKEN_CHARS else None
        if bound is None or self.write(bound) != token:
            raise field_invalid("page_token", "empty, or a page token of an earlier answer to the same filters")
        return bound

    def _parse(self, token: str) -> Bound[Key] | None:
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
            flags = data[_DIGEST_SIZE]
            key = self._decode(data[_DIGEST_SIZE + 1 :])
        except (binascii.Error, ValueError, IndexError, FieldInvalid):
            return None
        return Bound(key, is_forward=bool(flags & _FORWARD), is_included=bool(flags & _INCLUDED))

    def _digest(self, body: bytes) -> bytes:
        return hashlib.blake2b(body, digest_size=_DIGEST_SIZE, key=self._query).digest()
