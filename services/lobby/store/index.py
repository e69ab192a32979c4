"""Where to find rooms: the list, the room an account is in, the matches it plays.

Derived from the rooms and spread over other slots, so written after them and never trusted: readers check each room.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from services.kit.redis import Argument, load_script
from services.lobby.domain.rooms import Hold, Room
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
        self._hold_life_ms = room_life_ms + GRAVE_MS
        self._claim_hold, self._release_hold = (
            load_script(client, (Path(__file__).parent / "lua" / f"{name}.lua").read_text(encoding="utf-8"))
            for name in ("claim_hold", "release_hold")
        )

    async def hold(self, account_id: str) -> Hold | None:
        """Give the room an account entered last."""
        text: Any = await self._client.get(_hold_key(account_id))
        code, _, until = text.decode().partition("|") if text else ("", "", "")
        return Hold(code, int(until)) if code else None

    async def claim_hold(self, account_id: str, hold: Hold, expected: Hold | None) -> bool:
        """Point an account to a room if it still points to `expected` (or to that room already), and renew that."""
        arguments: list[Argument] = [_hold_text(hold), _hold_text(expected), self._hold_life_ms]
        return bool(await self._claim_hold([_hold_key(account_id)], arguments))

    async def release_hold(self, account_id: str, hold: Hold) -> None:
        """Let an account go if it still points there."""
        await self._release_hold([_hold_key(account_id)], [_hold_text(hold)])

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


def _hold_key(account_id: str) -> str:
    return f"lobby:hold:{{{account_id}}}"


def _hold_text(hold: Hold | None) -> str:
    return f"{hold.code}|{hold.until}" if hold else ""


def _matches_key(account_id: str) -> str:
    return f"lobby:matches:{{{account_id}}}"
