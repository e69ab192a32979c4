"""What the use cases need from outside; `store`, `passwords` and kit provide it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Protocol

from services.kit.errors import ServiceError
from services.lobby.domain.rooms import Contract, Player, Room


class Rooms(Protocol):
    """The rooms themselves, the only truth. Every method is one atomic step on one room."""

    async def open(self, room: Room) -> bool:
        """Claim the code and write the room; False when the code is in use or was until lately."""
        ...

    async def visit(self, code: str, account_id: str, now: int) -> Room | None:
        """Read a room; when the account is the host of this open room, keep it alive."""
        ...

    async def take_seat(self, room: Room, guest: Player, contract: Contract, now: int) -> Room | None:
        """Take the second seat and fix the contract, if the room is still the same and open. Gives the room after."""
        ...

    async def keep_signature(self, room: Room, jws: str) -> str | None:
        """Keep the first signature of a contract; gives the kept one, or None when the room is gone."""
        ...

    async def close(self, code: str, account_id: str, request_id: str, now: int) -> bool:
        """Close an open room of this host; True also for a repetition of the request that closed it."""
        ...

    async def take_try(self, code: str, account_id: str, now: int) -> float:
        """Count one password of an account for a room; gives the seconds to wait when there were too many, or 0."""
        ...

    async def read(self, codes: Sequence[str]) -> list[Room]:
        """Read rooms in this order, leaving out what is gone."""
        ...

    def scan(self) -> AsyncIterator[list[Room]]:
        """Give every room there is, in batches, for the sweeper."""
        ...


class Index(Protocol):
    """Where to find rooms. All of it is derived from the rooms, expires, and is repaired by the sweeper."""

    async def hosted(self, account_id: str) -> str:
        """Give the code of the room an account opened last, or an empty string."""
        ...

    async def claim_host(self, account_id: str, code: str, expected: str) -> bool:
        """Point an account to its room if it still points to `expected` (or to `code` already), and renew that."""
        ...

    async def add_room(self, room: Room) -> None:
        """Put a room into the list."""
        ...

    async def drop_rooms(self, codes: Iterable[str]) -> None:
        """Take rooms out of the list."""
        ...

    async def newest(self, start: int, count: int) -> list[str]:
        """Give codes of the list, newest first."""
        ...

    async def add_match(self, room: Room) -> None:
        """Note a ready room for both of its players."""
        ...

    async def matches(self, account_id: str, now: int) -> list[str]:
        """Give the codes of an account's ready rooms, newest first."""
        ...

    async def lease_sweep(self, period_s: float) -> bool:
        """Tell whether this process does the sweep of this period."""
        ...


class Passwords(Protocol):
    """Slow hashing with bounded work.

    Both methods raise `Busy` instead of queueing without end.
    """

    async def hash(self, password: str) -> str:
        """Hash a new password with a fresh salt."""
        ...

    async def verify(self, password: str, password_hash: str) -> bool:
        """Tell whether this is the password."""
        ...


class Limits(Protocol):
    """Sliding windows over all processes."""

    async def take(
        self, key: str, limit: int, window_s: float, refusal: Callable[[float], ServiceError] | type[ServiceError]
    ) -> None:
        """Count one hit, or raise `refusal`."""
        ...

    async def check(
        self, key: str, limit: int, window_s: float, refusal: Callable[[float], ServiceError] | type[ServiceError]
    ) -> None:
        """Raise `refusal` when the window is full, without counting."""
        ...


class Signer(Protocol):
    """Lobby's signing keys."""

    def sign(self, payload: bytes, typ: str) -> str:
        """Give the compact JWS over exactly these bytes."""
        ...
