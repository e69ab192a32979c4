"""Repairs what is derived from the rooms: the list and each account's entries."""

from __future__ import annotations

from services.kit.clock import Clock
from services.lobby.domain.rooms import Hold, Room, is_held
from services.lobby.ports import Index, Rooms

_BATCH = 200


class Sweeper:
    """Makes list and index agree with the rooms, whatever a crash or a lost write left behind."""

    def __init__(self, rooms: Rooms, index: Index, clock: Clock) -> None:
        self._rooms = rooms
        self._index = index
        self._clock = clock

    async def sweep(self) -> None:
        """Go once through the list and all rooms. Any number of processes may do so at once."""
        await self._drop_dead()
        async for batch in self._rooms.scan():
            for room in batch:
                await self._repair(room)

    async def _drop_dead(self) -> None:
        start = 0
        while codes := await self._index.newest(start, _BATCH):
            now = self._now()
            alive = {room.code for room in await self._rooms.read(codes) if room.is_listed(now)}
            await self._index.drop_rooms([code for code in codes if code not in alive])
            start += len(alive)

    async def _repair(self, room: Room) -> None:
        now = self._now()
        if room.is_ready(now):
            await self._index.add_match(room)
        if not room.is_open(now):
            return
        account_id = room.host.account_id
        if await self._index.claim_hold(account_id, Hold(room.code), None):
            if room.is_listed(now):
                await self._index.add_room(room)
            return
        # The account's entry names another room. If it is in there, this one is left over from a call that died.
        hold = await self._index.hold(account_id)
        rivals = await self._rooms.read([hold.code] if hold else [])
        if any(is_held(rival, account_id, now) for rival in rivals):
            await self._rooms.close(room.code, account_id, room.request_id, now)

    def _now(self) -> int:
        return int(self._clock.now() * 1000)
