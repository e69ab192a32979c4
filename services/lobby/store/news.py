"""Hears which rooms changed, in whichever process. Only a hint: whoever hears it reads the room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from redis.asyncio import Redis

from services.kit import log
from services.lobby.store.rooms import CHANNEL

_PAUSE_S = 0.5
_CODE_BYTES = 16


class RedisNews:
    """Follows the one channel of all rooms; in a cluster every node passes it on."""

    def __init__(self, client: Redis) -> None:
        self._client = client

    async def follow(self, on_change: Callable[[str], None], on_gap: Callable[[], None]) -> None:
        """Listen until cancelled; an outage is waited out.

        Args:
            on_change: Told the code of every room that changed.
            on_gap: Called whenever listening begins (again), also where the library connected anew without a word:
                something may have been missed.
        """
        while True:
            try:
                async with self._client.pubsub() as pubsub:
                    await pubsub.subscribe(CHANNEL)
                    while True:
                        message = await pubsub.get_message(timeout=1.0)
                        if message and message["type"] == "subscribe":
                            on_gap()
                        elif message and len(message["data"]) <= _CODE_BYTES:
                            on_change(message["data"].decode("ascii", errors="replace"))
            except Exception as error:  # noqa: BLE001 - whatever it was, the next message may be heard
                log.get().warning("lobby.news.unread", error=type(error).__name__)
                await asyncio.sleep(_PAUSE_S)
