"""Scoring combinations: of the captured cards, and of a dealt hand (docs/rules.md sections 4 and 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from koikoi_sdk.rules.cards import HIKARI, KASU, TANE, TANZAKU, Card, cards
from koikoi_sdk.rules.variants import BothRibbons, Variant

Yaku = tuple[tuple[str, int], ...]
"""Names with their points, in the canonical order of docs/rules.md section 6."""

RAIN = cards("11-1")
CUP = cards("09-1")
HANAMI = cards("03-1 09-1")
TSUKIMI = cards("08-1 09-1")
INOSHIKACHO = cards("07-1 10-1 06-1")
AKATAN = cards("01-2 02-2 03-2")
AOTAN = cards("06-2 09-2 10-2")

TANE_FROM = 5
TAN_FROM = 5
KASU_FROM = 10


def evaluate(variant: Variant, captured: Iterable[Card]) -> Yaku:
    """List the yaku of a set of captured cards with their points, before any multiplier.

    The order in which the cards were captured never matters.
    """
    held = captured if isinstance(captured, frozenset) else frozenset(captured)
    animals = len(held & TANE)
    tanzaku = len(held & TANZAKU)
    kasu = len(held & KASU) + (1 if variant.cup_is_kasu and held >= CUP else 0)
    combos = _boar_deer_butterfly(variant, held, animals)
    ribbons = _ribbons(variant, held, tanzaku)
    found = _lights(variant, held) + _viewing(variant, held) + combos + ribbons
    if animals >= TANE_FROM and not (variant.combo_voids_count and combos):
        found.append(("tane", 1 + animals - TANE_FROM))
    if tanzaku >= TAN_FROM and not (variant.combo_voids_count and ribbons):
        found.append(("tan", 1 + tanzaku - TAN_FROM))
    if kasu >= KASU_FROM:
        found.append(("kasu", 1 + kasu - KASU_FROM))
    return tuple(found)


def total(yaku: Yaku) -> int:
    """Add up the points of a list of yaku: the base of docs/rules.md section 7."""
    return sum(points for _, points in yaku)


def _lights(variant: Variant, held: frozenset[Card]) -> list[tuple[str, int]]:
    """Only the best of the four counts; rain with two others is nothing."""
    dry = len((held & HIKARI) - RAIN)
    rain = held >= RAIN
    if dry == 4:
        return [("goko", variant.goko)] if rain else [("shiko", variant.shiko)]
    if dry == 3:
        return [("ameshiko", variant.ameshiko)] if rain else [("sanko", variant.sanko)]
    return []


def _viewing(variant: Variant, held: frozenset[Card]) -> list[tuple[str, int]]:
    if not variant.hanami_tsukimi:
        return []
    pairs = (("hanami", HANAMI), ("tsukimi", TSUKIMI))
    return [(name, variant.viewing) for name, members in pairs if members <= held]


def _boar_deer_butterfly(variant: Variant, held: frozenset[Card], animals: int) -> list[tuple[str, int]]:
    if not held >= INOSHIKACHO:
        return []
    extra = animals - len(INOSHIKACHO) if variant.combo_increment else 0
    return [("inoshikacho", variant.inoshikacho + extra)]


def _ribbons(variant: Variant, held: frozenset[Card], tanzaku: int) -> list[tuple[str, int]]:
    sets = [name for name, s in (("akatan", AKATAN), ("aotan", AOTAN)) if s <= held]
    if len(sets) == 2 and variant.both_ribbons is BothRibbons.REPLACES:
        sets = ["akatan_aotan"]
        points, counted = 2 * variant.ribbons, len(AKATAN) + len(AOTAN)
    else:
        points, counted = variant.ribbons, len(AKATAN)
    extra = tanzaku - counted if variant.combo_increment else 0
    return [(name, points + extra) for name in sets]


def month_counts(held: Iterable[Card]) -> list[int]:
    """Count the cards of each month; element 0 is January."""
    counts = [0] * 12
    for card in held:
        counts[card // 4] += 1
    return counts


def teyaku(variant: Variant, hand: Collection[Card]) -> str | None:
    """Name the hand yaku of eight dealt cards, `teshi` or `kuttsuki`, if the variant has any."""
    if not variant.teyaku:
        return None
    counts = month_counts(hand)
    if 4 in counts:
        return "teshi"
    return "kuttsuki" if counts.count(2) == 4 else None


def field_redeal(field: Iterable[Card]) -> bool:
    """Tell whether the dealt field voids the deal: it holds four cards of a month (section 3)."""
    return 4 in month_counts(field)


def hand_redeal(variant: Variant, hand: Iterable[Card]) -> bool:
    """Tell whether a dealt hand voids the deal under this variant (section 3)."""
    return variant.redeal_hand_four and 4 in month_counts(hand)
