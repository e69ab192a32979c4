"""What the doors of a process allow: connections, handshakes per second, frames per connection."""

from collections import deque
from dataclasses import dataclass

from services.kit.clock import Clock
from services.match.domain.errors import RateLimited

__all__ = ["Budget", "DoorLimits", "Gate"]


@dataclass(frozen=True, slots=True)
class DoorLimits:
    """Bounds of both doors together.

    Args:
        most_connections: Open connections of this process.
        joins_per_s: Handshakes per second of this process.
        join_within_s: Time for the first frame.
        ping_every_s: Silence after which the relay asks whether the socket lives.
        silent_for_s: Silence after which the seat is gone.
        budget_frames: Frames of one connection per `budget_window_s`; beyond it, reading pauses.
        budget_bytes: The same in bytes.
        budget_window_s: See above.
        most_unsent_bytes: What may wait for a connection that reads slowly.
    """

    most_connections: int = 20_000
    joins_per_s: int = 500
    join_within_s: float = 5.0
    ping_every_s: float = 25.0
    silent_for_s: float = 40.0
    budget_frames: int = 300
    budget_bytes: int = 512 * 1024
    budget_window_s: float = 10.0
    most_unsent_bytes: int = 64 * 1024


class Gate:
    """Counts the connections of a process and lets in only so many, so fast."""

    def __init__(self, limits: DoorLimits, clock: Clock) -> None:
        self._limits, self._clock = limits, clock
        self._open = 0
        self._tokens, self._refilled = float(limits.joins_per_s), clock.monotonic()

    def enter(self) -> None:
        """Let a connection in; pair with `exit`.

        Raises:
            RateLimited: Too many are open, or too many came in the last second.
        """
        now = self._clock.monotonic()
        rate = float(self._limits.joins_per_s)
        self._tokens = min(rate, self._tokens + (now - self._refilled) * rate)
        self._refilled = now
        if self._open >= self._limits.most_connections:
            raise RateLimited("This relay has as many connections as it can hold; try again.", retry_after_s=5.0)
        if self._tokens < 1.0:
            raise RateLimited("Too many connections at once; try again.", retry_after_s=1.0)
        self._tokens -= 1.0
        self._open += 1

    def exit(self) -> None:
        """Let a connection out."""
        self._open -= 1

    def budget(self) -> "Budget":
        """Return what a new connection may send."""
        return Budget(self._limits, self._clock)


class Budget:
    """What one connection may send in any window; tells how long to pause reading."""

    def __init__(self, limits: DoorLimits, clock: Clock) -> None:
        self._limits, self._clock = limits, clock
        self._spent: deque[tuple[float, int]] = deque()
        self._bytes = 0

    def spend(self, size: int) -> float:
        """Count a frame; returns the seconds for which reading should pause, 0 within the budget."""
        now = self._clock.monotonic()
        while self._spent and self._spent[0][0] <= now - self._limits.budget_window_s:
            self._bytes -= self._spent.popleft()[1]
        self._spent.append((now, size))
        self._bytes += size
        if len(self._spent) <= self._limits.budget_frames and self._bytes <= self._limits.budget_bytes:
            return 0.0
        return self._spent[0][0] + self._limits.budget_window_s - now
