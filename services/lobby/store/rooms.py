"""Rooms in Redis: one hash per room, one Lua script per atomic step, all keys of a room in the slot of `{code}`.

Times come from the callers' clocks, which need to agree within a second or so; a room's life is half a minute.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from redis.asyncio import Redis

from services.kit.redis import Argument, Script, load_script
from services.lobby.domain.rooms import MAX_BARRED, Contract, Player, Room
from services.lobby.store.record import flatten, read_pairs, read_room, room_fields, seat_fields

GRAVE_MS = 600_000
"""A dead or closed room keeps its code so long, so that an old code never leads into a stranger's new room."""
PASSWORD_TRIES = 5
PASSWORD_PAUSE_MS = 600_000
CHANNEL = "lobby:news"
"""The scripts publish the code of every room that changed; a channel is no key and needs no slot."""
_SCAN_BATCH = 200


class RedisRooms:
    """Implements `ports.Rooms`.

    Args:
        client: Redis.
        room_life_ms: How long an open room lives after its host was last seen.
    """

    def __init__(self, client: Redis, room_life_ms: int) -> None:
        self._client = client
        self._life_ms = room_life_ms
        self._open = _script(client, "open_room")
        self._visit = _script(client, "visit_room")
        self._take_seat = _script(client, "take_seat")
        self._keep_signature = _script(client, "keep_signature")
        self._close = _script(client, "close_room")
        self._take_try = _script(client, "take_try")
        self._bar = _script(client, "bar_account")

    async def open(self, room: Room) -> bool:
        """Claim the code and write the room; False when the code is in use or was until lately."""
        life_ms = self._life_ms + GRAVE_MS
        return bool(await self._open([room_key(room.code)], [room.room_id, life_ms, *flatten(room_fields(room))]))

    async def visit(self, code: str, account_id: str, now: int) -> Room | None:
        """Read a room; when the account is the host of this open room, keep it alive."""
        arguments: list[Argument] = [
            account_id,
            now,
            now + self._life_ms,
            self._life_ms + GRAVE_MS,
            CHANNEL,
            code,
        ]
        return read_pairs(await self._visit([room_key(code)], arguments))

    async def take_seat(
        self, room: Room, guest: Player, contract: Contract, now: int, generation: str = ""
    ) -> Room | None:
        """Take the second seat and fix the contract, if the room is still the same and open. Gives the room after."""
        arguments: list[Argument] = [
            room.room_id,
            guest.account_id,
            guest.device_key.hex(),
            now,
            contract.expire_time - now,
            CHANNEL,
            room.code,
            generation,
        ]
        keys = [room_key(room.code), knocks_key(room.code)]
        fields = flatten(seat_fields(guest, contract))
        return read_pairs(await self._take_seat(keys, [*arguments, *fields]))

    async def keep_signature(self, room: Room, jws: str) -> str | None:
        """Keep the first signature of a contract; gives the kept one, or None when the room is gone."""
        match_id = room.contract.match_id if room.contract else ""
        kept: bytes | None = await self._keep_signature([room_key(room.code)], [match_id, jws])
        return None if kept is None else kept.decode()

    async def close(self, code: str, account_id: str, request_id: str, now: int) -> bool:
        """Close an open room of this host; True also for a repetition of the request that closed it."""
        arguments: list[Argument] = [account_id, request_id, now, GRAVE_MS, CHANNEL, code]
        return bool(await self._close([room_key(code)], arguments))

    async def bar(self, code: str, host_id: str, account_id: str, now: int) -> bool | None:
        """Keep an account out of a host's open room; None when this is no such room, False when it is full of those."""
        arguments: list[Argument] = [host_id, account_id, now, MAX_BARRED, CHANNEL, code]
        answer = await self._bar([room_key(code), knocks_key(code)], arguments)
        return None if answer == 0 else answer > 0

    async def take_try(self, code: str, account_id: str, now: int) -> float:
        """Count one password of an account for a room; gives the seconds to wait when there were too many, or 0."""
        key = f"lobby:tries:{{{code}}}:{account_id}"
        wait_ms = await self._take_try([key], [now, PASSWORD_TRIES, PASSWORD_PAUSE_MS])
        return float(wait_ms) / 1000

    async def read(self, codes: Sequence[str]) -> list[Room]:
        """Read rooms in this order, leaving out what is gone."""
        if not codes:
            return []
        pipeline = self._client.pipeline(transaction=False)
        for code in codes:
            pipeline.hgetall(room_key(code))
        return [room for record in await pipeline.execute() if (room := read_room(record)) is not None]

    async def scan(self) -> AsyncIterator[list[Room]]:
        """Give every room there is, in batches, for the sweeper."""
        codes: list[str] = []
        async for key in self._client.scan_iter(match="lobby:room:*", count=_SCAN_BATCH):
            codes.append(key.decode().partition("{")[2].rstrip("}"))
            if len(codes) == _SCAN_BATCH:
                yield await self.read(codes)
                codes = []
        yield await self.read(codes)


def room_key(code: str) -> str:
    """Name the hash of a room."""
    return f"lobby:room:{{{code}}}"


def knocks_key(code: str) -> str:
    """Name the hash of those who knock at a room, in the same slot."""
    return f"lobby:knocks:{{{code}}}"


def _script(client: Redis, name: str) -> Script:
    return load_script(client, (Path(__file__).parent / "lua" / f"{name}.lua").read_text(encoding="utf-8"))
