"""How an account behaved in its last matches, and what follows (docs/conduct.md).

Everything is computed from the newest 30 outcomes that count, so neither their order of arrival nor a repetition
matters. Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

WINDOW = 30
"""So many outcomes of an account count; older ones are forgotten."""
FAULT_POINTS = 10
DISPUTE_POINTS = 5
"""Of a dispute, unless the account is taken for the offender."""
RELIEF_POINTS = 2
"""So many points a match that was played to its end takes away."""
OFFENDER_OPPONENTS = 4
"""Who is in dispute with so many different opponents is taken for the offender in all of them."""
GROWTH = 4
MOST_STEPS = 5
"""A cool-down is GROWTH times as long as the one a step below; there are so many steps."""


class Behaviour(StrEnum):
    """What one match says about one of its players."""

    COMPLETED = "completed"
    CHARGED = "charged"
    DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class Mark:
    """What one match says about an account."""

    account_id: str
    match_id: str
    opponent_id: str
    behaviour: Behaviour
    end_time: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a match ended, as the relay tells it; `seat` is the one charged, if any."""

    match_id: str
    word: str
    seat: int | None
    accounts: tuple[str, str]
    end_time: int


@dataclass(frozen=True, slots=True)
class Conduct:
    """The account of one player's conduct."""

    completed: int = 0
    charged: int = 0
    disputed: int = 0
    completion_percent: int | None = None
    """Rounded down; None while nothing counts."""
    cool_down_until: int = 0


NEUTRAL = ("expired", "never_started")
COMPLETE = ("finished", "resigned")
CHARGING = ("stalled", "abandoned")


def marks_of(outcome: Outcome) -> tuple[Mark, ...]:
    """Say what an outcome means to both players; nothing for one that is nobody's doing."""
    if outcome.word in NEUTRAL:
        return ()
    return tuple(
        Mark(account_id, outcome.match_id, outcome.accounts[1 - seat], _behaviour(outcome, seat), outcome.end_time)
        for seat, account_id in enumerate(outcome.accounts)
    )


def _behaviour(outcome: Outcome, seat: int) -> Behaviour:
    if outcome.word == "disputed":
        return Behaviour.DISPUTED
    is_charged = outcome.word in CHARGING and outcome.seat == seat
    return Behaviour.CHARGED if is_charged else Behaviour.COMPLETED


def judge(marks: Iterable[Mark], cool_down_ms: int) -> Conduct:
    """Judge an account by its marks, in any order; only the newest of them count.

    Args:
        marks: All of one account.
        cool_down_ms: The shortest cool-down; 0 for none at all.
    """
    window = sorted(marks, key=lambda mark: (mark.end_time, mark.match_id))[-WINDOW:]
    if not window:
        return Conduct()
    count = {kind: sum(mark.behaviour is kind for mark in window) for kind in Behaviour}
    points = _points(window)
    lost = sum(points[mark.behaviour] for mark in window)
    whole = FAULT_POINTS * len(window)
    return Conduct(
        completed=count[Behaviour.COMPLETED],
        charged=count[Behaviour.CHARGED],
        disputed=count[Behaviour.DISPUTED],
        completion_percent=100 * (whole - lost) // whole,
        cool_down_until=_cool_down_until(window, points, cool_down_ms),
    )


def _points(window: Sequence[Mark]) -> dict[Behaviour, int]:
    """Say how heavy each behaviour weighs for this account."""
    opponents = {mark.opponent_id for mark in window if mark.behaviour is Behaviour.DISPUTED}
    is_offender = len(opponents) >= OFFENDER_OPPONENTS
    return {
        Behaviour.COMPLETED: 0,
        Behaviour.CHARGED: FAULT_POINTS,
        Behaviour.DISPUTED: FAULT_POINTS if is_offender else DISPUTE_POINTS,
    }


def _cool_down_until(window: Sequence[Mark], points: dict[Behaviour, int], cool_down_ms: int) -> int:
    """Go through the matches, oldest first: faults add points, good matches take some away."""
    total, until = 0, 0
    for mark in window:
        if mark.behaviour is Behaviour.COMPLETED:
            total = max(0, total - RELIEF_POINTS)
            continue
        total += points[mark.behaviour]
        step = min(total // FAULT_POINTS, MOST_STEPS)
        if step and cool_down_ms:
            until = max(until, mark.end_time + cool_down_ms * GROWTH ** (step - 1))
    return until
