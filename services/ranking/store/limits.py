"""Limits of calls, counted in Redis across all processes."""

from __future__ import annotations

from services.kit.limits import Limiter, address_group
from services.ranking.domain.errors import RateLimited

_WINDOW_S = 60.0


class AddressLimits:
    """Counts submissions by address; an IPv6 subscriber is a /64."""

    def __init__(self, limiter: Limiter, per_minute: int) -> None:
        self._limiter, self._per_minute = limiter, per_minute

    async def take(self, address: str) -> None:
        """Count one submission of this address.

        Raises:
            RateLimited: There were too many in the last minute.
        """
        await self._limiter.take(f"submit:{address_group(address)}", self._per_minute, _WINDOW_S, RateLimited)
