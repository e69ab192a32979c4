"""Every rule set as data (docs/rules.md sections 6 to 10): adding one changes this file only.

A `Variant` is a preset after its switches. The code elsewhere asks its fields and never its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeGuard

from koikoi_sdk.rules.errors import Reason, RulesError

MAX_ROUNDS = 255
"""The match result statement holds the number of rounds in one byte (docs/protocol.md section 18)."""
MAX_DOUBLE_AT = 255
"""More than any set of captured cards is worth, so that a larger threshold means nothing new."""


class KoikoiFactor(StrEnum):
    """How declarations multiply the winner's score (docs/rules.md section 8)."""

    NONE = "none"
    ONE_PLUS_ALL = "one_plus_all"
    LOSER_DECLARED = "loser_declared"
    ANYONE_DECLARED = "anyone_declared"


class Scoring(StrEnum):
    """Who pays: the loser out of the own stake, or nobody."""

    TRANSFER = "transfer"
    SUM = "sum"


class BothRibbons(StrEnum):
    """What red and blue ribbons together are worth."""

    REPLACES = "replaces"
    ADDS = "adds"


@dataclass(frozen=True, slots=True)
class Variant:
    """One complete rule set. Points are yaku points; `rounds` is how many a match lasts."""

    name: str
    goko: int = 10
    shiko: int = 8
    ameshiko: int = 7
    sanko: int = 5
    viewing: int = 5
    inoshikacho: int = 5
    ribbons: int = 5
    both_ribbons: BothRibbons = BothRibbons.ADDS
    combo_increment: bool = False
    combo_voids_count: bool = False
    hanami_tsukimi: bool = True
    cup_is_kasu: bool = False
    teyaku: int = 0
    redeal_hand_four: bool = False
    double_at: int | None = None
    koikoi_factor: KoikoiFactor = KoikoiFactor.NONE
    one_koikoi_a_round: bool = False
    scoring: Scoring = Scoring.SUM
    stake: int = 0
    exhausted_award: int = 0
    exhausted_passes_deal: bool = False
    rounds: int = 12
    rounds_allowed: tuple[int, ...] = (12,)


_HOUSE = Variant(
    name="house",
    both_ribbons=BothRibbons.REPLACES,
    combo_increment=True,
    teyaku=6,
    double_at=8,
    koikoi_factor=KoikoiFactor.ONE_PLUS_ALL,
    scoring=Scoring.TRANSFER,
    stake=25,
    rounds=6,
    rounds_allowed=(6, 12),
)
_NINTENDO = Variant(
    name="nintendo",
    both_ribbons=BothRibbons.REPLACES,
    combo_increment=True,
    combo_voids_count=True,
    cup_is_kasu=True,
    teyaku=6,
    double_at=7,
    koikoi_factor=KoikoiFactor.LOSER_DECLARED,
    one_koikoi_a_round=True,
    exhausted_passes_deal=True,
)
_SDIN = Variant(
    name="sdin",
    goko=15,
    shiko=10,
    ameshiko=8,
    sanko=6,
    inoshikacho=6,
    ribbons=6,
    hanami_tsukimi=False,
    cup_is_kasu=True,
)
_BOARDGAMELAND = Variant(
    name="boardgameland",
    redeal_hand_four=True,
    double_at=7,
    koikoi_factor=KoikoiFactor.ANYONE_DECLARED,
    rounds=6,
    rounds_allowed=(3, 6, 12),
)
_WIKIPEDIA_JA = Variant(
    name="wikipedia_ja",
    hanami_tsukimi=False,
    cup_is_kasu=True,
    teyaku=6,
)
_WIKIPEDIA_EN = Variant(
    name="wikipedia_en",
    both_ribbons=BothRibbons.REPLACES,
    cup_is_kasu=True,
    double_at=7,
    koikoi_factor=KoikoiFactor.LOSER_DECLARED,
    exhausted_award=1,
)

PRESETS: Mapping[str, Variant] = MappingProxyType(
    {preset.name: preset for preset in (_HOUSE, _NINTENDO, _SDIN, _BOARDGAMELAND, _WIKIPEDIA_JA, _WIKIPEDIA_EN)}
)


def is_integer(value: object, low: int, high: int) -> TypeGuard[int]:
    """Tell whether a value is a whole number in a range; true and false are not numbers."""
    return type(value) is int and low <= value <= high


@dataclass(frozen=True, slots=True)
class _Switch:
    """One thing a player may change about a preset."""

    limit: str
    accepts: Callable[[object], bool]
    apply: Callable[[Variant, object], Variant]


SWITCHES: Mapping[str, _Switch] = MappingProxyType(
    {
        "hanami_tsukimi": _Switch(
            "true or false",
            lambda value: isinstance(value, bool),
            lambda base, value: replace(base, hanami_tsukimi=value),  # type: ignore[arg-type]
        ),
        "double_at": _Switch(
            f"null or a whole number 1 to {MAX_DOUBLE_AT}",
            lambda value: value is None or is_integer(value, 1, MAX_DOUBLE_AT),
            lambda base, value: replace(base, double_at=value),  # type: ignore[arg-type]
        ),
        "cup": _Switch(
            '"tane" or "both"',
            lambda value: isinstance(value, str) and value in ("tane", "both"),
            lambda base, value: replace(base, cup_is_kasu=value == "both"),
        ),
        "rounds": _Switch(
            f"a whole number 1 to {MAX_ROUNDS}",
            lambda value: is_integer(value, 1, MAX_ROUNDS),
            lambda base, value: replace(base, rounds=value),  # type: ignore[arg-type]
        ),
    }
)


def variant(preset: object, overrides: object = MappingProxyType({})) -> Variant:
    """Give the rule set of a preset after its switches.

    `rounds` may be any number a result statement can hold; whether a *contract* may use it is
    decided by `parse_rules`, which knows `rounds_allowed`.

    Raises:
        RulesError: BAD_PRESET or BAD_SWITCH, naming the member and what it may be.
    """
    chosen = PRESETS.get(preset) if isinstance(preset, str) else None
    if chosen is None:
        raise RulesError(Reason.BAD_PRESET, "preset", "one of " + " ".join(PRESETS))
    if not isinstance(overrides, Mapping):
        raise RulesError(Reason.BAD_SWITCH, "overrides", "an object")
    for name, value in overrides.items():
        switch = SWITCHES.get(name) if isinstance(name, str) else None
        if switch is None:
            raise RulesError(Reason.BAD_SWITCH, "overrides", "only " + " ".join(SWITCHES))
        if not switch.accepts(value):
            raise RulesError(Reason.BAD_SWITCH, f"overrides.{name}", switch.limit)
        chosen = switch.apply(chosen, value)
    return chosen
