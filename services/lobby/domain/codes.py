"""The codes of rooms: short enough to say on the telephone, too many to guess."""

from __future__ import annotations

from collections.abc import Callable

from services.lobby.domain.errors import FieldInvalid

ALPHABET = "23456789BCDFGHJKMNPQRSTVWXZ"
"""Neither 0 and O nor 1, I and L, which look alike, and no vowels, so that no code is a word."""
LENGTH = 6
"""27^6 is 387 million codes; the limits on misses make a guess worthless."""
_MAX_TYPED = 32


def new_code(choose: Callable[[str], str]) -> str:
    """Draw a code; `choose` picks one character uniformly and unpredictably."""
    return "".join(choose(ALPHABET) for _ in range(LENGTH))


def read_code(typed: str) -> str:
    """Read a code as people type it: small letters, hyphens and blanks do not matter.

    Raises:
        FieldInvalid: It cannot be a code, so that looking it up would be no guess either.
    """
    if len(typed) <= _MAX_TYPED and typed.isascii():
        code = typed.replace("-", "").replace(" ", "").upper()
        if len(code) == LENGTH and all(character in ALPHABET for character in code):
            return code
    raise FieldInvalid("code", f"{LENGTH} characters of {ALPHABET}")
