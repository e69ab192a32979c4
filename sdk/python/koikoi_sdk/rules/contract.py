"""The rules string of a match contract (docs/protocol.md section 9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.variants import PRESETS, Variant, is_integer, variant

VERSION = 1
MAX_RULES_LENGTH = 512
"""Characters; the longest valid string has about 130."""
_MEMBERS = {"overrides", "preset", "rounds", "version"}


@dataclass(frozen=True, slots=True)
class Rules:
    """What the two players agreed to play: a preset, its switches, and a number of rounds."""

    preset: str
    overrides: Mapping[str, bool | int | str | None]
    rounds: int
    version: int
    variant: Variant

    @property
    def is_ranked(self) -> bool:
        """Tell whether a match under these rules may be rated: house with doubling at 8 only."""
        house = PRESETS["house"]
        return replace(self.variant, rounds=house.rounds) == house


def make_rules(preset: object, overrides: object, rounds: object) -> Rules:
    """Check a choice of rules and give it in full.

    Raises:
        RulesError: BAD_PRESET, BAD_SWITCH or BAD_RULES, naming the member and what it may be.
    """
    chosen = variant(preset, overrides)
    if not isinstance(overrides, Mapping) or "rounds" in overrides:
        raise RulesError(Reason.BAD_SWITCH, "overrides", "no rounds, which is a member of its own")
    if not is_integer(rounds, 1, 255) or rounds not in chosen.rounds_allowed:
        allowed = " or ".join(map(str, chosen.rounds_allowed))
        raise RulesError(Reason.BAD_RULES, "rounds", f"{allowed} for preset {chosen.name}")
    chosen = replace(chosen, rounds=rounds)
    return Rules(chosen.name, dict(overrides), chosen.rounds, VERSION, chosen)


def format_rules(rules: Rules) -> str:
    """Write rules as the one string a contract may hold for them: RFC 8785 JSON.

    Every name and value of rules is ASCII, a small whole number, true, false or null, for which
    sorted members without blanks are that canonical form.
    """
    members = {
        "overrides": dict(rules.overrides),
        "preset": rules.preset,
        "rounds": rules.rounds,
        "version": rules.version,
    }
    return json.dumps(members, sort_keys=True, separators=(",", ":"))


def parse_rules(text: str) -> Rules:
    """Read the rules string of a contract, strictly: exactly these members, canonical form.

    Raises:
        RulesError: BAD_RULES, BAD_PRESET or BAD_SWITCH; the contract must be refused.
    """
    if len(text) > MAX_RULES_LENGTH:
        raise RulesError(Reason.BAD_RULES, "rules", f"at most {MAX_RULES_LENGTH} characters")
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        raise RulesError(Reason.BAD_RULES, "rules", "JSON") from None
    if not isinstance(members, dict) or members.keys() != _MEMBERS:
        raise RulesError(Reason.BAD_RULES, "rules", "exactly the members " + " ".join(sorted(_MEMBERS)))
    if not is_integer(members["version"], VERSION, VERSION):
        raise RulesError(Reason.BAD_RULES, "version", str(VERSION))
    rules = make_rules(members["preset"], members["overrides"], members["rounds"])
    if format_rules(rules) != text:
        raise RulesError(Reason.BAD_RULES, "rules", "canonical JSON (RFC 8785)")
    return rules
