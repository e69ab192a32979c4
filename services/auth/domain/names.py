"""Display names and device names: what a person may be called, and names for those who do not choose.

A name is stored in NFKC, so two spellings that look alike are one name (UAX #15). Refused is what a reader cannot see
or what changes the text around it: control, format and bidi characters, default-ignorable code points (UAX #44),
private-use and unassigned code points, blank symbols, unusual spaces, a leading combining mark, piles of marks.
"""

import unicodedata
from collections.abc import Callable

import regex  # type: ignore[import-untyped]  # its \X knows graphemes; the standard library's re does not

from services.auth.domain.errors import DisplayNameInvalid, FieldInvalid

MAX_NAME_GRAPHEMES = 20
MAX_NAME_BYTES = 200  # room for 20 graphemes of any script; keeps token and match contract small
MAX_DEVICE_NAME_GRAPHEMES = 40
MAX_DEVICE_NAME_BYTES = 400

_MAX_MARKS_IN_A_ROW = 3
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# Visible by category only: braille blank, musical null notehead, Khitan filler, object and replacement characters.
_BLANK = frozenset("\u2800\U0001d159\U00016fe4\ufffc\ufffd")
_IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
_GRAPHEME = regex.compile(r"\X")

_SCENES = (
    "雪見の", "梅林の", "夜桜の", "藤棚の", "菖蒲の", "牡丹の", "萩原の", "月見の",
    "菊酒の", "紅葉の", "柳雨の", "桐壺の", "朝霧の", "夕凪の", "花散里の", "山吹の",
)  # fmt: skip
_GUESTS = (
    "鶴", "鶯", "燕", "蝶", "猪", "鹿", "雁", "鳳凰", "不如帰", "蛙", "狐", "狸", "兎", "鯉", "蛍", "鈴虫",
)  # fmt: skip


def normalise_display_name(text: str) -> str:
    """Return the name as it is stored.

    Raises:
        DisplayNameInvalid: Metadata names the broken `rule`, and the `limit` where there is one.
    """
    broken, name = _normalise(text, 1, MAX_NAME_GRAPHEMES, MAX_NAME_BYTES)
    if broken:
        raise DisplayNameInvalid(
            f"A display name must have {_EXPLANATIONS[broken]}; choose another one.",
            metadata={"rule": broken, "limit": str(MAX_NAME_GRAPHEMES)},
            field="display_name",
        )
    return name


def normalise_device_name(text: str) -> str:
    """Return the name a device is listed under; it may be empty.

    Raises:
        FieldInvalid: Metadata names the broken `rule` and the `limit`.
    """
    broken, name = _normalise(text, 0, MAX_DEVICE_NAME_GRAPHEMES, MAX_DEVICE_NAME_BYTES)
    if broken:
        raise FieldInvalid(
            f"A device name must have at most {MAX_DEVICE_NAME_GRAPHEMES} characters and {_EXPLANATIONS[broken]}.",
            metadata={"field": "device_name", "rule": broken, "limit": str(MAX_DEVICE_NAME_GRAPHEMES)},
            field="device_name",
        )
    return name


def generate_display_name(below: Callable[[int], int]) -> str:
    """Return a name like 月見の兎482 for an account whose owner chose none; names need not be unique.

    Args:
        below: Gives a random number from 0 up to but without its argument.
    """
    return f"{_SCENES[below(len(_SCENES))]}{_GUESTS[below(len(_GUESTS))]}{10 + below(9990)}"


_EXPLANATIONS = {
    "length": f"1 to {MAX_NAME_GRAPHEMES} characters",
    "size": "fewer bytes",
    "invisible": "no invisible, control, private or unassigned characters",
    "spaces": "only single plain spaces, and none at its ends",
    "marks": f"no leading combining mark and at most {_MAX_MARKS_IN_A_ROW} in a row",
}


def _normalise(text: str, least: int, most: int, max_bytes: int) -> tuple[str, str]:
    """Return the first broken rule (empty for none) and the normalised text."""
    if len(text) > max_bytes:  # before any work that grows with the input
        return "size", ""
    name = unicodedata.normalize("NFKC", text)
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("invisible", lambda: _has_invisible(name)),  # first: a lone surrogate has no bytes to count
        ("size", lambda: len(name.encode()) > max_bytes),
        ("spaces", lambda: _has_odd_spaces(name)),
        ("marks", lambda: _has_loose_marks(name)),
        ("length", lambda: not least <= len(_GRAPHEME.findall(name)) <= most),
    )
    return next((rule for rule, is_broken in checks if is_broken()), ""), name


def _has_invisible(name: str) -> bool:
    return bool(_IGNORABLE.search(name)) or any(
        unicodedata.category(character) in _REFUSED_CATEGORIES or character in _BLANK for character in name
    )


def _has_odd_spaces(name: str) -> bool:
    is_other_space = any(unicodedata.category(character) == "Zs" and character != " " for character in name)
    return is_other_space or name != name.strip(" ") or "  " in name


def _has_loose_marks(name: str) -> bool:
    run = 0
    for index, character in enumerate(name):
        category = unicodedata.category(character)
        if category.startswith("M") and index == 0:
            return True
        run = run + 1 if category in {"Mn", "Me"} else 0
        if run > _MAX_MARKS_IN_A_ROW:
            return True
    return False
