"""Time, injected. Standard library only, so that every `domain` may use it."""

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Tells the time. Tests pass one that they move by hand."""

    def now(self) -> float:
        """Return the time as unix seconds; may jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start; never jumps. For durations and time-outs."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        """Return the time as unix seconds."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start."""
        return time.monotonic()
