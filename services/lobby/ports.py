"""What the use cases need from outside; `store`, `passwords` and kit provide it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from services.kit.errors import ServiceError
from services.lobby.domain.conduct import Mark, Outcome
from services.lobby.domain.rooms import Contract, Hold, Knock, Player, Room


@dataclass(frozen=True, slots=True)
class Attendance:
    """What an open stream stands for: its host's presence in a room, or somebody who knocks at it."""

    code: str
    account_id: str
    generation: str
    create_time: int
    knocker: Player | None = None


class Attended(IntEnum):
    """Says what became of an attendance."""

    CROWDED = -1
    GONE = 0
    HERE = 1
    DEAD = 2
    """Of the host only: the room was dead already; `revive` it when nothing speaks against that."""


class Rooms(Protocol):
    """The rooms themselves, the only truth. Every method is one atomic step on one room."""

    async def open(self, room: Room) -> bool:
        """Claim the code and write the room; False when the code is in use or was until lately."""
        ...

    async def visit(self, code: str, account_id: str, now: int) -> Room | None:
        """Read a room; when the account is the host of this open room, keep it alive."""
        ...

    async def take_seat(
        self, room: Room, guest: Player, contract: Contract, now: int, generation: str = ""
    ) -> Room | None:
        """Take the second seat and fix the contract, if the room is still the same and open. Gives the room after.

        Where the host approves, only for the guest whose knock has this generation.
        """
        ...

    async def keep_signature(self, room: Room, jws: str) -> str | None:
        """Keep the first signature of a contract; gives the kept one, or None when the room is gone."""
        ...

    async def close(self, code: str, account_id: str, request_id: str, now: int) -> bool:
        """Close an open room of this host; True also for a repetition of the request that closed it."""
        ...

    async def bar(self, code: str, host_id: str, account_id: str, now: int) -> bool | None:
        """Keep an account out of a host's open room; None when this is no such room, False when it is full of those."""
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

    async def hold(self, account_id: str) -> Hold | None:
        """Give the room an account entered last."""
        ...

    async def claim_hold(self, account_id: str, hold: Hold, expected: Hold | None) -> bool:
        """Point an account to a room if it still points to `expected` (or to that room already), and renew that."""
        ...

    async def release_hold(self, account_id: str, hold: Hold) -> None:
        """Let an account go if it still points there."""
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


class Presence(Protocol):
    """Who is there; lives half a minute after the last renewal, whatever crashes."""

    def new_generation(self) -> str:
        """Name a stream."""
        ...

    async def attend(self, attendance: Attendance, now: int, mode: str) -> Attended:
        """Say that a stream is there; `mode` is open, renew or revive."""
        ...

    async def renew(self, attendances: Sequence[Attendance], now: int) -> list[Attended]:
        """Say that all these streams are still there; gives what became of each."""
        ...

    async def end(self, attendance: Attendance) -> None:
        """Say that a stream is over; one that a newer stream took over from changes nothing."""
        ...

    async def knocks(self, codes: Sequence[str], now: int) -> list[tuple[Knock, ...]]:
        """Give those who knock at each room, in the order of their coming."""
        ...


class Blocks(Protocol):
    """Whom accounts do not want to meet."""

    async def add(self, account_id: str, blocked_id: str, now: int) -> bool:
        """Block an account; False when there are as many blocks as one may have."""
        ...

    async def remove(self, account_id: str, blocked_id: str) -> None:
        """Take a block back."""
        ...

    async def read(self, account_id: str) -> list[tuple[str, int]]:
        """Give whom an account blocked and when, newest first."""
        ...


class Marks(Protocol):
    """What matches say about their players; the newest of each account."""

    async def add(self, marks: Sequence[Mark]) -> set[str]:
        """Write marks that are not yet known; gives the matches of those that are new."""
        ...

    async def read(self, account_id: str) -> list[Mark]:
        """Give what counts of an account."""
        ...


OutcomeEntry = tuple[bytes, Outcome | None]
"""The id of an entry in the relay's stream, and what it says; None for one that says nothing."""


class Outcomes(Protocol):
    """The relay's word on how matches ended, at least once."""

    async def read(self) -> list[OutcomeEntry]:
        """Wait a moment for entries that no process has read yet."""
        ...

    async def claim(self) -> list[OutcomeEntry]:
        """Take over entries that were read long ago and never acknowledged."""
        ...

    async def acknowledge(self, entries: Sequence[OutcomeEntry]) -> None:
        """Say that entries are done with."""
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
