"""Who may know of a room and who may try its password: guesses are counted before anything is answered."""

from __future__ import annotations

from services.kit.clock import Clock
from services.kit.limits import address_group
from services.lobby.domain.errors import PasswordInvalid, PasswordTries, PasswordWrong, RateLimited, RoomNotFound
from services.lobby.domain.invites import is_invited
from services.lobby.domain.rooms import Room, Standing, standing
from services.lobby.ports import Limits, Passwords, Rooms

MISSES = ((5, 60.0), (30, 3600.0))
"""Codes one may guess wrong: (count, seconds), per account and per address."""
PASSWORDS_A_MINUTE = 30
"""Of one address, so that many accounts behind it cannot fill the queue of those that are checked."""


class Doorkeeper:
    """Looks rooms up for people who may be strangers to them."""

    def __init__(self, rooms: Rooms, passwords: Passwords, limits: Limits, clock: Clock) -> None:
        self._rooms = rooms
        self._passwords = passwords
        self._limits = limits
        self._clock = clock

    async def take(self, what: str, limit: int, account_id: str, address: str, limit_of_address: int) -> None:
        """Count a call of an account and of its address.

        Raises:
            RateLimited: There were too many in the last minute.
        """
        await self._limits.take(f"{what}:{account_id}", limit, 60.0, RateLimited)
        await self._limits.take(f"{what}:{address_group(address)}", limit_of_address, 60.0, RateLimited)

    async def look(self, account_id: str, address: str, code: str, secret: str = "") -> tuple[Room, Standing, bool]:
        """Find a room by its code, unless the caller guesses too much; says also whether the secret is the room's.

        Members pass always, or a neighbour's guessing would end their room, and so do those with a right invitation.
        For all others a hit is refused like a miss once the limit is reached, so that guessing on is useless.
        """
        now = int(self._clock.now() * 1000)
        room = await self._rooms.visit(code, account_id, now)
        stands, invited = standing(room, account_id, now), is_invited(room, secret)
        is_known = stands in (Standing.HOST, Standing.GUEST) or (invited and stands is not Standing.STRANGER)
        if room is not None and is_known:
            return room, stands, invited
        is_miss = stands is Standing.STRANGER or bool(secret)
        ask = self._limits.take if is_miss else self._limits.check
        for subject in (f"miss:{account_id}", f"miss:{address_group(address)}"):
            for limit, window_s in MISSES:
                await ask(f"{subject}:{window_s:.0f}", limit, window_s, RateLimited)
        if room is None or is_miss:
            raise not_found()
        return room, stands, False

    async def check_password(self, room: Room, account_id: str, address: str, password: str) -> None:
        """Check the password of a room that has one; every limit counts before anything is hashed."""
        if not room.has_password:
            return
        if not password:
            raise PasswordInvalid("the room's password")
        await self._limits.take(f"password:{address_group(address)}", PASSWORDS_A_MINUTE, 60.0, RateLimited)
        wait_s = await self._rooms.take_try(room.code, account_id, int(self._clock.now() * 1000))
        if wait_s:
            raise PasswordTries("Too many wrong passwords for this room; wait.", retry_after_s=wait_s)
        if not await self._passwords.verify(password, room.password_hash):
            raise PasswordWrong("This is not the room's password.", field="password")


def not_found() -> RoomNotFound:
    """Make the one answer to every code that leads nowhere for the caller."""
    return RoomNotFound("No open room has this code; it may have expired or be full.")
