"""Repairs a match after the store lost its tail or all of it (docs/architecture.md section 3, "Resume").

The relay adopts the larger of two positions only when both seats are connected and the positions differ by at most 2.
Then the owner of the message before it sends it again, under a new epoch. Otherwise nothing changes, nobody is charged,
and when the time is over the match closes `disputed`. Repairs share that time until one succeeds, so
lies about the position gain nothing, however many.
"""

from dataclasses import replace

from services.match.domain.deadlines import Clock, Limits
from services.match.domain.match import Match, Recovery

__all__ = ["begin", "blank", "tell"]

_FURTHEST_APART = 2


def blank(first_seat: int, now_ms: int, limit_ms: int, epoch: bytes, limits: Limits) -> Match:
    """Return the state of a match about which nothing is known any more."""
    return Match(
        first_seat=first_seat, epoch=epoch, counter=0, created_ms=now_ms, limit_ms=limit_ms, owed_since_ms=now_ms,
        clock=Clock(now_ms, limits.recovery_ms), recovery_left_ms=limits.recovery_ms, recovery=Recovery(is_blank=True),
    )  # fmt: skip


def begin(match: Match, now_ms: int) -> Match:
    """Start a repair because a seat is ahead; both positions are asked for."""
    owing = match.owing
    was_present = owing is None or match.seats[owing].is_connected
    left_ms = match.recovery_left_ms if match.recovery is None else _left_ms(match, now_ms)
    return replace(
        match,
        recovery=Recovery(is_blank=match.recovery is not None),  # in the middle of a repair nothing is stored
        clock=Clock(now_ms, left_ms),
        recovery_left_ms=left_ms,
        suspended=match.clock.switched(now_ms, was_present=was_present),
    )


def tell(match: Match, seat: int, position: int, now_ms: int, new_epoch: bytes, limits: Limits) -> Match:
    """Note a connected seat's position and, if that settles it, end the repair or adopt the larger number."""
    assert match.recovery is not None
    recovery = match.recovery.told(seat, position)
    match = replace(match, recovery=recovery)
    known = [position for position in recovery.positions if position is not None]
    if not recovery.is_blank and max(known) <= match.counter:
        return _call_off(match, now_ms)
    if len(known) == 2 and abs(known[0] - known[1]) <= _FURTHEST_APART:
        return _adopt(match, max(known), now_ms, new_epoch, limits)
    return match


def _call_off(match: Match, now_ms: int) -> Match:
    """Nothing was lost: the suspended clock goes on, and the time of this repair is used up."""
    assert match.suspended is not None
    clock, left_ms = replace(match.suspended, since_ms=now_ms), _left_ms(match, now_ms)
    return replace(match, recovery=None, clock=clock, suspended=None, recovery_left_ms=left_ms)


def _adopt(match: Match, counter: int, now_ms: int, epoch: bytes, limits: Limits) -> Match:
    """Go on from `counter`; with no message before it there is nothing to send again."""
    left_ms = _left_ms(match, now_ms)
    if counter == 0:
        recovery, clock = None, Clock(now_ms, limits.allowance_ms(None), limits.gone_ms)
    else:
        recovery, clock = Recovery(is_adopted=True), Clock(now_ms, left_ms)
    return replace(
        match, epoch=epoch, counter=counter, recovery=recovery, clock=clock, suspended=None, owed_since_ms=now_ms,
        recovery_left_ms=left_ms, sealed=b"", phase=None, before=None, rolling=bytes(32),
        closings=0, closer=None, is_doubtful=False,
    )  # fmt: skip


def _left_ms(match: Match, now_ms: int) -> int:
    return max(0, match.recovery_left_ms - max(0, now_ms - match.clock.since_ms))
