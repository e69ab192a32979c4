"""What an account played: queries, windows, points."""

import itertools
import uuid

import pytest

from services.ranking.domain.errors import FieldInvalid
from services.ranking.domain.history import (
    Query,
    SeatOutcome,
    Time,
    Window,
    check_match_id,
    check_points,
    check_query,
    check_window,
    spread,
)
from services.ranking.domain.pages import Bound
from services.ranking.domain.statement import Ending

QUERIES = [
    Query("a"),
    Query("b"),
    Query("a", is_rated_only=True),
    Query("a", opponent_id="b"),
    Query("a", opponent_id="null"),
    *(Query("a", outcome=outcome) for outcome in SeatOutcome),
    *(Query("a", ending=ending) for ending in Ending),
    Query("a", window=Window(start_us=1)),
    Query("a", window=Window(end_us=1)),
    Query('a", false'),
]


def test_a_token_is_bound_to_every_filter():
    bound = Bound(5, is_forward=True)
    tokens = [query.tokens().write(bound) for query in QUERIES]
    assert len(set(tokens)) == len(QUERIES)
    for own, query in enumerate(QUERIES):
        for other, token in enumerate(tokens):
            if own == other:
                assert query.tokens().read(token) == bound
            else:
                with pytest.raises(FieldInvalid):
                    query.tokens().read(token)


def test_accounts_of_a_query_must_be_possible():
    for good in (Query("a"), Query("a", opponent_id="b")):
        assert check_query(good) == good
    for bad, field in ((Query(""), "account_id"), (Query("a", opponent_id="b\0"), "opponent_id")):
        with pytest.raises(FieldInvalid) as caught:
            check_query(bad)
        assert caught.value.field == field


def test_windows_are_whole_microseconds_rounded_up():
    assert check_window(None, None) == Window()
    assert check_window(Time(5, 0), None) == Window(5_000_000, None)
    assert check_window(Time(5, 1), Time(5, 1001)) == Window(5_000_001, 5_000_002)


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        (Time(-1, 0), None, "start_time"),
        (None, Time(1 << 60, 0), "end_time"),
        (Time(1, -1), None, "start_time"),
        (Time(1, 1_000_000_000), None, "start_time"),
        (Time(5, 0), Time(5, 0), "end_time"),
        (Time(6, 0), Time(5, 0), "end_time"),
    ],
)
def test_windows_that_are_none_are_refused(start, end, field):
    with pytest.raises(FieldInvalid) as caught:
        check_window(start, end)
    assert caught.value.field == field


def test_match_ids():
    text = "01890000-0000-7000-8000-000000000000"
    assert check_match_id(text) == uuid.UUID(text)
    for bad in ("", "x", text.upper().replace("0", "A"), "{" + text + "}", text.replace("-", ""), text + " "):
        with pytest.raises(FieldInvalid) as caught:
            check_match_id(bad)
        assert caught.value.field == "match_id"


def test_numbers_of_points():
    assert [check_points(wanted) for wanted in (0, 1, 500)] == [100, 1, 500]
    with pytest.raises(FieldInvalid):
        check_points(501)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 100, 101, 99_999])
@pytest.mark.parametrize("most", [1, 2, 3, 100, 500])
def test_points_are_spread_evenly_and_keep_both_ends(count, most):
    positions = spread(count, most)
    assert len(positions) == min(count, most)
    assert positions == sorted(set(positions))
    if count:
        assert positions[-1] == count - 1
    if count and most > 1:
        assert positions[0] == 0
        gaps = [later - earlier for earlier, later in itertools.pairwise(positions)]
        assert not gaps or max(gaps) - min(gaps) <= 1
