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

    async def get_rating(self, account_id: str) -> ranking.LeaderboardEntry:
        """Give one account's row."""
        request = ranking.GetRatingRequest(account_id=account_id)
        return (await self._client.call(f"{SERVICE}/GetRating", request, ranking.GetRatingResponse)).entry
