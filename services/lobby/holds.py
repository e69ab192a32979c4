"""One room an account: which one it is in, and how it gets out of it.

An account's entry is derived and never trusted: it counts only as far as the room it names agrees. In the middle of
entering it counts by itself for a while, longer than any call takes, so that of two calls at once only one goes on.
"""

from __future__ import annotations

from services.kit.clock import Clock
from services.lobby.domain.errors import AlreadyInRoom, Busy
from services.lobby.domain.rooms import Hold, Room, is_held
from services.lobby.ports import Index, Rooms

ENTERING_MS = 15_000
"""A call takes at most 10 s."""


class Holds:
    """Keeps every account to one room."""

    def __init__(self, rooms: Rooms, index: Index, clock: Clock) -> None:
        self._rooms = rooms
        self._index = index
        self._clock = clock

    async def room_of(self, account_id: str) -> Room | None:
        """Give the room an account entered last, whatever became of it."""
        hold = await self._index.hold(account_id)
        return await self._read(hold.code) if hold else None

    async def free(
        self, account_id: str, *, entering: str = "", leave: bool = False, request_id: str = ""
    ) -> Hold | None:
        """Make sure that an account is in no other room; gives its entry, if it has one, which no longer counts.

        Args:
            account_id: Whose entry.
            entering: The code of the room it wants to enter, if there is one yet.
            leave: Leave the other room: an open one is closed, a match to be is left to itself.
            request_id: Of the call, so that its repetition closes nothing else.

        Raises:
            AlreadyInRoom: It is in another room, or somebody joined that in the very moment of leaving it.
            Busy: Another call of the account is entering a room.
        """
        hold = await self._index.hold(account_id)
        if hold is None or hold.code == entering:
            return hold
        now = self._now()
        if hold.until > now:
            raise _entering()
        room = await self._read(hold.code)
        if room is None or not is_held(room, account_id, now):
            return hold
        if not leave:
            raise _elsewhere(room)
        if room.contract is None and not await self._rooms.close(room.code, account_id, request_id, now):
            after = await self._read(hold.code)
            if after is not None and is_held(after, account_id, now):
                raise _elsewhere(after)
        await self._index.drop_rooms([room.code])
        await self._index.release_hold(account_id, hold)
        return None

    async def begin(self, account_id: str, code: str, expected: Hold | None) -> Hold:
        """Note that an account is about to enter a room.

        Raises:
            Busy: Another call of the account was faster.
        """
        hold = Hold(code, self._now() + ENTERING_MS)
        if not await self._index.claim_hold(account_id, hold, expected):
            raise _entering()
        return hold

    async def settle(self, account_id: str, code: str, expected: Hold | None) -> bool:
        """Note that an account is in a room; False when its entry names another by now."""
        return await self._index.claim_hold(account_id, Hold(code), expected)

    async def release(self, account_id: str, code: str) -> None:
        """Note that an account is not in this room any more."""
        hold = await self._index.hold(account_id)
        if hold is not None and hold.code == code:
            await self._index.release_hold(account_id, hold)

    async def _read(self, code: str) -> Room | None:
        return next(iter(await self._rooms.read([code])), None)

    def _now(self) -> int:
        return int(self._clock.now() * 1000)


def _elsewhere(room: Room) -> AlreadyInRoom:
    if room.contract is None:
        return AlreadyInRoom("You host another open room; leave it first.", metadata={"code": room.code})
    return AlreadyInRoom(
        "You have a match to play; leave its room first if it is over.",
        metadata={"code": room.code, "match_id": room.contract.match_id},
    )


def _entering() -> Busy:
    return Busy("Another call of this account is entering a room; try again.", retry_after_s=1.0)
