"""The RPCs of ranking: convert, call, convert. Errors, deadlines and the log line are the interceptor's."""

from __future__ import annotations

from typing import Any

from koikoi.ranking.v1 import ranking_service_pb2 as pb
from koikoi.ranking.v1 import ranking_service_pb2_grpc

from services.kit.grpc_server import client_address
from services.ranking.domain.history import check_match_id
from services.ranking.ports import Visitor
from services.ranking.rpc import convert
from services.ranking.service import Ranking

ANONYMOUS = (
    "SubmitResult",
    "GetLeaderboard",
    "GetLeaderboardAround",
    "GetRating",
    "GetRatingHistory",
    "ListMatchResults",
    "GetMatchResult",
)
"""Anybody may call these: a result carries its own proof, the rest is public."""


class RankingHandlers(ranking_service_pb2_grpc.RankingServiceServicer):
    """Answers `koikoi.ranking.v1.RankingService`."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    async def SubmitResult(self, request: pb.SubmitResultRequest, context: Any) -> pb.SubmitResultResponse:  # noqa: N802
        """Record the result of a match."""
        receipt = await self._ranking.submit_result(convert.read_claim(request), client_address())
        return pb.SubmitResultResponse(result=convert.write_receipt(receipt))

    async def GetLeaderboard(self, request: pb.GetLeaderboardRequest, context: Any) -> pb.GetLeaderboardResponse:  # noqa: N802
        """List the best rated accounts."""
        board = await self._ranking.get_leaderboard(_visitor(context), request.page_size, request.page_token)
        return convert.write_board(board)

    async def GetLeaderboardAround(  # noqa: N802
        self, request: pb.GetLeaderboardAroundRequest, context: Any
    ) -> pb.GetLeaderboardAroundResponse:
        """List the accounts around one account."""
        above, below = convert.read_neighbors(request)
        board = await self._ranking.get_neighbors(_visitor(context), request.account_id, above, below)
        return convert.write_neighbors(board)

    async def GetRating(self, request: pb.GetRatingRequest, context: Any) -> pb.GetRatingResponse:  # noqa: N802
        """Return one account's rating."""
        entry = await self._ranking.get_rating(_visitor(context), request.account_id)
        return pb.GetRatingResponse(entry=convert.write_entry(entry))

    async def GetRatingHistory(self, request: pb.GetRatingHistoryRequest, context: Any) -> pb.GetRatingHistoryResponse:  # noqa: N802
        """Show how one account's rating went."""
        window = convert.read_window(request)
        history = await self._ranking.get_rating_history(
            _visitor(context), request.account_id, window, request.max_points
        )
        return convert.write_history(history)

    async def ListMatchResults(self, request: pb.ListMatchResultsRequest, context: Any) -> pb.ListMatchResultsResponse:  # noqa: N802
        """List the results of one account."""
        query = convert.read_query(request)
        results = await self._ranking.list_results(_visitor(context), query, request.page_size, request.page_token)
        return convert.write_results(results)

    async def GetMatchResult(self, request: pb.GetMatchResultRequest, context: Any) -> pb.GetMatchResultResponse:  # noqa: N802
        """Return the result of one match."""
        receipt = await self._ranking.get_result(_visitor(context), check_match_id(request.match_id))
        return pb.GetMatchResultResponse(result=convert.write_receipt(receipt))


def _visitor(context: Any) -> Visitor:
    """Give who reads; a token is looked at later, and only for the limits."""
    metadata = dict(context.invocation_metadata() or ())
    scheme, _, token = str(metadata.get("authorization", "")).partition(" ")
    return Visitor(client_address(), token if scheme.lower() == "bearer" else "")
