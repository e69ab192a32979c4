"""Which devices were signed out: auth's stream `revocations`, read into memory.

An access token lives 15 minutes, so an entry matters no longer than that. Losing the stream delays the end of a
session by at most that time and stops nobody from playing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from services.kit import log
from services.kit.clock import Clock

STREAM = "revocations"
KEEP_S = 16 * 60
"""The life of an access token and a minute for clocks that differ."""
_BLOCK_MS = 1000
_BATCH = 500
_PAUSE_S = 1.0


class Revocations:
    """Follows the stream; every process reads all of it."""

    def __init__(self, client: Redis, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._revoked: dict[str, float] = {}
        self._position = f"{int((clock.now() - KEEP_S) * 1000)}-0".encode()

    def is_revoked(self, device_id: str) -> bool:
        """Tell whether the device was signed out while its access tokens might still be valid."""
        return device_id in self._revoked

    async def follow(self, on_revoked: Callable[[], None]) -> None:
        """Read until cancelled, and tell after news; an outage is waited out."""
        while True:
            try:
                if await self.read_on(_BLOCK_MS):
                    on_revoked()
            except RedisError as error:
                log.get().warning("lobby.revocations.unread", error=type(error).__name__)
                await asyncio.sleep(_PAUSE_S)

    async def read_on(self, block_ms: int | None = None) -> bool:
        """Read what is new since the last call, waiting up to `block_ms` for something; tells whether there was any."""
        answer: Any = await self._client.xread({STREAM: self._position}, count=_BATCH, block=block_ms)
        now = self._clock.now()
        for _, entries in answer:
            for position, fields in entries:
                self._position = position
                if device_id := (fields or {}).get(b"device_id"):
                    self._revoked[device_id.decode(errors="replace")] = now
        for device_id, since in list(self._revoked.items()):
            if since + KEEP_S > now:
                break  # the rest is younger
            del self._revoked[device_id]
        return bool(answer)
