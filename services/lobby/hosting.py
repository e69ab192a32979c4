"""Whom a host lets in and keeps out."""

from __future__ import annotations

from collections.abc import Callable

from services.kit.clock import Clock
from services.lobby.domain.codes import read_code
from services.lobby.domain.errors import (
    AlreadyInRoom,
    Busy,
    FieldInvalid,
    GuestNotFound,
    RateLimited,
    RoomFull,
    RoomNotFound,
    SameDeviceKey,
    TooManyBlocks,
)
from services.lobby.domain.rooms import (
    MAX_BARRED,
    MAX_BLOCKS,
    Knock,
    Room,
    Standing,
    check_account_id,
    check_request_id,
    standing,
)
from services.lobby.holds import Holds
from services.lobby.ports import Blocks, Limits, Presence, Rooms
from services.lobby.seating import Seating

BLOCKS_A_MINUTE = 60


class Hosting:
    """The use cases of hosts and of those who do not want to meet somebody again."""

    def __init__(
        self,
        *,
        rooms: Rooms,
        presence: Presence,
        blocks: Blocks,
        limits: Limits,
        holds: Holds,
        seating: Seating,
        clock: Clock,
        count: Callable[[str], None],
    ) -> None:
        self._rooms = rooms
        self._presence = presence
        self._blocks = blocks
        self._limits = limits
        self._holds = holds
        self._seating = seating
        self._clock = clock
        self._count = count

    async def accept_guest(self, host_id: str, code: str, account_id: str, request_id: str) -> tuple[Room, str]:
        """Seat somebody who knocks; gives the contract. Repeating the call gives the same contract."""
        check_request_id(request_id)
        check_account_id(account_id)
        room = await self._own(host_id, read_code(code))
        if room.contract is None:
            room = await self._seat(room, await self._knock(room, account_id), request_id)
        if room.guest is None or room.guest.account_id != account_id:
            raise RoomFull("Somebody else has the seat.")
        return room, await self._seating.hand_over(room)

    async def kick_guest(self, host_id: str, code: str, account_id: str, request_id: str) -> None:
        """Keep an account out of the host's open room; it looks unknown to it from now on."""
        check_request_id(request_id)
        check_account_id(account_id)
        code = read_code(code)
        if account_id == host_id:
            raise FieldInvalid("account_id", "another account than your own")
        is_barred = await self._rooms.bar(code, host_id, account_id, self._now())
        if is_barred is None:
            raise _no_own_room()
        if not is_barred:
            raise _too_many(MAX_BARRED)
        self._count("kicked")

    async def block_account(self, account_id: str, blocked_id: str, request_id: str) -> None:
        """Hide every room of an account from another, the open one included."""
        check_request_id(request_id)
        check_account_id(blocked_id)
        if account_id == blocked_id:
            raise FieldInvalid("account_id", "another account than your own")
        await self._take(account_id)
        if not await self._blocks.add(account_id, blocked_id, self._now()):
            raise _too_many(MAX_BLOCKS)
        room = await self._holds.room_of(account_id)
        if room is not None and room.host.account_id == account_id:
            await self._rooms.bar(room.code, account_id, blocked_id, self._now())

    async def unblock_account(self, account_id: str, blocked_id: str, request_id: str) -> None:
        """Take a block back; counts from the next room on."""
        check_request_id(request_id)
        check_account_id(blocked_id)
        await self._take(account_id)
        await self._blocks.remove(account_id, blocked_id)

    async def list_blocks(self, account_id: str) -> list[tuple[str, int]]:
        """Give whom an account blocked and when, newest first."""
        return await self._blocks.read(account_id)

    async def _own(self, host_id: str, code: str) -> Room:
        room = next(iter(await self._rooms.read([code])), None)
        if room is None or standing(room, host_id, self._now()) is not Standing.HOST:
            raise _no_own_room()
        return room

    async def _knock(self, room: Room, account_id: str) -> Knock:
        (knocks,) = await self._presence.knocks([room.code], self._now())
        for knock in knocks:
            if knock.player.account_id == account_id:
                return knock
        raise _nobody()

    async def _seat(self, room: Room, knock: Knock, request_id: str) -> Room:
        if knock.player.device_key == room.host.device_key:
            raise SameDeviceKey("Host and guest need different devices.")
        try:
            after, stands = await self._seating.take(
                room, knock.player, leave=False, request_id=request_id, generation=knock.generation
            )
        except (AlreadyInRoom, Busy):
            raise GuestNotFound("That player is entering another room; accept somebody else.") from None
        if stands is Standing.NEWCOMER:
            raise _nobody()
        self._count("accepted")
        return after

    async def _take(self, account_id: str) -> None:
        await self._limits.take(f"block:{account_id}", BLOCKS_A_MINUTE, 60.0, RateLimited)

    def _now(self) -> int:
        return int(self._clock.now() * 1000)


def _no_own_room() -> RoomNotFound:
    return RoomNotFound("You host no open room with this code.")


def _nobody() -> GuestNotFound:
    return GuestNotFound("That player does not knock any more.")


def _too_many(limit: int) -> TooManyBlocks:
    return TooManyBlocks(f"You keep out {limit} accounts; unblock one first.", metadata={"limit": str(limit)})
