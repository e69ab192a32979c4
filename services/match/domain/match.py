"""The state of one match, of constant size: what every process reads, and what a script stores.

A `Match` is a value. Only `relay` and `recovery` make new ones; this file says what a state means.
"""

import enum
from dataclasses import dataclass, field, replace

from services.match.domain.deadlines import Clock, Limits
from services.match.domain.outcomes import Ending

__all__ = ["Attendance", "Match", "Presence", "Recovery"]


class Presence(enum.StrEnum):
    """What is known about a seat's connection."""

    ABSENT = "absent"  # never came
    CONNECTED = "connected"
    GONE = "gone"
    UNKNOWN = "unknown"  # its process died or asked it to move: not the seat's doing


@dataclass(frozen=True, slots=True)
class Attendance:
    """A seat's presence, and which connection of which process speaks for it.

    `joins` counts the seat's joins, so that a connection can tell a newer one from a store that lost its tail.
    """

    presence: Presence = Presence.ABSENT
    connection: str = ""
    process: str = ""
    joins: int = 0

    @property
    def is_connected(self) -> bool:
        """Whether the seat is here."""
        return self.presence is Presence.CONNECTED


@dataclass(frozen=True, slots=True)
class Recovery:
    """The store lost something; the two devices tell what.

    Args:
        positions: What seat 0 and seat 1 said since then, while connected.
        is_blank: Nothing at all is known, so both must speak.
        is_adopted: The number is agreed; the message before it (or after it) is awaited from its owner.
    """

    positions: tuple[int | None, int | None] = (None, None)
    is_blank: bool = False
    is_adopted: bool = False

    def told(self, seat: int, position: int | None) -> "Recovery":
        """Return the recovery after a seat said its position (None: it left)."""
        first, second = self.positions
        return replace(self, positions=(position, second) if seat == 0 else (first, position))


@dataclass(frozen=True, slots=True)
class Match:
    """One match.

    Args:
        first_seat: The seat of device A, which sends the even numbers.
        epoch: 8 random bytes; a new one whenever the relay's memory was lost.
        counter: The next number.
        created_ms: When this state began.
        limit_ms: When the match expires.
        clock: What runs now.
        owed_since_ms: When the last envelope came (or the state began): since then the other seat owes.
        sealed: The last envelope's bytes, number `counter - 1`; empty when none is stored.
        phase: The last envelope's phase; None when not known.
        before: Hash of the envelope of number `counter - 2`; None when not known.
        rolling: SHA-256(rolling before | u32 number | SHA-256(sealed)), from 32 zero bytes at the start of an epoch.
        seats: The attendance of seat 0 and seat 1.
        closings: How many envelopes of phase 6 are known, 0 to 2.
        closer: The seat that sent the first of them.
        is_doubtful: The only known envelope of phase 6 may have been the second.
        finished: Which seats said that the match is finished.
        resigned: The seat whose resignation is noted.
        recovery: Set while the store's loss is being repaired.
        recovery_left_ms: Time that repairs may still take until one succeeds.
        suspended: The clock that goes on when a repair turns out to be needless.
        ending: Set once the match is closed; nothing changes after that.
    """

    first_seat: int
    epoch: bytes
    counter: int
    created_ms: int
    limit_ms: int
    clock: Clock
    owed_since_ms: int
    recovery_left_ms: int
    sealed: bytes = b""
    phase: int | None = None
    before: bytes | None = None
    rolling: bytes = bytes(32)
    seats: tuple[Attendance, Attendance] = field(default=(Attendance(), Attendance()))
    closings: int = 0
    closer: int | None = None
    is_doubtful: bool = False
    finished: tuple[bool, bool] = (False, False)
    resigned: int | None = None
    recovery: Recovery | None = None
    suspended: Clock | None = None
    ending: Ending | None = None

    def owner(self, number: int) -> int:
        """Return the seat that sends this number."""
        return self.first_seat if number % 2 == 0 else 1 - self.first_seat

    @property
    def owing(self) -> int | None:
        """The seat that owes the next envelope; None when nobody does."""
        if self.ending is not None or self.recovery is not None or self.closings == 2:
            return None
        return self.owner(self.counter)

    @property
    def is_recovering(self) -> bool:
        """Whether the number is unknown until both seats have said theirs."""
        return self.recovery is not None and not self.recovery.is_adopted

    @property
    def deadline_ms(self) -> int:
        """When the running clock ends; meaningless in a closed match."""
        owing = self.owing
        return self.clock.deadline_ms(is_present=owing is None or self.seats[owing].is_connected)

    @property
    def due_ms(self) -> int | None:
        """When the match must be looked at next; None when it is closed."""
        return None if self.ending is not None else min(self.deadline_ms, self.limit_ms)

    def missed(self, seat: int, position: int) -> bool:
        """Say whether the last envelope is stored, was sent to this seat, and is news at this position."""
        return bool(self.sealed) and self.owner(self.counter - 1) != seat and position < self.counter

    def acknowledged(self, seat: int) -> int | None:
        """Return the number after this seat's last stored envelope; None when none is known to be stored."""
        number = self.counter - 1 if self.owner(self.counter - 1) == seat else self.counter - 2
        is_stored = bool(self.sealed) if number == self.counter - 1 else self.before is not None
        return number + 1 if number >= 0 and is_stored else None

    def shown_left_ms(self, now_ms: int, limits: Limits) -> int | None:
        """Return what players are told about the time left: without the lag grace; None when nothing runs."""
        if self.ending is not None:
            return None
        owing, deadline = self.owing, self.deadline_ms
        if owing is not None and self.seats[owing].is_connected:
            deadline -= limits.grace_ms
        return max(0, min(deadline, self.limit_ms) - now_ms)

    def attended(self, seat: int, attendance: Attendance) -> "Match":
        """Return the match with another attendance of a seat; its clocks are the caller's to switch."""
        first, second = self.seats
        return replace(self, seats=(attendance, second) if seat == 0 else (first, attendance))

    def shifted(self, ms: int) -> "Match":
        """Return the match with time in which the relay could not serve: all its deadlines move."""
        suspended = None if self.suspended is None else self.suspended.shifted(ms)
        return replace(self, clock=self.clock.shifted(ms), limit_ms=self.limit_ms + ms, suspended=suspended)
