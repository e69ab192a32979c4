"""The second seat: who takes it, and the contract that comes of it."""

from __future__ import annotations

import os
from collections.abc import Callable

from services.kit.clock import Clock
from services.lobby.domain.contracts import CONTRACT_TYPE, draw_contract
from services.lobby.domain.rooms import Player, Room, Standing, standing
from services.lobby.doorkeeper import not_found
from services.lobby.holds import Holds
from services.lobby.ports import Index, Rooms, Signer


class Seating:
    """Gives the second seat to one guest, and the one signed contract to both."""

    def __init__(
        self,
        *,
        issuer: str,
        rooms: Rooms,
        index: Index,
        holds: Holds,
        signer: Signer,
        clock: Clock,
        count: Callable[[str], None],
    ) -> None:
        self._issuer = issuer
        self._rooms = rooms
        self._index = index
        self._holds = holds
        self._signer = signer
        self._clock = clock
        self._count = count

    async def take(
        self, room: Room, guest: Player, *, leave: bool, request_id: str, generation: str = ""
    ) -> tuple[Room, Standing]:
        """Seat a guest if the room is still open to them; gives the room after and what the guest is to it.

        A call that dies in the middle leaves the guest's entry as it is: it runs out by itself, or the seat was taken.
        """
        account_id = guest.account_id
        expected = await self._holds.free(account_id, entering=room.code, leave=leave, request_id=request_id)
        hold = await self._holds.begin(account_id, room.code, expected)
        now = int(self._clock.now() * 1000)
        contract = draw_contract(self._issuer, room.rules, room.host, guest, now=now, random=os.urandom(10))
        after = await self._rooms.take_seat(room, guest, contract, now, generation)
        stands = standing(after, account_id, now)
        if stands is Standing.GUEST:
            await self._holds.settle(account_id, room.code, hold)
        else:
            await self._index.release_hold(account_id, hold)
        if after is None or stands is Standing.STRANGER:
            raise not_found()
        if after.contract == contract:
            self._count("filled")
            await self._index.drop_rooms([room.code])
        return after, stands

    async def hand_over(self, room: Room) -> str:
        """Give the signed contract, after noting the match for both players (again, should a crash have lost that)."""
        await self._index.add_match(room)
        return await self.signed(room)

    async def signed(self, room: Room) -> str:
        """Sign the contract unless somebody did before; every reader gets the one kept signature."""
        assert room.contract is not None
        if room.contract.jws is not None:
            return room.contract.jws
        kept = await self._rooms.keep_signature(room, self._signer.sign(room.contract.payload, CONTRACT_TYPE))
        if kept is None:
            raise not_found()
        return kept
