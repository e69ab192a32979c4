"""Places on the leaderboard."""

import pytest

from services.ranking.domain.errors import FieldInvalid
from services.ranking.domain.leaderboard import (
    TOKENS,
    Place,
    Standing,
    check_account_id,
    check_neighbors,
    make_board,
)
from services.ranking.domain.pages import Bound, Page


def page(*ratings, previous=None, following=None):
    rows = [Standing(f"a{index}", "", rating, 1, 0) for index, rating in enumerate(ratings)]
    return Page(tuple(rows), previous, following)


def ranks(board):
    return [entry.rank for entry in board.entries]


def test_equal_ratings_share_a_rank_and_the_ranks_after_them_are_left_out():
    board = make_board(page(1600, 1550, 1550, 1500), better=0, before=0)
    assert ranks(board) == [1, 2, 2, 4]
    assert (board.next_page_token, board.previous_page_token) == ("", "")


def test_a_page_that_begins_within_a_tie_goes_on_with_its_rank():
    assert ranks(make_board(page(1550, 1550, 1500), better=1, before=2)) == [2, 2, 5]


def test_both_ends_of_a_page_are_told_by_tokens():
    after, before = Bound(Place(1500, "z"), is_forward=True), Bound(Place(1600, "b"), is_forward=False)
    board = make_board(page(1600, 1500, previous=before, following=after), better=4, before=4)
    assert ranks(board) == [5, 6]
    assert TOKENS.read(board.next_page_token) == after
    assert TOKENS.read(board.previous_page_token) == before


def test_an_empty_page_has_no_entries():
    assert make_board(page(), better=0, before=0).entries == ()


def test_account_ids():
    assert check_account_id("a" * 256) == "a" * 256
    for bad in ("", "a" * 257, "a\0"):
        with pytest.raises(FieldInvalid) as caught:
            check_account_id(bad, "opponent_id")
        assert caught.value.field == "opponent_id"


def test_numbers_of_neighbours():
    assert [check_neighbors(wanted, "above") for wanted in (None, 0, 100)] == [5, 0, 100]
    with pytest.raises(FieldInvalid) as caught:
        check_neighbors(101, "below")
    assert caught.value.field == "below"
