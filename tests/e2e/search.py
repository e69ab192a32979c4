"""Looks for many values at once in much memory: raw, in hex and in base64, wherever they begin.

Wherever a written form of a value lies, its first 23 bytes hold one whole 8-byte word that begins at a multiple of 16.
So the words at its first sixteen offsets are kept, every second word of the data is looked up once, and what is found
is compared in full.
"""

from __future__ import annotations

import base64
from array import array
from collections.abc import Iterable, Iterator

__all__ = ["OVERLAP", "Search", "cut", "write_forms"]

OVERLAP = 512
"""Bytes by which neighbouring pieces of data must overlap; no written form of a part is longer."""
_PART = 32
_SHORTEST, _IGNORED = 23, 16
_FEWEST_DIFFERENT = 6
_WORD, _STEP = 8, 16
_PAGE = 4096
_NOTHING = bytes(_PAGE)
_BASE64_SKIP = (0, 2, 3)  # characters that also hold bits of what stands before


def write_forms(value: bytes) -> dict[str, bytes]:
    """Write a value in every searched way; base64 once for each place that it may have among the bytes before it."""
    forms = {"raw": value, "hex": value.hex().encode(), "HEX": value.hex().upper().encode()}
    for before, skip in enumerate(_BASE64_SKIP):
        whole = (before + len(value)) * 8 // 6  # characters that hold nothing of what stands behind
        padded = bytes(before) + value
        forms[f"base64+{before}"] = base64.b64encode(padded)[skip:whole]
        forms[f"base64url+{before}"] = base64.urlsafe_b64encode(padded)[skip:whole]
    return forms


def cut(read: Iterable[bytes], size: int = 1 << 20) -> Iterator[bytes]:
    """Cut a stream into overlapping pieces."""
    rest = b""
    for block in read:
        for at in range(0, len(block), size):
            piece = rest + block[at : at + size]
            yield piece
            rest = piece[-OVERLAP:]


class Search:
    """The values that are looked for, each under a name.

    A long value is looked for in parts of 32 bytes, so that a fragment is found too. Values under 16 bytes and padding
    say nothing and are left out.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[str, bytes]] = []
        self._words: dict[int, tuple[int, ...]] = {}
        self._known: set[int] = set()  # the same words: a set is asked twice as fast

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, name: str, value: bytes) -> None:
        """Look for this value from now on."""
        value = value.rstrip(b"\0")
        if len(value) < _IGNORED:
            return
        if len(value) < _SHORTEST:
            raise ValueError(f"a value of {len(value)} bytes is too short to be found everywhere")
        for at in range(0, max(1, len(value) - _PART + 1), _PART):
            self._add_part(name, value[at : at + _PART])
        if len(value) % _PART and len(value) > _PART:
            self._add_part(name, value[-_PART:])

    def _add_part(self, name: str, part: bytes) -> None:
        if len(set(part)) < _FEWEST_DIFFERENT:
            return
        number = len(self._parts)
        self._parts.append((name, part))
        alone = (number,)
        for form in set(write_forms(part).values()):
            for at in range(_STEP):
                (word,) = array("Q", form[at : at + _WORD])
                self._known.add(word)
                others = self._words.get(word, ())
                if number not in others:
                    self._words[word] = (*others, number) if others else alone

    def find(self, data: bytes) -> set[tuple[str, str]]:
        """Give name and form of what stands in the data."""
        pages = (data[at : at + _PAGE] for at in range(0, len(data), _PAGE))
        dense = b"".join(page for page in pages if page != _NOTHING)
        words = array("Q", dense[: len(dense) // _WORD * _WORD])[:: _STEP // _WORD]
        if self._known.isdisjoint(words):  # nearly always
            return set()
        numbers = {number for word in self._known.intersection(words) for number in self._words[word]}
        found = set()
        for name, part in map(self._parts.__getitem__, numbers):
            found |= {(name, form) for form, written in write_forms(part).items() if written in data}
        return found

    def find_all(self, pieces: Iterable[bytes]) -> set[tuple[str, str]]:
        """Give name and form of what stands in any of the pieces."""
        return set().union(*map(self.find, pieces))
