"""Settlement: docs/rules.md sections 4, 8 and 9, every number typed in by hand."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import PRESETS, Reason, RulesError, variant
from koikoi_sdk.rules.scoring import settle_exhausted, settle_redeal, settle_shobu, settle_teyaku


def shobu(preset, base, koikoi=(0, 0), winner=0, points=(25, 25), **overrides):
    return settle_shobu(variant(preset, overrides), points, koikoi, winner, (("x", base),))


def test_the_worked_example():
    result = shobu("house", 10, (0, 1))
    assert (result.base, result.threshold_mult, result.koikoi_mult, result.score) == (10, 2, 2, 40)
    assert (result.payment, result.delta, result.points_after) == (25, (25, -25), (50, 0))


@pytest.mark.parametrize(
    ("preset", "base", "mult"),
    [
        ("house", 7, 1), ("house", 8, 2), ("house", 71, 2),
        ("nintendo", 6, 1), ("nintendo", 7, 2),
        ("sdin", 6, 1), ("sdin", 15, 1),
        ("boardgameland", 6, 1), ("boardgameland", 7, 2),
        ("wikipedia_ja", 8, 1), ("wikipedia_ja", 40, 1),
        ("wikipedia_en", 6, 1), ("wikipedia_en", 7, 2),
    ],
)  # fmt: skip
def test_threshold(preset, base, mult):
    result = shobu(preset, base)
    assert (result.threshold_mult, result.score) == (mult, base * mult)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("double_at", "mult"), [(None, 1), (5, 2), (6, 1)])
def test_the_threshold_is_a_switch(preset, double_at, mult):
    assert shobu(preset, 5, double_at=double_at).threshold_mult == mult


def test_the_threshold_tests_the_base_never_the_multiplied_value():
    result = shobu("house", 4, (2, 2))
    assert (result.threshold_mult, result.koikoi_mult, result.score) == (1, 5, 20)


#                    own koi-koi    loser's        both           2 + 3
FACTORS = {
    "house":         [(1, 0, 2),    (0, 1, 2),     (1, 1, 3),     (2, 3, 6)],
    "nintendo":      [(1, 0, 1),    (0, 1, 2)],
    "sdin":          [(1, 0, 1),    (0, 1, 1),     (1, 1, 1),     (2, 3, 1)],
    "boardgameland": [(1, 0, 2),    (0, 1, 2),     (1, 1, 2),     (2, 3, 2)],
    "wikipedia_ja":  [(1, 0, 1),    (0, 1, 1),     (1, 1, 1),     (2, 3, 1)],
    "wikipedia_en":  [(1, 0, 1),    (0, 1, 2),     (1, 1, 2),     (2, 3, 2)],
}  # fmt: skip
CASES = [(preset, *case) for preset, cases in FACTORS.items() for case in [(0, 0, 1), *cases]]


@pytest.mark.parametrize(("preset", "own", "losers", "mult"), CASES)
@pytest.mark.parametrize("winner", [0, 1])
def test_koikoi_factor(preset, own, losers, mult, winner):
    koikoi = (own, losers) if winner == 0 else (losers, own)
    result = shobu(preset, 1, koikoi, winner)
    assert (result.koikoi_mult, result.score, result.koikoi) == (mult, mult, koikoi)


@pytest.mark.parametrize("preset", ["nintendo", "boardgameland", "wikipedia_en"])
def test_threshold_and_opponents_koikoi_give_four_times(preset):
    assert shobu(preset, 7, (0, 1)).score == 28


@pytest.mark.parametrize("winner", [0, 1])
@pytest.mark.parametrize("preset", PRESETS)
def test_who_pays(preset, winner):
    result = shobu(preset, 3, winner=winner, points=(10, 2))
    paid = {0: 2, 1: 3}[winner] if preset == "house" else 3
    lost = -paid if preset == "house" else 0
    assert result.score == 3
    assert result.payment == paid
    assert result.delta == ((paid, lost) if winner == 0 else (lost, paid))
    assert result.points_after == (10 + result.delta[0], 2 + result.delta[1])
    assert (result.winner, result.next_dealer) == (winner, winner)


@pytest.mark.parametrize("dealer", [0, 1])
@pytest.mark.parametrize("preset", PRESETS)
def test_exhausted(preset, dealer):
    result = settle_exhausted(variant(preset), (5, 7), (1, 2), dealer)
    award = int(preset == "wikipedia_en")
    assert result.winner == (dealer if award else None)
    assert (result.score, result.payment, result.base, result.yaku) == (award, award, 0, ())
    assert result.delta == ((award, 0) if dealer == 0 else (0, award))
    assert result.points_after == (5 + result.delta[0], 7 + result.delta[1])
    assert result.next_dealer == (1 - dealer if preset == "nintendo" else dealer)
    assert result.koikoi == (1, 2)


@pytest.mark.parametrize(
    ("names", "dealer", "winner", "yaku"),
    [
        (("teshi", None), 0, 0, "teshi"),
        (("teshi", None), 1, 0, "teshi"),
        ((None, "kuttsuki"), 0, 1, "kuttsuki"),
        (("teshi", "kuttsuki"), 0, 0, "teshi"),
        (("teshi", "kuttsuki"), 1, 1, "kuttsuki"),
    ],
)
def test_hand_yaku_the_dealers_counts(names, dealer, winner, yaku):
    result = settle_teyaku(variant("house"), (25, 25), dealer, names)
    assert (result.winner, result.next_dealer, result.yaku, result.teyaku) == (winner, winner, ((yaku, 6),), names)
    assert (result.base, result.score, result.threshold_mult, result.koikoi_mult) == (6, 6, 1, 1)
    assert result.points_after == ((31, 19) if winner == 0 else (19, 31))


def test_hand_yaku_are_never_doubled():
    assert settle_teyaku(variant("house", {"double_at": 6}), (25, 25), 0, ("teshi", None)).score == 6


def test_hand_yaku_payment_is_capped():
    result = settle_teyaku(variant("house"), (46, 4), 0, ("teshi", None))
    assert (result.score, result.payment, result.points_after) == (6, 4, (50, 0))


@pytest.mark.parametrize("preset", ["nintendo", "wikipedia_ja"])
def test_hand_yaku_where_nobody_pays(preset):
    result = settle_teyaku(variant(preset), (0, 0), 1, ("teshi", None))
    assert (result.payment, result.delta, result.next_dealer) == (6, (6, 0), 0)


@pytest.mark.parametrize(("preset", "names"), [("house", (None, None)), ("sdin", ("teshi", None))])
def test_a_hand_yaku_that_is_none(preset, names):
    with pytest.raises(RulesError) as caught:
        settle_teyaku(variant(preset), (25, 25), 0, names)
    assert caught.value.reason is Reason.ILLEGAL_ACTION


def test_a_redeal_changes_nothing():
    result = settle_redeal((20, 30), 1, ("field",))
    assert (result.winner, result.delta, result.points_after, result.next_dealer) == (None, (0, 0), (20, 30), 1)
    assert (result.score, result.payment, result.why) == (0, 0, ("field",))
