"""Hears what other processes changed: one sharded channel per bucket, subscribed while a match of it is here."""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection

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
        silence_s: Silence after which the connection is asked whether it lives; after twice as much it is given up.
    """

    def __init__(self, client: Redis, *, silence_s: float = 5.0) -> None:
        self._pubsub, self._silence_s = client.pubsub(), silence_s
        self._watched: dict[int, Counter[str]] = defaultdict(Counter)  # match ids by bucket
        self._confirmed: dict[int, asyncio.Event] = {}
        self._wake = asyncio.Event()
        self._lock = asyncio.Lock()  # subscribing and unsubscribing keep their order
        self._heard_at, self._is_asked = time.monotonic(), False

    async def watch(self, match_id: str) -> None:
        """Begin to hear about a match; returns once Redis confirmed the subscription."""
        bucket = bucket_of(match_id)
        self._watched[bucket][match_id] += 1
        try:
            async with translated(), asyncio.timeout(_CONFIRM_LIMIT_S):
                async with self._lock:
                    await self._subscribe(bucket)
                await self._confirmed[bucket].wait()
        except BaseException:
            await self.unwatch(match_id)
            raise

    async def _subscribe(self, bucket: int) -> None:
        if bucket in self._confirmed:
            return
        self._confirmed[bucket] = asyncio.Event()
        try:
            await self._pubsub.ssubscribe(channel_of(bucket))
        except BaseException:
            del self._confirmed[bucket]  # else nobody would ever subscribe to it again
            raise
        self._wake.set()

    async def unwatch(self, match_id: str) -> None:
        """Stop hearing about a match; the channel goes when no match of its bucket is left."""
        bucket = bucket_of(match_id)
        watched = self._watched[bucket]
        watched[match_id] -= 1
        if not watched[match_id]:
            del watched[match_id]
        async with self._lock:
            if self._watched[bucket]:
                return
            del self._watched[bucket]
            if self._confirmed.pop(bucket, None) is None:
                return
            try:
                await self._pubsub.sunsubscribe(channel_of(bucket))
            except (RedisError, OSError, TimeoutError):
                return  # not connected: nothing will come either

    async def follow(
        self, on_change: Callable[[str, bytes], None], on_gap: Callable[[Collection[str]], Awaitable[None]]
    ) -> None:
        """Read until cancelled; an outage is waited out.

        Args:
            on_change: Told match id and new revision.
            on_gap: Told match ids whose messages may have been lost, so that they must be read anew.
        """
        while True:
            if not self._pubsub.subscribed:
                self._wake.clear()
                await self._wake.wait()
                self._heard_at, self._is_asked = time.monotonic(), False
            try:
                await self._read_one(on_change, on_gap)
                await self._check_silence()
            except Exception as error:  # noqa: BLE001 - a process that hears nothing must not look healthy
                log.get().warning("match.news.unread", error=type(error).__name__)
                await self._drop()
                await asyncio.sleep(_PAUSE_S)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._pubsub.aclose()  # type: ignore[no-untyped-call]

    async def _read_one(
        self, on_change: Callable[[str, bytes], None], on_gap: Callable[[Collection[str]], Awaitable[None]]
    ) -> None:
        message = await self._pubsub.get_message(ignore_subscribe_messages=False, timeout=min(1.0, self._silence_s))
        if message is None:
            return
        self._heard_at, self._is_asked = time.monotonic(), False
        if message["type"] == "ssubscribe":
            bucket = int(message["channel"][2:5])
            confirmed = self._confirmed.get(bucket)
            if confirmed is not None and confirmed.is_set():  # the library has connected again, which it does not say
                await on_gap(list(self._watched[bucket]))
            elif confirmed is not None:
                confirmed.set()
        elif message["type"] == "smessage":
            data: bytes = message["data"]
            on_change(data[:-REVISION_BYTES].decode(), data[-REVISION_BYTES:])

    async def _check_silence(self) -> None:
        """Give up a connection whose other end is gone without a word, as after a failover; reading connects again."""
        silent_s = time.monotonic() - self._heard_at
        if silent_s > 2 * self._silence_s:
            self._heard_at, self._is_asked = time.monotonic(), False
            raise TimeoutError
        if silent_s > self._silence_s and not self._is_asked:
            self._is_asked = True
            await self._pubsub.ping()

    async def _drop(self) -> None:
        """Leave the connection; the next read makes another, and every channel is confirmed anew."""
        if self._pubsub.connection is not None:
            with contextlib.suppress(RedisError, OSError, TimeoutError):
                await self._pubsub.connection.disconnect(nowait=True)
