"""Which rules a host may choose. What a rule means is `koikoi_sdk.rules`' business alone."""

from __future__ import annotations

from dataclasses import dataclass

from koikoi_sdk.rules import PRESETS, Rules, RulesError, make_rules, variant

from services.lobby.domain.errors import FieldInvalid, RulesInvalid


@dataclass(frozen=True, slots=True)
class Choice:
    """What a host asked for; None and 0 rounds leave the preset's own value."""

    preset: str
    rounds: int = 0
    double_at: int | None = None
    hanami_tsukimi: bool | None = None
    cup: str | None = None


def choose_rules(choice: Choice) -> Rules:
    """Check a choice and give the rules in full.

    A switch set to the preset's own value is left out, so that one rule set has one string.

    Raises:
        RulesInvalid: Names the member and what it may be.
    """
    try:
        base = variant(choice.preset)
        switches = {
            name: value for name, value in _switches(choice).items() if variant(choice.preset, {name: value}) != base
        }
        return make_rules(choice.preset, switches, choice.rounds or base.rounds)
    except RulesError as error:
        raise RulesInvalid(f"rules.{error.field.removeprefix('overrides.')}", error.limit) from None


def check_preset(preset: str) -> None:
    """Refuse a preset that does not exist.

    Raises:
        FieldInvalid: Names the presets there are.
    """
    if preset not in PRESETS:
        raise FieldInvalid("preset", "one of " + " ".join(PRESETS))


def _switches(choice: Choice) -> dict[str, object]:
    """Name the switches that were set; on the wire 0 stands for no doubling."""
    switches: dict[str, object] = {}
    if choice.double_at is not None:
        switches["double_at"] = choice.double_at or None
    if choice.hanami_tsukimi is not None:
        switches["hanami_tsukimi"] = choice.hanami_tsukimi
    if choice.cup is not None:
        switches["cup"] = choice.cup
    return switches
