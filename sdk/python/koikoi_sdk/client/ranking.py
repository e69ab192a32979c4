"""Results and the leaderboard, as a client uses them."""

from __future__ import annotations

from koikoi.ranking.v1 import ranking_service_pb2 as ranking

from koikoi_sdk.client.connect import ConnectClient

SERVICE = "koikoi.ranking.v1.RankingService"


class Ranking:
    """The ranking's calls; none needs a sign-in: a result carries its own proof."""

    def __init__(self, client: ConnectClient) -> None:
        self._client = client

    async def submit_result(
        self, contract: str, statement: bytes, signatures: tuple[bytes, bytes]
    ) -> ranking.MatchResult:
        """Hand in a dual-signed result; the same result again gives the same receipt."""
        request = ranking.SubmitResultRequest(contract=contract, statement=statement, signatures=signatures)
        return (await self._client.call(f"{SERVICE}/SubmitResult", request, ranking.SubmitResultResponse)).result

    async def get_leaderboard(self, *, page_size: int = 50, page_token: str = "") -> ranking.GetLeaderboardResponse:
        """Give one page of the best rated accounts."""
        request = ranking.GetLeaderboardRequest(page_size=page_size, page_token=page_token)
        return await self._client.call(f"{SERVICE}/GetLeaderboard", request, ranking.GetLeaderboardResponse)

    async def get_leaderboard_around(
        self, account_id: str, *, above: int = 5, below: int = 5
    ) -> ranking.GetLeaderboardAroundResponse:
        """Give an account's row with those around it; alone, with rank 0, before its first rated match."""
        request = ranking.GetLeaderboardAroundRequest(account_id=account_id, above=above, below=below)
        return await self._client.call(f"{SERVICE}/GetLeaderboardAround", request, ranking.GetLeaderboardAroundResponse)

    async def list_match_results(self, request: ranking.ListMatchResultsRequest) -> ranking.ListMatchResultsResponse:
        """Give one page of an account's results, newest first; the request holds account, filters and page token."""
        return await self._client.call(f"{SERVICE}/ListMatchResults", request, ranking.ListMatchResultsResponse)

    async def get_match_result(self, match_id: str) -> ranking.MatchResult:
        """Give the recorded result of a match.

        Raises:
            ServerError: None is recorded (RESULT_NOT_FOUND).
        """
        request = ranking.GetMatchResultRequest(match_id=match_id)
        return (await self._client.call(f"{SERVICE}/GetMatchResult", request, ranking.GetMatchResultResponse)).result

    async def get_rating_history(self, request: ranking.GetRatingHistoryRequest) -> ranking.GetRatingHistoryResponse:
        """Give points of an account's rating over time; the request holds account, window and number of points."""
        return await self._client.call(f"{SERVICE}/GetRatingHistory", request, ranking.GetRatingHistoryResponse)

    async def get_rating(self, account_id: str) -> ranking.LeaderboardEntry:
        """Give one account's row."""
        request = ranking.GetRatingRequest(account_id=account_id)
        return (await self._client.call(f"{SERVICE}/GetRating", request, ranking.GetRatingResponse)).entry
