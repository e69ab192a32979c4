"""Between the wire's messages and the domain."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.ranking.v1 import ranking_service_pb2 as pb

from services.ranking.domain.errors import field_invalid
from services.ranking.domain.history import Query, RatingHistory, Results, SeatOutcome, Time, Window, check_window
from services.ranking.domain.leaderboard import Board, Entry
from services.ranking.domain.result import Claim, Receipt
from services.ranking.domain.statement import Ending

_ENDINGS = {
    Ending.ROUNDS_PLAYED: pb.ENDING_ROUNDS_PLAYED,
    Ending.BUST: pb.ENDING_BUST,
    Ending.RESIGNED: pb.ENDING_RESIGNED,
}
_READ_ENDINGS: dict[int, Ending] = {number: ending for ending, number in _ENDINGS.items()}
_READ_OUTCOMES: dict[int, SeatOutcome] = {
    pb.SEAT_OUTCOME_WON: SeatOutcome.WON,
    pb.SEAT_OUTCOME_LOST: SeatOutcome.LOST,
    pb.SEAT_OUTCOME_DRAWN: SeatOutcome.DRAWN,
}
Value = TypeVar("Value")


def read_claim(request: pb.SubmitResultRequest) -> Claim:
    """Read what somebody hands in."""
    return Claim(request.contract, request.statement, tuple(request.signatures))


def read_query(request: pb.ListMatchResultsRequest) -> Query:
    """Read whose results are asked for, and which.

    Raises:
        FieldInvalid: An enum has a value that is none, or the window is not one.
    """
    return Query(
        request.account_id,
        is_rated_only=request.rated_only,
        opponent_id=request.opponent_id or None,
        outcome=_choose(request.outcome, _READ_OUTCOMES, "outcome"),
        ending=_choose(request.ending, _READ_ENDINGS, "ending"),
        window=read_window(request),
    )


def read_window(request: pb.ListMatchResultsRequest | pb.GetRatingHistoryRequest) -> Window:
    """Read the times between which results were recorded.

    Raises:
        FieldInvalid: A time is out of range, or the end is not after the start.
    """
    start, end = request.start_time, request.end_time
    return check_window(
        Time(start.seconds, start.nanos) if request.HasField("start_time") else None,
        Time(end.seconds, end.nanos) if request.HasField("end_time") else None,
    )


def read_neighbors(request: pb.GetLeaderboardAroundRequest) -> tuple[int | None, int | None]:
    """Read how many rows are wanted above and below; None where nothing is said."""
    return (
        request.above if request.HasField("above") else None,
        request.below if request.HasField("below") else None,
    )


def write_receipt(receipt: Receipt) -> pb.MatchResult:
    """Write a recorded result."""
    seats = [
        pb.SeatResult(
            account_id=seat.account_id,
            display_name=seat.display_name,
            points=seat.points,
            rating_before=seat.rating_before,
            rating_after=seat.rating_after,
        )
        for seat in receipt.seats
    ]
    return pb.MatchResult(
        match_id=str(receipt.match_id),
        order_number=receipt.order_number,
        is_rated=receipt.is_rated,
        ending=_ENDINGS[receipt.ending],
        winner_seat=receipt.winner,
        rounds=receipt.rounds,
        seats=seats,
        create_time=_timestamp(receipt.create_time),
    )


def write_results(results: Results) -> pb.ListMatchResultsResponse:
    """Write one page of an account's results."""
    return pb.ListMatchResultsResponse(
        results=[write_receipt(receipt) for receipt in results.receipts],
        next_page_token=results.next_page_token,
        previous_page_token=results.previous_page_token,
    )


def write_history(history: RatingHistory) -> pb.GetRatingHistoryResponse:
    """Write how a rating went."""
    points = [
        pb.RatingPoint(order_number=point.order_number, create_time=_timestamp(point.create_time), rating=point.rating)
        for point in history.points
    ]
    return pb.GetRatingHistoryResponse(points=points, matches=history.matches, rating_before=history.rating_before)


def write_board(board: Board) -> pb.GetLeaderboardResponse:
    """Write one page of the leaderboard."""
    return pb.GetLeaderboardResponse(
        entries=[write_entry(entry) for entry in board.entries],
        next_page_token=board.next_page_token,
        previous_page_token=board.previous_page_token,
    )


def write_neighbors(board: Board) -> pb.GetLeaderboardAroundResponse:
    """Write the rows around one account."""
    return pb.GetLeaderboardAroundResponse(
        entries=[write_entry(entry) for entry in board.entries],
        next_page_token=board.next_page_token,
        previous_page_token=board.previous_page_token,
    )


def write_entry(entry: Entry) -> pb.LeaderboardEntry:
    """Write one row of the leaderboard."""
    standing = entry.standing
    return pb.LeaderboardEntry(
        rank=entry.rank,
        account_id=standing.account_id,
        display_name=standing.display_name,
        rating=standing.rating,
        matches=standing.matches,
        wins=standing.wins,
    )


def _choose(number: int, values: dict[int, Value], field: str) -> Value | None:
    """Read an enum whose 0 means no filter."""
    if number and number not in values:
        raise field_invalid(field, "one of the values of its enum")
    return values.get(number)


def _timestamp(seconds: float) -> Timestamp:
    time = Timestamp()
    time.FromMicroseconds(round(seconds * 1e6))
    return time
