"""The line about a recorded match."""

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.ranking.v1 import ranking_service_pb2 as ranking
from koikoi_sdk.cli.history import describe


def result(**changes):
    seats = [
        ranking.SeatResult(account_id="a", display_name="Ume", points=31, rating_before=1500, rating_after=1530),
        ranking.SeatResult(account_id="b", display_name="桜", points=9, rating_before=1500, rating_after=1477),
    ]
    members = {"is_rated": True, "ending": ranking.ENDING_ROUNDS_PLAYED, "winner_seat": 0}
    time = Timestamp(seconds=1_800_000_000)
    return ranking.MatchResult(seats=seats, create_time=time, **{**members, **changes})


@pytest.mark.parametrize(
    ("changes", "account", "line"),
    [
        ({}, "a", "won     31-9    桜  (1500 -> 1530)"),
        ({}, "b", "lost     9-31   Ume  (1500 -> 1477)"),
        ({"winner_seat": None}, "a", "drawn   31-9    桜  (1500 -> 1530)"),
        ({"is_rated": False, "ending": ranking.ENDING_RESIGNED}, "b", "lost     9-31   Ume  (not rated, resigned)"),
    ],
)
def test_a_match_is_told_as_the_account_saw_it(changes, account, line):
    assert describe(result(**changes), account) == f"2027-01-15 08:00  {line}"
