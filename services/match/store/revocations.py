"""Which devices were signed out: auth's stream `revocations`, read from explicit ids by every process."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis

from services.kit import log
from services.kit.clock import Clock
from services.kit.tokens import decode_base64url

__all__ = ["RedisRevocations"]

STREAM = "revocations"
_KEEP_MS = 3 * 3_600_000  # the life of a contract
_BATCH, _BLOCK_MS, _PAUSE_S = 500, 1000, 1.0


class RedisRevocations:
    """Follows the stream, from one contract's life ago on. Losing it delays the end of a match, never corrupts.

    Args:
        client: Redis.
        clock: Time.
        on_revoked: Told each device key and when it was revoked, in ms; may be told again.
    """

    def __init__(self, client: Redis, clock: Clock, on_revoked: Callable[[bytes, int], Awaitable[None]]) -> None:
        self._client, self._clock, self._on_revoked = client, clock, on_revoked
        self._position: bytes | str = f"{max(0, int(clock.now() * 1000) - _KEEP_MS)}-0"

    async def follow(self) -> None:
        """Read until cancelled; an outage is waited out."""
        while True:
            try:
                await self.read_on(_BLOCK_MS)
            except Exception as error:  # noqa: BLE001 - whatever it was, the next entry may be read
                log.get().warning("match.revocations.unread", error=type(error).__name__)
                await asyncio.sleep(_PAUSE_S)

    async def read_on(self, block_ms: int | None = None) -> None:
        """Read what is new, waiting up to `block_ms` for something. An entry that makes no sense is passed over."""
        answer: Any = await self._client.xread({STREAM: self._position}, count=_BATCH, block=block_ms)
        for _, entries in answer or []:
            for position, fields in entries:
                self._position = position
                try:
                    key = decode_base64url(fields[b"device_key"].decode())
                    time_ms = int(fields[b"time"])
                except (KeyError, ValueError, TypeError):
                    log.get().warning("match.revocations.skipped")
                    continue
                await self._on_revoked(key, time_ms)
