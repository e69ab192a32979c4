"""What may be reported of a match: docs/protocol.md section 18."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import Reason, ReportedRound, ResultKind, RulesError, replay, variant

SHOBU, EXHAUSTED, TEYAKU = ResultKind.SHOBU, ResultKind.EXHAUSTED, ResultKind.TEYAKU


def told(kind, winner, score, payment, points):
    return ReportedRound(kind, winner, score, payment, points)


GOOD = [
    ("house", [told(SHOBU, 0, 1, 1, (26, 24)), told(EXHAUSTED, None, 0, 0, (26, 24))], None),
    ("house", [told(TEYAKU, 1, 6, 6, (19, 31))], None),
    ("house", [told(SHOBU, 1, 40, 25, (0, 50))], 1),
    ("house", [told(SHOBU, 1, 71 * 2 * 16, 25, (0, 50))], 1),
    ("house", [told(SHOBU, 1, 9, 9, (16, 34))], None),
    ("nintendo", [told(SHOBU, 1, 28, 28, (0, 28)), told(TEYAKU, 0, 6, 6, (6, 28))], None),
    ("wikipedia_en", [told(EXHAUSTED, 1, 1, 1, (0, 1))] * 1, None),
    ("wikipedia_en", [told(EXHAUSTED, 0, 1, 1, (1, 0)), told(EXHAUSTED, 0, 1, 1, (2, 0))], None),
    ("wikipedia_en", [told(SHOBU, 1, 1, 1, (0, 1)), told(EXHAUSTED, 1, 1, 1, (0, 2))], None),
]


@pytest.mark.parametrize(("preset", "rounds", "winner"), GOOD)
def test_what_play_can_produce(preset, rounds, winner):
    match = replay(variant(preset), rounds)
    assert match.points == rounds[-1].points_after
    assert (match.final.winner if match.final else None) == winner


BAD = [
    ("house", [told(SHOBU, 0, 1, 1, (25, 24))]),
    ("house", [told(SHOBU, 0, 1, 2, (27, 23))]),
    ("house", [told(SHOBU, 1, 1, 1, (26, 24))]),
    ("house", [told(SHOBU, 0, 0, 0, (25, 25))]),
    ("house", [told(SHOBU, 0, 40, 40, (65, -15))]),
    ("house", [told(SHOBU, 0, 71 * 2 * 16 + 1, 25, (50, 0))]),
    ("house", [told(SHOBU, 0, 127, 25, (50, 0))]),
    ("house", [told(SHOBU, 0, 11, 11, (36, 14))]),
    ("house", [told(SHOBU, 0, 13, 13, (38, 12))]),
    ("house", [told(SHOBU, None, 1, 1, (26, 24))]),
    ("house", [told(EXHAUSTED, 0, 1, 1, (26, 24))]),
    ("house", [told(EXHAUSTED, None, 0, 0, (26, 24))]),
    ("house", [told(TEYAKU, 0, 5, 5, (30, 20))]),
    ("house", [told(TEYAKU, None, 0, 0, (25, 25))]),
    ("house", [told(ResultKind.REDEAL, 0, 0, 0, (25, 25))]),
    ("house", [told(ResultKind.REDEAL, None, 0, 0, (25, 25))]),
    ("house", [told(SHOBU, 0, 40, 25, (50, 0)), told(EXHAUSTED, None, 0, 0, (50, 0))]),
    ("house", [told(EXHAUSTED, None, 0, 0, (25, 25))] * 7),
    ("sdin", [told(TEYAKU, 0, 6, 6, (6, 0))]),
    ("nintendo", [told(SHOBU, 0, 4, 4, (4, -4))]),
    ("wikipedia_en", [told(EXHAUSTED, None, 0, 0, (0, 0))]),
    ("wikipedia_en", [told(EXHAUSTED, 0, 1, 1, (1, 0)), told(EXHAUSTED, 1, 1, 1, (1, 1))]),
    ("wikipedia_en", [told(SHOBU, 1, 1, 1, (0, 1)), told(EXHAUSTED, 0, 1, 1, (1, 1))]),
]


@pytest.mark.parametrize(("preset", "rounds"), BAD)
def test_what_play_cannot_produce(preset, rounds):
    with pytest.raises(RulesError) as caught:
        replay(variant(preset), rounds)
    assert caught.value.reason in (Reason.BAD_RULES, Reason.MATCH_OVER)
    assert caught.value.field.startswith("rounds[")


def test_declarations_are_bounded_by_turns_and_points():
    """The winner declares with ever more points and on at most seven turns, the loser on at most eight."""
    possible = {
        base * (1 + own + others) for base in range(1, 72) for own in range(min(base, 8)) for others in range(9)
    }
    rules = variant("house", {"double_at": None})
    assert {score for score in range(max(possible) + 100) if is_accepted(rules, score)} == possible


def is_accepted(rules, score):
    payment = min(score, 25)
    try:
        replay(rules, [told(SHOBU, 0, score, payment, (25 + payment, 25 - payment))])
    except RulesError:
        return False
    return True
