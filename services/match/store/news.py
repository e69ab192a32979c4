"""Hears what other processes changed: one sharded channel per bucket, subscribed while a match of it is here."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from redis.asyncio import Redis
from redis.exceptions import RedisError

from services.kit import log
from services.match.store.redis import REVISION_BYTES, bucket_of, channel_of, translated

__all__ = ["RedisNews"]

_CONFIRM_LIMIT_S = 3.0
_PAUSE_S = 0.5


class RedisNews:
    """Implements `ports.News`.

    Args:
        client: Redis.
    """

    def __init__(self, client: Redis) -> None:
        self._pubsub = client.pubsub()
        self._watched: Counter[int] = Counter()
        self._confirmed: dict[int, asyncio.Event] = {}
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()  # subscribing and unsubscribing keep their order

    async def watch(self, match_id: str) -> None:
        """Begin to hear about a match; returns once Redis confirmed the subscription."""
        bucket = bucket_of(match_id)
        self._watched[bucket] += 1
        try:
            async with translated(), asyncio.timeout(_CONFIRM_LIMIT_S):
                async with self._lock:
                    if bucket not in self._confirmed:
                        self._confirmed[bucket] = asyncio.Event()
                        await self._pubsub.ssubscribe(channel_of(bucket))
                        self._wake.set()
                await self._confirmed[bucket].wait()
        except BaseException:
            await self.unwatch(match_id)
            raise

    async def unwatch(self, match_id: str) -> None:
        """Stop hearing about a match; the channel goes when no match of its bucket is left."""
        bucket = bucket_of(match_id)
        self._watched[bucket] -= 1
        async with self._lock:
            if self._watched[bucket] > 0 or bucket not in self._confirmed:
                return
            del self._watched[bucket], self._confirmed[bucket]
            try:
                await self._pubsub.sunsubscribe(channel_of(bucket))
            except (RedisError, OSError, TimeoutError):
                return  # not connected: nothing will come either

    async def follow(self, on_change: Callable[[str, bytes], None], on_gap: Callable[[], Awaitable[None]]) -> None:
        """Read until cancelled; an outage is waited out.

        Args:
            on_change: Told match id and new revision.
            on_gap: Called after every reconnection: messages may have been lost, so everything must be read anew.
        """
        is_whole = True
        while True:
            if not self._pubsub.subscribed:
                self._wake.clear()
                await self._wake.wait()
            try:
                if not is_whole:
                    await self._pubsub.connect()  # type: ignore[no-untyped-call]
                    await on_gap()
                    is_whole = True
                await self._read_one(on_change)
            except Exception as error:  # noqa: BLE001 - a process that hears nothing must not look healthy
                log.get().warning("match.news.unread", error=type(error).__name__)
                is_whole = False
                await asyncio.sleep(_PAUSE_S)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._pubsub.aclose()  # type: ignore[no-untyped-call]

    async def _read_one(self, on_change: Callable[[str, bytes], None]) -> None:
        message = await self._pubsub.get_message(ignore_subscribe_messages=False, timeout=1.0)
        if message is None:
            return
        if message["type"] == "ssubscribe":
            bucket = int(message["channel"][2:5])
            if bucket in self._confirmed:
                self._confirmed[bucket].set()
        elif message["type"] == "smessage":
            data: bytes = message["data"]
            on_change(data[:-REVISION_BYTES].decode(), data[-REVISION_BYTES:])
