"""Ratings follow from results alone."""

import pytest

from services.ranking.domain.ratings import History, RatedMatch, Rating, rate


def test_everybody_begins_at_1500():
    assert Rating().shown == 1500


def test_a_win_moves_both_and_counts():
    winner, loser = rate((Rating(), Rating()), 0)
    assert winner.shown > 1500 > loser.shown
    assert (winner.matches, winner.wins) == (1, 1)
    assert (loser.matches, loser.wins) == (1, 0)
    assert winner.sigma < Rating().sigma


def test_the_seat_makes_no_difference():
    low, high = Rating(20.0, 5.0, 3, 1), Rating(30.0, 6.0, 5, 4)
    for winner in (0, 1, None):
        mirrored = None if winner is None else 1 - winner
        assert rate((low, high), winner) == tuple(reversed(rate((high, low), mirrored)))


def test_a_draw_brings_both_together_and_is_nobodys_win():
    low, high = rate((Rating(20.0, 5.0), Rating(30.0, 5.0)), None)
    assert low.mu > 20.0
    assert high.mu < 30.0
    assert (low.wins, high.wins) == (0, 0)
    assert (low.matches, high.matches) == (1, 1)


def test_a_win_against_a_stronger_player_is_worth_more():
    weak, strong = Rating(20.0, 5.0), Rating(30.0, 5.0)
    upset, expected = rate((weak, strong), 0)[0].mu - weak.mu, rate((weak, strong), 1)[1].mu - strong.mu
    assert upset > expected > 0


def test_history_is_the_live_service_told_again():
    history = History()
    before, after = history.apply(RatedMatch(("a", "b"), 0, is_rated=True))
    assert before == (Rating(), Rating())
    assert after == rate(before, 0)
    before, _ = history.apply(RatedMatch(("b", "c"), 1, is_rated=True))
    assert before == (after[1], Rating())
    assert set(history.ratings) == {"a", "b", "c"}


def test_an_unranked_match_changes_nothing():
    history = History()
    before, after = history.apply(RatedMatch(("a", "b"), 0, is_rated=False))
    assert before == after == (Rating(), Rating())
    assert history.ratings == {"a": Rating(), "b": Rating()}


@pytest.mark.parametrize("winner", [0, 1, None])
def test_a_long_streak_stays_finite(winner):
    pair = (Rating(), Rating())
    for _ in range(500):
        pair = rate(pair, winner)
    assert all(0 < rating.sigma < 25 / 3 and abs(rating.mu) < 200 for rating in pair)
