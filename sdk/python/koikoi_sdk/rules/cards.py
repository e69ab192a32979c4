"""The 48 cards: numbers, names, months and kinds (docs/rules.md section 1).

A card is its number c = 4*(month-1) + (index-1), 0..47, so sorting numbers sorts names.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from koikoi_sdk.rules.errors import Reason, RulesError

Card = int
"""A card number, 0..47."""

CARDS_IN_DECK = 48
NAMES: tuple[str, ...] = tuple(f"{m:02d}-{i}" for m in range(1, 13) for i in range(1, 5))
_NUMBERS = {name: number for number, name in enumerate(NAMES)}


class Kind(StrEnum):
    """What a card counts as."""

    HIKARI = "hikari"
    TANE = "tane"
    TANZAKU = "tanzaku"
    KASU = "kasu"


def card_number(name: object) -> Card:
    """Turn a name `MM-I` into its number.

    Raises:
        RulesError: BAD_CARD, the value is not the name of one of the 48 cards.
    """
    number = _NUMBERS.get(name) if isinstance(name, str) else None
    if number is None:
        raise RulesError(Reason.BAD_CARD, "card", "a name 01-1 to 12-4")
    return number


def card_name(card: Card) -> str:
    """Give the name `MM-I` of a card number 0..47.

    Raises:
        RulesError: BAD_CARD, the number is not that of a card.
    """
    if not 0 <= card < CARDS_IN_DECK:
        raise RulesError(Reason.BAD_CARD, "card", "a number 0 to 47")
    return NAMES[card]


def month(card: Card) -> int:
    """Give the month 1..12 of a card; matching looks at nothing else."""
    return card // 4 + 1


def cards(names: str) -> frozenset[Card]:
    """Read a set of cards from names separated by blanks."""
    return frozenset(card_number(name) for name in names.split())


ALL = frozenset(range(CARDS_IN_DECK))
HIKARI = cards("01-1 03-1 08-1 11-1 12-1")
TANE = cards("02-1 04-1 05-1 06-1 07-1 08-2 09-1 10-1 11-2")
TANZAKU = cards("01-2 02-2 03-2 04-2 05-2 06-2 07-2 09-2 10-2 11-3")
KASU = ALL - HIKARI - TANE - TANZAKU
_KINDS = {Kind.HIKARI: HIKARI, Kind.TANE: TANE, Kind.TANZAKU: TANZAKU, Kind.KASU: KASU}


def kind(card: Card) -> Kind:
    """Give the kind of a card; the sake cup 09-1 is a tane here, variants may count it twice."""
    return next(name for name, members in _KINDS.items() if card in members)


def names_of(members: Iterable[Card]) -> list[str]:
    """Give the names of a set of cards in ascending order."""
    return [NAMES[card] for card in sorted(members)]


def matches(field: Iterable[Card], card: Card) -> tuple[Card, ...]:
    """Give the field cards of the same month as a card, ascending."""
    return tuple(sorted(other for other in field if other // 4 == card // 4))
