"""How long each seat has. Milliseconds on the relay's clock.

One clock runs at a time. While the owing seat is here its turn runs; while it is gone only the gone time runs. Both
are budgets of one owed message, so leaving and coming back gains nothing. A clock without gone time charges nobody.
"""

from dataclasses import dataclass, replace

from services.match.domain.envelope import DEAL, PLAY

__all__ = ["Clock", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The relay's times in milliseconds; the defaults are the game's."""

    turn_ms: int = 60_000  # after deal and play
    step_ms: int = 20_000  # after all other phases
    first_hello_ms: int = 30_000
    grace_ms: int = 3_000  # lag; added to the three above, never shown
    gone_ms: int = 60_000
    match_ms: int = 7_200_000
    recovery_ms: int = 60_000
    closing_ms: int = 60_000  # after the second envelope of phase 6
    creation_ms: int = 120_000  # after the contract's creation

    def allowance_ms(self, phase: int | None) -> int:
        """Return the time to answer an envelope of `phase`; None: to send the first HELLO."""
        if phase is None:
            return self.first_hello_ms + self.grace_ms
        return (self.turn_ms if phase in (DEAL, PLAY) else self.step_ms) + self.grace_ms


@dataclass(frozen=True, slots=True)
class Clock:
    """What runs now.

    Args:
        since_ms: When the running part began.
        turn_left_ms: What was left of the turn then.
        gone_left_ms: What was left of the gone time then; None when presence does not matter and nobody is charged.
    """

    since_ms: int
    turn_left_ms: int
    gone_left_ms: int | None = None

    def deadline_ms(self, *, is_present: bool) -> int:
        """Return when the running part ends."""
        if self.gone_left_ms is None or is_present:
            return self.since_ms + self.turn_left_ms
        return self.since_ms + self.gone_left_ms

    def switched(self, now_ms: int, *, was_present: bool) -> "Clock":
        """Return the clock after the owing seat left or came back: the other part runs from now.

        What is told late, because the store was away, happened at the earliest when this part began.
        """
        if self.gone_left_ms is None:
            return self
        now_ms = max(now_ms, self.since_ms)
        elapsed = now_ms - self.since_ms
        if was_present:
            return Clock(now_ms, max(0, self.turn_left_ms - elapsed), self.gone_left_ms)
        return Clock(now_ms, self.turn_left_ms, max(0, self.gone_left_ms - elapsed))

    def shifted(self, ms: int) -> "Clock":
        """Return the clock with time that is not charged."""
        return replace(self, since_ms=self.since_ms + ms)
