"""Between the wire's messages and the domain."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.ranking.v1 import ranking_service_pb2 as pb

from services.ranking.domain.leaderboard import Entry, Page
from services.ranking.domain.result import Claim, Receipt
from services.ranking.domain.statement import Ending

_ENDINGS = {
    Ending.ROUNDS_PLAYED: pb.ENDING_ROUNDS_PLAYED,
    Ending.BUST: pb.ENDING_BUST,
    Ending.RESIGNED: pb.ENDING_RESIGNED,
}


def read_claim(request: pb.SubmitResultRequest) -> Claim:
    """Read what somebody hands in."""
    return Claim(request.contract, request.statement, tuple(request.signatures))


def write_receipt(receipt: Receipt) -> pb.SubmitResultResponse:
    """Write the receipt of a recorded result."""
    time = Timestamp()
    time.FromMicroseconds(round(receipt.create_time * 1e6))
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
    return pb.SubmitResultResponse(
        result=pb.MatchResult(
            match_id=str(receipt.match_id),
            order_number=receipt.order_number,
            is_rated=receipt.is_rated,
            ending=_ENDINGS[receipt.ending],
            winner_seat=receipt.winner,
            rounds=receipt.rounds,
            seats=seats,
            create_time=time,
        )
    )


def write_page(page: Page) -> pb.GetLeaderboardResponse:
    """Write one page of the leaderboard."""
    entries = [write_entry(entry) for entry in page.entries]
    return pb.GetLeaderboardResponse(entries=entries, next_page_token=page.next_page_token)


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
