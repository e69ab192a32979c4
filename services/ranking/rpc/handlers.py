"""The RPCs of ranking: convert, call, convert. Errors, deadlines and the log line are the interceptor's."""

from __future__ import annotations

from typing import Any

from koikoi.ranking.v1 import ranking_service_pb2 as pb
from koikoi.ranking.v1 import ranking_service_pb2_grpc

from services.kit.grpc_server import client_address
from services.ranking.rpc.convert import read_claim, write_entry, write_page, write_receipt
from services.ranking.service import Ranking

ANONYMOUS = ("SubmitResult", "GetLeaderboard", "GetRating")
"""Anybody may call these: a result carries its own proof, the rest is public."""


class RankingHandlers(ranking_service_pb2_grpc.RankingServiceServicer):
    """Answers `koikoi.ranking.v1.RankingService`."""

    def __init__(self, ranking: Ranking) -> None:
        self._ranking = ranking

    async def SubmitResult(self, request: pb.SubmitResultRequest, context: Any) -> pb.SubmitResultResponse:  # noqa: N802
        """Record the result of a match."""
        return write_receipt(await self._ranking.submit_result(read_claim(request), client_address()))

    async def GetLeaderboard(self, request: pb.GetLeaderboardRequest, context: Any) -> pb.GetLeaderboardResponse:  # noqa: N802
        """List the best rated accounts."""
        return write_page(await self._ranking.get_leaderboard(request.page_size, request.page_token))

    async def GetRating(self, request: pb.GetRatingRequest, context: Any) -> pb.GetRatingResponse:  # noqa: N802
        """Return one account's rating."""
        return pb.GetRatingResponse(entry=write_entry(await self._ranking.get_rating(request.account_id)))
