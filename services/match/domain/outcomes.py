"""How a match ends: the one list of outcomes."""

import enum
from dataclasses import dataclass

__all__ = ["DISPUTE_REASONS", "Ending", "Outcome"]

DISPUTE_REASONS = range(1, 14)  # docs/protocol.md section 19


class Outcome(enum.StrEnum):
    """How a match ended."""

    FINISHED = "finished"
    RESIGNED = "resigned"
    STALLED = "stalled"
    ABANDONED = "abandoned"
    DISPUTED = "disputed"
    EXPIRED = "expired"
    NEVER_STARTED = "never_started"


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a match.

    Args:
        outcome: One of the list.
        time_ms: When, by the relay's clock.
        seat: The seat charged (resigned, stalled, abandoned), else None.
        dispute_reason: The reason byte of docs/protocol.md section 19, for disputed by a seat; else 0.
    """

    outcome: Outcome
    time_ms: int
    seat: int | None = None
    dispute_reason: int = 0
