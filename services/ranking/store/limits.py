"""Limits of calls, counted in Redis across all processes."""

from __future__ import annotations

from dataclasses import dataclass

from services.kit.errors import KeysUnavailable, Unauthenticated
from services.kit.limits import Limiter, address_group
from services.kit.tokens import AccessTokenVerifier
from services.ranking.domain.errors import RateLimited
from services.ranking.ports import Visitor

_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class PerMinute:
    """How many calls a minute are taken."""

    submissions: int
    reads_of_address: int
    reads_of_account: int


class CallLimits:
    """Counts calls by address (an IPv6 subscriber is a /64) and by account."""

    def __init__(self, limiter: Limiter, verifier: AccessTokenVerifier, per_minute: PerMinute) -> None:
        self._limiter, self._verifier, self._per_minute = limiter, verifier, per_minute

    async def take_submission(self, address: str) -> None:
        """Count one submission of this address.

        Raises:
            RateLimited: There were too many in the last minute.
        """
        await self._take(f"submit:{address_group(address)}", self._per_minute.submissions)

    async def take_read(self, visitor: Visitor) -> None:
        """Count one read of this address and, where the token is valid, of its account.

        A token is verified after the address was counted. One that is not valid, or that cannot be judged now, counts
        as none: what is read is public, so nobody is sent away for it.

        Raises:
            RateLimited: There were too many in the last minute.
        """
        await self._take(f"read:{address_group(visitor.address)}", self._per_minute.reads_of_address)
        if visitor.access_token and (account_id := await self._identify(visitor.access_token)):
            await self._take(f"read-account:{account_id}", self._per_minute.reads_of_account)

    async def _take(self, key: str, limit: int) -> None:
        await self._limiter.take(key, limit, _WINDOW_S, RateLimited)

    async def _identify(self, access_token: str) -> str | None:
        try:
            return (await self._verifier.verify(access_token)).account_id
        except (Unauthenticated, KeysUnavailable):
            return None
