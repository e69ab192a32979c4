"""The use cases of ranking."""

from __future__ import annotations

import uuid

from services.kit.clock import Clock
from services.ranking.domain.contract import check_age, parse_contract
from services.ranking.domain.errors import ResultNotFound
from services.ranking.domain.history import (
    Query,
    RatingHistory,
    Results,
    Window,
    check_points,
    check_query,
)
from services.ranking.domain.leaderboard import (
    TOKENS,
    Board,
    Entry,
    Standing,
    check_account_id,
    check_neighbors,
    make_board,
)
from services.ranking.domain.pages import check_page_size
from services.ranking.domain.ratings import Rating, rate
from services.ranking.domain.result import Claim, Receipt, check_sizes, prove
from services.ranking.ports import Contracts, Histories, Limits, Log, Standings, Visitor


class Ranking:
    """Takes results that both devices signed; shows the ratings that follow from them.

    Every reading raises RateLimited before any work, and FieldInvalid for what no request can mean.
    """

    def __init__(
        self,
        *,
        log: Log,
        standings: Standings,
        histories: Histories,
        contracts: Contracts,
        limits: Limits,
        clock: Clock,
        lobby_issuer: str,
    ) -> None:
        self._log, self._standings, self._histories = log, standings, histories
        self._contracts, self._limits, self._clock, self._lobby_issuer = contracts, limits, clock, lobby_issuer

    async def submit_result(self, claim: Claim, address: str) -> Receipt:
        """Verify a result completely, then record it; the same one again gives the same receipt.

        Raises:
            RateLimited: Before any work.
            FieldInvalid, ContractInvalid, ContractTooOld, StatementMalformed, ContractMismatch,
            StatementImpossible, SignatureInvalid: In this order, the cheap checks first.
            ResultConflict: Another result of this match stands.
        """
        await self._limits.take_submission(address)
        check_sizes(claim)
        verified = await self._contracts.verify(claim.contract)
        contract = parse_contract(verified.payload, issuer=self._lobby_issuer)
        now = self._clock.now()
        check_age(contract, now)
        proof = prove(claim, contract, key_id=verified.key_id, public_key=verified.public_key)
        return await self._log.record(proof, now, rate)

    async def get_leaderboard(self, visitor: Visitor, page_size: int, page_token: str) -> Board:
        """List rated accounts, best first, from where the token says."""
        await self._limits.take_read(visitor)
        size, bound = check_page_size(page_size), TOKENS.read(page_token)
        page, better, before = await self._standings.list_standings(bound, size)
        return make_board(page, better=better, before=before)

    async def get_neighbors(self, visitor: Visitor, account_id: str, above: int | None, below: int | None) -> Board:
        """List the accounts around one; an account that has no place comes alone."""
        await self._limits.take_read(visitor)
        rows_above, rows_below = check_neighbors(above, "above"), check_neighbors(below, "below")
        found = await self._standings.list_neighbors(check_account_id(account_id), rows_above, rows_below)
        if isinstance(found, tuple):
            page, better, before = found
            return make_board(page, better=better, before=before)
        return Board((Entry(0, found or _newcomer(account_id)),))

    async def get_rating(self, visitor: Visitor, account_id: str) -> Entry:
        """Give one account's row; one that never played has the initial rating and no rank."""
        await self._limits.take_read(visitor)
        found = await self._standings.find_standing(check_account_id(account_id))
        standing, rank = found or (_newcomer(account_id), 0)
        return Entry(rank, standing)

    async def list_results(self, visitor: Visitor, query: Query, page_size: int, page_token: str) -> Results:
        """List results of one account, newest first, from where the token says."""
        await self._limits.take_read(visitor)
        size, tokens = check_page_size(page_size), check_query(query).tokens()
        page = await self._histories.list_receipts(query, tokens.read(page_token), size)
        return Results(page.rows, tokens.write(page.next), tokens.write(page.previous))

    async def get_rating_history(
        self, visitor: Visitor, account_id: str, window: Window, max_points: int
    ) -> RatingHistory:
        """Show how an account's rating went; before its first rated match it is the initial rating."""
        await self._limits.take_read(visitor)
        most = check_points(max_points)
        return await self._histories.trace_rating(check_account_id(account_id), window, most)

    async def get_result(self, visitor: Visitor, match_id: uuid.UUID) -> Receipt:
        """Give the recorded result of a match.

        Raises:
            ResultNotFound: None is recorded.
        """
        await self._limits.take_read(visitor)
        receipt = await self._histories.find_receipt(match_id)
        if receipt is None:
            raise ResultNotFound(
                "No result of this match is recorded.", field="match_id", metadata={"match_id": str(match_id)}
            )
        return receipt


def _newcomer(account_id: str) -> Standing:
    return Standing(account_id, "", Rating().shown, 0, 0)
