"""The use cases of ranking."""

from __future__ import annotations

from services.kit.clock import Clock
from services.ranking.domain.contract import check_age, parse_contract
from services.ranking.domain.leaderboard import (
    Entry,
    Page,
    Standing,
    check_account_id,
    check_page_size,
    decode_cursor,
    paginate,
)
from services.ranking.domain.ratings import Rating, rate
from services.ranking.domain.result import Claim, Receipt, check_sizes, prove
from services.ranking.ports import Contracts, Limits, Results


class Ranking:
    """Takes results that both devices signed; shows the ratings that follow from them."""

    def __init__(
        self, *, results: Results, contracts: Contracts, limits: Limits, clock: Clock, lobby_issuer: str
    ) -> None:
        self._results, self._contracts, self._limits = results, contracts, limits
        self._clock, self._lobby_issuer = clock, lobby_issuer

    async def submit_result(self, claim: Claim, address: str) -> Receipt:
        """Verify a result completely, then record it; the same one again gives the same receipt.

        Raises:
            RateLimited: Before any work.
            FieldInvalid, ContractInvalid, ContractTooOld, StatementMalformed, ContractMismatch,
            StatementImpossible, SignatureInvalid: In this order, the cheap checks first.
            ResultConflict: Another result of this match stands.
        """
        await self._limits.take(address)
        check_sizes(claim)
        verified = await self._contracts.verify(claim.contract)
        contract = parse_contract(verified.payload, issuer=self._lobby_issuer)
        now = self._clock.now()
        check_age(contract, now)
        proof = prove(claim, contract, key_id=verified.key_id, public_key=verified.public_key)
        return await self._results.record(proof, now, rate)

    async def get_leaderboard(self, page_size: int, page_token: str) -> Page:
        """List rated accounts, best first, after the row that the token names."""
        count, after = check_page_size(page_size), decode_cursor(page_token)
        rows, position, rank = await self._results.list_standings(after, count + 1)
        return paginate(rows, count, position, rank)

    async def get_rating(self, account_id: str) -> Entry:
        """Give one account's row; one that never played has the initial rating and no place."""
        found = await self._results.find_standing(check_account_id(account_id))
        if found is None:
            return Entry(0, Standing(account_id, "", Rating().shown, 0, 0))
        standing, rank = found
        return Entry(rank, standing)
