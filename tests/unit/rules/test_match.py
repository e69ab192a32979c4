"""A match over its rounds: docs/rules.md section 10."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import EndReason, Final, Reason, RulesError, start_match, variant
from koikoi_sdk.rules.scoring import settle_exhausted, settle_redeal, settle_shobu, settle_teyaku


def begin(preset="house", first_dealer=0, **overrides):
    return start_match(variant(preset, overrides), first_dealer)


def win(match, winner, base):
    return match.record(settle_shobu(match.variant, match.points, (0, 0), winner, (("x", base),)))


def draw(match):
    return match.record(settle_exhausted(match.variant, match.points, (0, 0), match.dealer))


@pytest.mark.parametrize(
    ("preset", "stake", "rounds"),
    [
        ("house", 25, 6),
        ("nintendo", 0, 12),
        ("sdin", 0, 12),
        ("boardgameland", 0, 6),
        ("wikipedia_ja", 0, 12),
        ("wikipedia_en", 0, 12),
    ],
)
def test_start_and_length(preset, stake, rounds):
    match = begin(preset, 1)
    assert (match.points, match.dealer, match.round_no, match.final) == ((stake, stake), 1, 1, None)
    for played in range(rounds):
        assert match.final is None
        assert match.round_no == played + 1
        match = win(match, 1, 1)
    assert match.final == Final(match.points, 1, EndReason.ROUNDS, rounds)


def test_the_winner_deals_next():
    assert [win(begin(), winner, 1).dealer for winner in (0, 1)] == [0, 1]
    hand = settle_teyaku(variant("house"), (25, 25), 0, (None, "teshi"))
    assert begin().record(hand).dealer == 1


@pytest.mark.parametrize(("preset", "next_dealer"), [("house", 1), ("nintendo", 0), ("wikipedia_en", 1)])
def test_the_dealer_after_an_exhausted_round(preset, next_dealer):
    assert draw(begin(preset, 1)).dealer == next_dealer


def test_exhausted_and_hand_yaku_rounds_count_redeals_do_not():
    match = draw(begin())
    match = match.record(settle_teyaku(match.variant, match.points, 0, ("teshi", None)))
    assert len(match.results) == 2
    assert match.record(settle_redeal(match.points, 0, ("field",))) == match


def test_a_player_at_nothing_loses_at_once():
    match = win(win(begin(), 0, 8), 0, 8)
    assert match.final == Final((50, 0), 0, EndReason.BUST, 2)
    assert win(win(begin(), 1, 8), 1, 8).final == Final((0, 50), 1, EndReason.BUST, 2)


def test_a_player_at_nothing_after_the_last_round_lost_by_that():
    match = begin(rounds=1)
    assert win(match, 0, 20).final == Final((50, 0), 0, EndReason.BUST, 1)


def test_nothing_is_no_end_where_nobody_pays():
    assert win(begin("nintendo"), 0, 1).final is None


def test_equal_stakes_are_a_draw():
    assert draw(begin(rounds=1)).final == Final((25, 25), None, EndReason.ROUNDS, 1)
    assert win(win(begin("sdin", rounds=2), 0, 3), 1, 3).final == Final((3, 3), None, EndReason.ROUNDS, 2)


def test_a_match_that_is_over_takes_no_round():
    over = draw(begin(rounds=1))
    with pytest.raises(RulesError) as caught:
        draw(over)
    assert caught.value.reason is Reason.MATCH_OVER


def test_a_round_must_start_from_the_points_of_the_match():
    with pytest.raises(RulesError) as caught:
        begin().record(settle_redeal((24, 26), 0, ("field",)))
    assert caught.value.reason is Reason.BAD_RULES
