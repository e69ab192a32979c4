"""What players do in the lobby: open, look at, join and leave rooms, and take their contract away."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from services.kit.clock import Clock
from services.kit.limits import address_group
from services.lobby.domain.choices import Choice, check_preset, choose_rules
from services.lobby.domain.codes import new_code, read_code
from services.lobby.domain.contracts import CONTRACT_TYPE, draw_contract, uuid7
from services.lobby.domain.errors import (
    AlreadyInRoom,
    Busy,
    FieldInvalid,
    OwnRoom,
    PasswordInvalid,
    PasswordTries,
    PasswordWrong,
    RateLimited,
    RequestIdReused,
    RoomFull,
    RoomNotFound,
    SameDeviceKey,
)
from services.lobby.domain.rooms import (
    Player,
    Room,
    Standing,
    Visibility,
    check_request_id,
    read_password,
    request_digest,
    standing,
)
from services.lobby.ports import Index, Limits, Passwords, Rooms, Signer

ROOM_LIFE_MS = 120_000
"""An open room lives so long without a call of its host."""
MISSES = ((5, 60.0), (30, 3600.0))
"""Codes one may guess wrong: (count, seconds), per account and per address."""
CREATES_A_MINUTE = 30
LISTS_A_MINUTE = 120
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


class Lobby:
    """The use cases. Holds no state of its own, so any process can answer any call."""

    def __init__(
        self,
        *,
        issuer: str,
        rooms: Rooms,
        index: Index,
        passwords: Passwords,
        limits: Limits,
        signer: Signer,
        clock: Clock,
        count: Callable[[str], None],
        choose: Callable[[str], str] = secrets.choice,
    ) -> None:
        self._issuer = issuer
        self._rooms = rooms
        self._index = index
        self._passwords = passwords
        self._limits = limits
        self._signer = signer
        self._clock = clock
        self._count = count
        self._choose = choose

    async def create_room(self, host: Player, wish: Wish) -> Room:
        """Open a room. The same request_id answers the same room again.

        The room is written first and the account's index entry after it: of two calls at once only one can move the
        entry, and the other closes the room it just made, whose code nobody has seen.
        """
        request_id = check_request_id(wish.request_id)
        rules = choose_rules(wish.choice)
        password = read_password(wish.password)
        digest = request_digest(wish.visibility, rules)
        await self._limits.take(f"create:{host.account_id}", CREATES_A_MINUTE, 60.0, RateLimited)
        previous, earlier = await self._hosted(host.account_id)
        if earlier is not None and (same := await self._repeated(earlier, request_id, digest, password)):
            return same
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
        )
        room = await self._claim_code(room)
        if not await self._index.claim_host(host.account_id, room.code, expected=previous):
            await self._rooms.close(room.code, host.account_id, request_id, now)
            _, earlier = await self._hosted(host.account_id)
            if earlier is not None and (same := await self._repeated(earlier, request_id, digest, password)):
                return same
            raise Busy("Another call of this account is opening a room; try again.", retry_after_s=1.0)
        if room.is_listed(now):
            await self._index.add_room(room)
        self._count("opened")
        return room

    async def get_room(self, account_id: str, address: str, code: str) -> tuple[Room, str]:
        """Show a room, and to its members the signed contract; the host's call keeps an open room alive."""
        room, stands = await self._look(account_id, address, read_code(code))
        if stands is Standing.LATE:
            raise _not_found()
        if stands is Standing.NEWCOMER:
            return room, ""
        if room.contract is not None:
            return room, await self._hand_over(room)
        await self._index.claim_host(account_id, room.code, expected=room.code)
        return room, ""

    async def join_room(
        self, guest: Player, address: str, code: str, password: str, request_id: str
    ) -> tuple[Room, str]:
        """Take the second seat; gives the contract. Repeating the call gives the same contract."""
        check_request_id(request_id)
        password = read_password(password)
        room, stands = await self._look(guest.account_id, address, read_code(code))
        if stands is Standing.NEWCOMER:
            if room.host.device_key == guest.device_key:
                raise SameDeviceKey("Host and guest need different devices.")
            if room.has_password:
                await self._check_password(room, guest.account_id, password)
            room, stands = await self._take_seat(room, guest)
        if stands is Standing.HOST:
            raise OwnRoom("This is your own room; wait for somebody else to join.")
        if stands is Standing.LATE:
            raise RoomFull("Somebody else took the seat; choose another room.")
        return room, await self._hand_over(room)

    async def leave_room(self, account_id: str, code: str, request_id: str) -> bool:
        """Close the caller's open room; True also when the same request did it before. Else nothing happens."""
        check_request_id(request_id)
        code = read_code(code)
        if not await self._rooms.close(code, account_id, request_id, self._now()):
            return False
        await self._index.drop_rooms([code])
        self._count("closed")
        return True

    async def list_rooms(self, account_id: str, page_size: int, preset: str) -> list[Room]:
        """Give open public rooms, newest first; filters reach over the newest thousand."""
        if page_size > MAX_PAGE:
            raise FieldInvalid("page_size", f"0 to {MAX_PAGE}")
        if preset:
            check_preset(preset)
        await self._limits.take(f"list:{account_id}", LISTS_A_MINUTE, 60.0, RateLimited)
        found: list[Room] = []
        wanted = page_size or DEFAULT_PAGE
        for batch in range(_LIST_BATCHES):
            codes = await self._index.newest(batch * MAX_PAGE, MAX_PAGE)
            now = self._now()
            rooms = await self._rooms.read(codes)
            found += [room for room in rooms if room.is_listed(now) and preset in ("", room.rules.preset)]
            if len(found) >= wanted or len(codes) < MAX_PAGE:
                break
        return found[:wanted]

    async def list_my_matches(self, account_id: str) -> list[tuple[Room, str]]:
        """Give the caller's rooms with a contract that has not expired, newest first."""
        now = self._now()
        rooms = await self._rooms.read(await self._index.matches(account_id, now))
        mine = (Standing.HOST, Standing.GUEST)
        return [
            (room, await self._signed(room))
            for room in rooms
            if room.contract is not None and standing(room, account_id, now) in mine
        ]

    async def _look(self, account_id: str, address: str, code: str) -> tuple[Room, Standing]:
        """Find a room by its code, unless the caller guesses too much.

        Members pass always, or a neighbour's guessing would end their room. For all others a hit is refused like a
        miss once the limit is reached, so that guessing on is useless.
        """
        now = self._now()
        room = await self._rooms.visit(code, account_id, now)
        stands = standing(room, account_id, now)
        if stands in (Standing.HOST, Standing.GUEST):
            assert room is not None
            return room, stands
        is_miss = room is None or stands is Standing.STRANGER
        ask = self._limits.take if is_miss else self._limits.check
        for subject in (f"miss:{account_id}", f"miss:{address_group(address)}"):
            for limit, window_s in MISSES:
                await ask(f"{subject}:{window_s:.0f}", limit, window_s, RateLimited)
        if room is None or is_miss:
            raise _not_found()
        return room, stands

    async def _take_seat(self, room: Room, guest: Player) -> tuple[Room, Standing]:
        now = self._now()
        contract = draw_contract(self._issuer, room.rules, room.host, guest, now=now, random=os.urandom(10))
        after = await self._rooms.take_seat(room, guest, contract, now)
        stands = standing(after, guest.account_id, now)
        if after is None or after.contract is None or stands is Standing.STRANGER:
            raise _not_found()
        if after.contract == contract:
            self._count("filled")
            await self._index.drop_rooms([room.code])
        return after, stands

    async def _check_password(self, room: Room, account_id: str, password: str) -> None:
        if not password:
            raise PasswordInvalid("the room's password")
        wait_s = await self._rooms.take_try(room.code, account_id, self._now())
        if wait_s:
            raise PasswordTries("Too many wrong passwords for this room; wait.", retry_after_s=wait_s)
        if not await self._passwords.verify(password, room.password_hash):
            raise PasswordWrong("This is not the room's password.", field="password")

    async def _hand_over(self, room: Room) -> str:
        """Give the signed contract, after noting the match for both players (again, should a crash have lost that)."""
        await self._index.add_match(room)
        return await self._signed(room)

    async def _signed(self, room: Room) -> str:
        """Sign the contract unless somebody did before; every reader gets the one kept signature."""
        assert room.contract is not None
        if room.contract.jws is not None:
            return room.contract.jws
        kept = await self._rooms.keep_signature(room, self._signer.sign(room.contract.payload, CONTRACT_TYPE))
        if kept is None:
            raise _not_found()
        return kept

    async def _hosted(self, account_id: str) -> tuple[str, Room | None]:
        """Give the code an account's index entry holds, and the room if it is really this account's."""
        code = await self._index.hosted(account_id)
        rooms = await self._rooms.read([code] if code else [])
        return code, next((room for room in rooms if room.host.account_id == account_id), None)

    async def _repeated(self, room: Room, request_id: str, digest: str, password: str) -> Room | None:
        """Decide what an account's last room means for a new request: the same room again, a refusal, or nothing."""
        now = self._now()
        if room.request_id != request_id:
            if room.is_open(now):
                raise AlreadyInRoom("You host another open room; leave it first.", metadata={"code": room.code})
            return None
        is_same = room.digest == digest and room.has_password == bool(password)
        if not is_same or (password and not await self._passwords.verify(password, room.password_hash)):
            raise RequestIdReused("The request_id was used for another room; take a new one.", field="request_id")
        if standing(room, room.host.account_id, now) is Standing.STRANGER:
            raise RoomNotFound("The room of this request is closed; take a new request_id for a new room.")
        if room.is_listed(now):
            await self._index.add_room(room)
        return room

    async def _claim_code(self, room: Room) -> Room:
        """Write the room under a code nobody has."""
        for _ in range(_CODE_DRAWS):
            coded = replace(room, code=new_code(self._choose))
            if await self._rooms.open(coded):
                return coded
        raise Busy("No code is free just now; try again.", retry_after_s=1.0)

    def _now(self) -> int:
        return int(self._clock.now() * 1000)


def _not_found() -> RoomNotFound:
    return RoomNotFound("No open room has this code; it may have expired or be full.")
