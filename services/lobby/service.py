"""What players do in the lobby: open, look at, join and leave rooms, and take their contract away."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from services.kit.clock import Clock
from services.lobby.conduct import Conducts
from services.lobby.domain.choices import Choice, check_preset, choose_rules
from services.lobby.domain.codes import new_code, read_code
from services.lobby.domain.contracts import uuid7
from services.lobby.domain.errors import (
    ApprovalNeeded,
    Busy,
    FieldInvalid,
    OwnRoom,
    RequestIdReused,
    RoomFull,
    RoomNotFound,
    SameDeviceKey,
)
from services.lobby.domain.filters import Filter
from services.lobby.domain.invites import SECRET_BYTES, new_secret, read_secret
from services.lobby.domain.rooms import (
    Hold,
    Player,
    Room,
    Standing,
    Visibility,
    check_request_id,
    read_password,
    request_digest,
    standing,
)
from services.lobby.doorkeeper import Doorkeeper
from services.lobby.holds import Holds
from services.lobby.ports import Blocks, Index, Passwords, Rooms
from services.lobby.seating import Seating

ROOM_LIFE_MS = 30_000
"""An open room lives so long without a sign of its host."""
CREATES_A_MINUTE, CREATES_OF_ADDRESS = 30, 300
JOINS_A_MINUTE, JOINS_OF_ADDRESS = 60, 300
LISTS_A_MINUTE, LISTS_OF_ADDRESS = 120, 600
DEFAULT_PAGE, MAX_PAGE = 50, 200
_LIST_BATCHES = 5
_CODE_DRAWS = 8


@dataclass(frozen=True, slots=True)
class Wish:
    """What a host asks for."""

    visibility: Visibility
    password: str
    choice: Choice
    request_id: str
    needs_approval: bool = False
    with_invite: bool = False
    leave_other: bool = False


class Lobby:
    """The use cases. Holds no state of its own, so any process can answer any call."""

    def __init__(
        self,
        *,
        rooms: Rooms,
        index: Index,
        blocks: Blocks,
        passwords: Passwords,
        doorkeeper: Doorkeeper,
        holds: Holds,
        seating: Seating,
        conducts: Conducts,
        clock: Clock,
        count: Callable[[str], None],
        choose: Callable[[str], str] = secrets.choice,
    ) -> None:
        self._rooms = rooms
        self._index = index
        self._blocks = blocks
        self._passwords = passwords
        self._doorkeeper = doorkeeper
        self._holds = holds
        self._seating = seating
        self._conducts = conducts
        self._clock = clock
        self._count = count
        self._choose = choose

    async def create_room(self, host: Player, wish: Wish, address: str) -> Room:
        """Open a room. The same request_id answers the same room again.

        The room is written first and the account's entry after it: of two calls at once only one can move the entry,
        and the other closes the room it just made, whose code nobody has seen.
        """
        request_id = check_request_id(wish.request_id)
        rules = choose_rules(wish.choice)
        password = read_password(wish.password)
        digest = request_digest(
            wish.visibility, rules, needs_approval=wish.needs_approval, with_invite=wish.with_invite
        )
        account_id = host.account_id
        await self._doorkeeper.take("create", CREATES_A_MINUTE, account_id, address, CREATES_OF_ADDRESS)
        if same := await self._repeated(account_id, request_id, digest, password):
            return same
        conducts = self._conducts
        conduct = await (conducts.check if rules.is_ranked else conducts.glimpse)(account_id)
        previous = await self._holds.free(account_id, leave=wish.leave_other, request_id=request_id)
        now = self._now()
        room = Room(
            room_id=uuid7(now, os.urandom(10)),
            code="",
            visibility=wish.visibility,
            password_hash=await self._passwords.hash(password) if password else "",
            rules=rules,
            host=host,
            create_time=now,
            alive_until=now + ROOM_LIFE_MS,
            request_id=request_id,
            digest=digest,
            needs_approval=wish.needs_approval,
            invite_secret=new_secret(os.urandom(SECRET_BYTES)) if wish.with_invite else "",
            barred=frozenset(blocked for blocked, _ in await self._blocks.read(account_id)),
            host_completion=conduct.completion_percent,
        )
        room = await self._claim_code(room)
        if not await self._holds.settle(account_id, room.code, previous):
            return await self._give_up(room, password)
        if room.is_listed(now):
            await self._index.add_room(room)
        self._count("opened")
        return room

    async def get_room(self, account_id: str, address: str, code: str, secret: str = "") -> tuple[Room, str]:
        """Show a room, and to its members the signed contract; the host's call keeps an open room alive."""
        room, stands, _ = await self._doorkeeper.look(account_id, address, read_code(code), read_secret(secret))
        if stands is Standing.LATE:
            raise RoomNotFound("No open room has this code; it may have expired or be full.")
        if stands is Standing.NEWCOMER:
            return room, ""
        if room.contract is not None:
            return room, await self._seating.hand_over(room)
        await self._holds.settle(account_id, room.code, Hold(room.code))
        return room, ""

    async def join_room(
        self,
        guest: Player,
        address: str,
        code: str,
        password: str,
        request_id: str,
        *,
        secret: str = "",
        leave_other: bool = False,
    ) -> tuple[Room, str]:
        """Take the second seat; gives the contract. Repeating the call gives the same contract."""
        check_request_id(request_id)
        password, secret, code = read_password(password), read_secret(secret), read_code(code)
        await self._doorkeeper.take("join", JOINS_A_MINUTE, guest.account_id, address, JOINS_OF_ADDRESS)
        room, stands, is_invited = await self._doorkeeper.look(guest.account_id, address, code, secret)
        if stands is Standing.NEWCOMER:
            if room.host.device_key == guest.device_key:
                raise SameDeviceKey("Host and guest need different devices.")
            if room.needs_approval:
                raise ApprovalNeeded("The host lets guests in one by one; knock by watching the room.")
            if room.rules.is_ranked:
                await self._conducts.check(guest.account_id)
            if not is_invited:
                await self._doorkeeper.check_password(room, guest.account_id, address, password)
            room, stands = await self._seating.take(room, guest, leave=leave_other, request_id=request_id)
        if stands is Standing.HOST:
            raise OwnRoom("This is your own room; wait for somebody else to join.")
        if stands is not Standing.GUEST:
            raise RoomFull("Somebody else took the seat; choose another room.")
        return room, await self._seating.hand_over(room)

    async def leave_room(self, account_id: str, code: str, request_id: str) -> bool:
        """Close the caller's open room; True also when the same request did it before. Else only let the caller go."""
        check_request_id(request_id)
        code = read_code(code)
        is_closed = await self._rooms.close(code, account_id, request_id, self._now())
        if is_closed:
            await self._index.drop_rooms([code])
            self._count("closed")
        else:
            await self._holds.release(account_id, code)
        return is_closed

    async def list_rooms(self, account_id: str, address: str, page_size: int, preset: str) -> list[Room]:
        """Give open public rooms, newest first; filters reach over the newest thousand."""
        if page_size > MAX_PAGE:
            raise FieldInvalid("page_size", f"0 to {MAX_PAGE}")
        if preset:
            check_preset(preset)
        await self._doorkeeper.take("list", LISTS_A_MINUTE, account_id, address, LISTS_OF_ADDRESS)
        found: list[Room] = []
        wanted, asked = page_size or DEFAULT_PAGE, Filter(preset)
        for batch in range(_LIST_BATCHES):
            codes = await self._index.newest(batch * MAX_PAGE, MAX_PAGE)
            now = self._now()
            rooms = await self._rooms.read(codes)
            found += [r for r in rooms if r.is_listed(now) and asked.passes(r) and account_id not in r.barred]
            if len(found) >= wanted or len(codes) < MAX_PAGE:
                break
        return found[:wanted]

    async def list_my_matches(self, account_id: str) -> list[tuple[Room, str]]:
        """Give the caller's rooms with a contract that has not expired, newest first."""
        now = self._now()
        rooms = await self._rooms.read(await self._index.matches(account_id, now))
        mine = (Standing.HOST, Standing.GUEST)
        return [
            (room, await self._seating.signed(room))
            for room in rooms
            if room.contract is not None and standing(room, account_id, now) in mine
        ]

    async def _repeated(self, account_id: str, request_id: str, digest: str, password: str) -> Room | None:
        """Give the room that the same request opened before.

        Raises:
            RequestIdReused: It asked for something else then.
            RoomNotFound: The room is closed.
        """
        room = await self._holds.room_of(account_id)
        if room is None or room.host.account_id != account_id or room.request_id != request_id:
            return None
        now = self._now()
        is_same = room.digest == digest and room.has_password == bool(password)
        if not is_same or (password and not await self._passwords.verify(password, room.password_hash)):
            raise RequestIdReused("The request_id was used for another room; take a new one.", field="request_id")
        if standing(room, account_id, now) is Standing.STRANGER:
            raise RoomNotFound("The room of this request is closed; take a new request_id for a new room.")
        if room.is_listed(now):
            await self._index.add_room(room)
        return room

    async def _give_up(self, room: Room, password: str) -> Room:
        """Close a room whose host entered another in the meantime, and say so; the same request may have opened it."""
        account_id = room.host.account_id
        await self._rooms.close(room.code, account_id, room.request_id, self._now())
        if same := await self._repeated(account_id, room.request_id, room.digest, password):
            return same
        await self._holds.free(account_id)
        raise Busy("Another call of this account is opening a room; try again.", retry_after_s=1.0)

    async def _claim_code(self, room: Room) -> Room:
        """Write the room under a code nobody has."""
        for _ in range(_CODE_DRAWS):
            coded = replace(room, code=new_code(self._choose))
            if await self._rooms.open(coded):
                return coded
        raise Busy("No code is free just now; try again.", retry_after_s=1.0)

    def _now(self) -> int:
        return int(self._clock.now() * 1000)
