"""Where to find rooms: the list, the room an account hosts, the matches it plays.

Derived from the rooms and spread over other slots, so written after them and never trusted: readers check each room.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from services.kit.redis import load_script
from services.lobby.domain.rooms import Room
from services.lobby.store.rooms import GRAVE_MS

LIST_KEY = "lobby:list"
MAX_MATCHES = 50
"""Of one account; the oldest are forgotten first."""
_LIST_LIFE_MS = 3_600_000


class RedisIndex:
    """Implements `ports.Index`.

    Args:
        client: Redis.
        room_life_ms: How long an open room lives after its host was last seen.
    """

    def __init__(self, client: Redis, room_life_ms: int) -> None:
        self._client = client
        self._host_life_ms = room_life_ms + GRAVE_MS
        script = Path(__file__).parent / "lua" / "claim_host.lua"
        self._claim_host = load_script(client, script.read_text(encoding="utf-8"))

    async def hosted(self, account_id: str) -> str:
        """Give the code of the room an account opened last, or an empty string."""
        code: Any = await self._client.get(_host_key(account_id))
        return code.decode() if code else ""

    async def claim_host(self, account_id: str, code: str, expected: str) -> bool:
        """Point an account to its room if it still points to `expected` (or to `code` already), and renew that."""
        return bool(await self._claim_host([_host_key(account_id)], [code, expected, self._host_life_ms]))

    async def add_room(self, room: Room) -> None:
        """Put a room into the list."""
        pipeline = self._client.pipeline(transaction=False)
        pipeline.zadd(LIST_KEY, {room.code: room.create_time})
        pipeline.pexpire(LIST_KEY, _LIST_LIFE_MS)
        await pipeline.execute()

    async def drop_rooms(self, codes: Iterable[str]) -> None:
        """Take rooms out of the list."""
        if members := list(codes):
            await self._client.zrem(LIST_KEY, *members)

    async def newest(self, start: int, count: int) -> list[str]:
        """Give codes of the list, newest first."""
        codes: Any = await self._client.zrevrange(LIST_KEY, start, start + count - 1)
        return [code.decode() for code in codes]

    async def add_match(self, room: Room) -> None:
        """Note a ready room for both of its players."""
        if room.contract is None or room.guest is None:
            return
        pipeline = self._client.pipeline(transaction=False)
        for player in (room.host, room.guest):
            key = _matches_key(player.account_id)
            pipeline.zadd(key, {room.code: room.contract.expire_time})
            pipeline.zremrangebyrank(key, 0, -MAX_MATCHES - 1)
            pipeline.pexpire(key, room.contract.expire_time - room.contract.fill_time)
        await pipeline.execute()

    async def matches(self, account_id: str, now: int) -> list[str]:
        """Give the codes of an account's ready rooms, newest first."""
        codes: Any = await self._client.zrevrangebyscore(_matches_key(account_id), "+inf", f"({now}")
        return [code.decode() for code in codes]

    async def lease_sweep(self, period_s: float) -> bool:
        """Tell whether this process does the sweep of this period."""
        return bool(await self._client.set("lobby:sweep", b"1", nx=True, px=int(period_s * 1000)))


def _host_key(account_id: str) -> str:
    return f"lobby:host:{{{account_id}}}"


def _matches_key(account_id: str) -> str:
    return f"lobby:matches:{{{account_id}}}"
