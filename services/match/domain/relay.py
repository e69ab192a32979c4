"""The rules of the relay: who may send what next, and what a seat's coming, going, claim or silence does.

Sans-I/O. Each function is told what happened and returns the match to store - the same object when nothing changes -
or raises. It never opens an envelope, reads a clock or awaits. The life of a match:

    create / recovery.blank --> running --+--> accept, join, depart, doubt, summon     still running
                                          +--> claim, expire, revoke                  closed (`Match.ending`)

Alternation is the whole order: number n is seat A's when even, B's when odd. At most one envelope is undelivered.
"""

from collections.abc import Mapping
from dataclasses import replace

from services.match.domain import recovery
from services.match.domain.deadlines import Clock, Limits
from services.match.domain.envelope import CLOSING, Envelope, check_shape, check_succession, digest
from services.match.domain.errors import EnvelopeConflict, FrameInvalid, MatchClosed, NotYourTurn, Superseded
from services.match.domain.match import Attendance, Match, Presence
from services.match.domain.outcomes import DISPUTE_REASONS, Ending, Outcome

__all__ = [
    "accept", "create", "depart", "dispute", "doubt", "expire", "finish", "join", "lose_processes", "resign", "revoke",
    "summon", "vouch",
]  # fmt: skip

_FURTHEST_NUMBER = 2**32 - 1


def create(first_seat: int, now_ms: int, limit_ms: int, epoch: bytes, limits: Limits) -> Match:
    """Return a fresh match; device A owes the first HELLO."""
    return Match(
        first_seat=first_seat, epoch=epoch, counter=0, created_ms=now_ms, limit_ms=limit_ms, owed_since_ms=now_ms,
        clock=Clock(now_ms, limits.allowance_ms(None), limits.gone_ms), recovery_left_ms=limits.recovery_ms,
    )  # fmt: skip


def join(
    match: Match, seat: int, speaker: tuple[str, str], position: int, now_ms: int, new_epoch: bytes, limits: Limits
) -> Match:
    """Let a connection speak for its seat; an older connection of the seat is superseded.

    Args:
        match: The match; a closed one stays as it is and only tells its end.
        seat: The seat whose possession was proved.
        speaker: The new connection and its process.
        position: The next number as the device sees it; ahead of the relay's it starts a repair.
        now_ms: The relay's clock.
        new_epoch: Used if the store's loss is repaired by this join.
        limits: The relay's times.
    """
    if match.ending is not None:
        return match
    attendance = Attendance(Presence.CONNECTED, *speaker, joins=match.seats[seat].joins + 1)
    match = _switch(match, seat, attendance, now_ms)
    if position > match.counter and not match.is_recovering:
        match = recovery.begin(match, now_ms)
    if match.is_recovering:
        return recovery.tell(match, seat, position, now_ms, new_epoch, limits)
    return match


def accept(match: Match, seat: int, connection: str, envelope: Envelope, now_ms: int, limits: Limits) -> Match:
    """Take the next envelope of a seat.

    Sending the same envelope twice gives the same answer, so a client may always retry.

    Raises:
        EnvelopeInvalid: Its size or phase is not allowed.
        NotYourTurn: The other seat owes the next message, or the number is not the next.
        EnvelopeConflict: Another envelope is stored under this number.
        MatchClosed: The match has ended; nothing more is stored.
        Superseded: A newer connection speaks for the seat.
    """
    _check_speaker(match, seat, connection)
    check_shape(envelope)
    number, counter = envelope.counter, match.counter
    if match.owner(number) != seat:
        raise NotYourTurn(f"Number {number} is the other seat's.")
    if match.is_recovering:
        raise NotYourTurn("The relay waits for both seats to say their positions.")
    if number in (counter - 1, counter - 2) and (number == counter - 2 or match.sealed):
        return _answer_again(match, envelope)
    is_sent_again = number == counter - 1  # and nothing is stored: its owner repairs the store's loss
    if not is_sent_again and (number != counter or match.closings == 2 or number >= _FURTHEST_NUMBER):
        raise NotYourTurn(f"The relay expects number {counter}, not {number}.")
    check_succession(match.phase, envelope.phase)
    return _append(match, seat, envelope, now_ms, limits)


def finish(match: Match, seat: int, connection: str, now_ms: int, *, is_proved: bool) -> Match:
    """Note that a seat is done; closes when both are, or one proves it by both result signatures.

    A noted resignation stands whatever is shown here.
    """
    _check_speaker(match, seat, connection)
    finished = (match.finished[0] or seat == 0, match.finished[1] or seat == 1)
    if match.resigned is None and (is_proved or all(finished)):
        return _end(match, Outcome.FINISHED, now_ms)
    return match if finished == match.finished else replace(match, finished=finished)


def resign(match: Match, seat: int, connection: str, now_ms: int, limits: Limits) -> Match:
    """Note a resignation; the match stays open, charging nobody, for the peer's one envelope.

    Raises:
        FrameInvalid: The seat did not send the first envelope of phase 6.
    """
    _check_speaker(match, seat, connection)
    if match.closer != seat:
        raise FrameInvalid("Only the seat that sent the first envelope of phase 6 can resign.", field="close.outcome")
    if match.resigned is not None:
        return match
    match = replace(match, resigned=seat, clock=Clock(now_ms, limits.step_ms + limits.grace_ms))
    return _end(match, Outcome.RESIGNED, now_ms, seat) if match.closings == 2 else match


def dispute(match: Match, seat: int, connection: str, reason: int, now_ms: int) -> Match:
    """Close because a device rejects what it received.

    Raises:
        FrameInvalid: The reason is not one of docs/protocol.md section 19, or the seat has resigned.
    """
    _check_speaker(match, seat, connection)
    if reason not in DISPUTE_REASONS:
        raise FrameInvalid("A dispute's reason is 1 to 13.", field="close.dispute_reason")
    if match.resigned == seat:
        raise FrameInvalid("A resignation stands.", field="close.outcome")
    return replace(match, ending=Ending(Outcome.DISPUTED, now_ms, None, reason))


def depart(match: Match, seat: int, connection: str, now_ms: int) -> Match:
    """Note that a seat left; does nothing if another connection speaks for the seat, or the match is closed."""
    held = match.seats[seat]
    if match.ending is not None or held.connection != connection or not held.is_connected:
        return match
    return _leave(_switch(match, seat, replace(held, presence=Presence.GONE), now_ms), seat)


def doubt(match: Match, seat: int, connection: str, heard_ms: int, now_ms: int, limits: Limits) -> Match:
    """Note that the relay lost a seat's connection by its own fault: the presence is unknown, not gone.

    Nothing after the seat could last be heard is charged, and if it owes it has its whole gone time to return.

    Args:
        match: The match.
        seat: The seat.
        connection: Its connection; does nothing if another one speaks for the seat, or the match is closed.
        heard_ms: Until when the connection was served.
        now_ms: The relay's clock.
        limits: The relay's times.
    """
    held = match.seats[seat]
    if match.ending is not None or held.connection != connection or not held.is_connected:
        return match
    if match.owing == seat and match.clock.gone_left_ms is not None:
        turn_left_ms = match.clock.switched(heard_ms, was_present=True).turn_left_ms
        match = replace(match, clock=Clock(now_ms, turn_left_ms, limits.gone_ms))
    return _leave(match.attended(seat, replace(held, presence=Presence.UNKNOWN)), seat)


def lose_processes(match: Match, last_heard_ms: Mapping[str, int], now_ms: int, limits: Limits) -> Match:
    """Doubt every presence that dead processes wrote; `last_heard_ms` says when each was last heard."""
    for seat, held in enumerate(match.seats):
        if held.process in last_heard_ms:
            match = doubt(match, seat, held.connection, last_heard_ms[held.process], now_ms, limits)
    return match


def summon(match: Match, seat: int, connection: str, now_ms: int) -> Match:
    """Let a connection whose presence was doubted speak for its seat again, unless another one does."""
    held = match.seats[seat]
    if match.ending is not None or held.presence is not Presence.UNKNOWN or held.connection != connection:
        return match
    return _switch(match, seat, replace(held, presence=Presence.CONNECTED), now_ms)


def vouch(
    match: Match, seat: int, connection: str, position: int, now_ms: int, new_epoch: bytes, limits: Limits
) -> Match:
    """Say a connected seat's position for it, when a repair asks: what its connection has been told so far."""
    if match.ending is not None or not match.is_recovering or match.seats[seat].connection != connection:
        return match
    assert match.recovery is not None
    if not match.seats[seat].is_connected or match.recovery.positions[seat] is not None:
        return match
    return recovery.tell(match, seat, position, now_ms, new_epoch, limits)


def expire(match: Match, now_ms: int) -> Match:
    """Close the match if its time is over; else return it as it is."""
    if match.due_ms is None or now_ms < match.due_ms:
        return match
    outcome, seat = _verdict(match)
    return _end(match, outcome, now_ms, seat)


def revoke(match: Match, seat: int, now_ms: int) -> Match:
    """Close because a seat's device was revoked; it abandons what was still being played."""
    if match.ending is not None:
        return match
    if (settled := _settled(match)) is not None:
        outcome, charged = settled
        return _end(match, outcome, now_ms, charged)
    if match.counter < 2 and match.recovery is None:
        return _end(match, Outcome.NEVER_STARTED, now_ms)
    return _end(match, Outcome.ABANDONED, now_ms, seat)


def _verdict(match: Match) -> tuple[Outcome, int | None]:
    """Return how a match whose time is over ends, and who is charged."""
    if (settled := _settled(match)) is not None:
        return settled
    owing, seat = match.owing, None
    if match.limit_ms < match.deadline_ms:
        outcome = Outcome.EXPIRED
    elif owing is None:  # a repair that did not succeed
        outcome = Outcome.DISPUTED
    elif match.counter < 2:
        outcome = Outcome.NEVER_STARTED
    else:
        outcome, seat = Outcome.STALLED if match.seats[owing].is_connected else Outcome.ABANDONED, owing
    return outcome, seat


def _settled(match: Match) -> tuple[Outcome, int | None] | None:
    """Return how a match ends in which nothing more is to be played, None in any other."""
    if match.resigned is not None:
        return Outcome.RESIGNED, match.resigned
    return (Outcome.FINISHED, None) if match.closings == 2 or match.is_doubtful else None


def _check_speaker(match: Match, seat: int, connection: str) -> None:
    if match.ending is not None:
        raise MatchClosed("The match has ended.")
    if match.seats[seat].connection != connection:
        raise Superseded("A newer connection speaks for this seat.")


def _switch(match: Match, seat: int, attendance: Attendance, now_ms: int) -> Match:
    was_present = match.seats[seat].is_connected
    if match.owing == seat and was_present != attendance.is_connected:
        match = replace(match, clock=match.clock.switched(now_ms, was_present=was_present))
    return match.attended(seat, attendance)


def _leave(match: Match, seat: int) -> Match:
    return match if match.recovery is None else replace(match, recovery=match.recovery.told(seat, None))


def _answer_again(match: Match, envelope: Envelope) -> Match:
    is_last = envelope.counter == match.counter - 1
    same = envelope.sealed == match.sealed if is_last else match.before in (None, digest(envelope.sealed))
    if not same:
        raise EnvelopeConflict(f"Another envelope is stored under number {envelope.counter}.")
    return match


def _append(match: Match, seat: int, envelope: Envelope, now_ms: int, limits: Limits) -> Match:
    is_unsure = match.recovery is not None  # what came before is not known
    closings, closer, is_doubtful = match.closings, match.closer, False
    if envelope.phase == CLOSING:
        closings, closer = closings + 1, seat if closer is None else closer
        is_doubtful = is_unsure
    if closings == 2 or is_doubtful:
        clock = Clock(now_ms, limits.closing_ms)
    elif match.resigned is not None:
        clock = Clock(now_ms, limits.step_ms + limits.grace_ms)
    else:
        clock = Clock(now_ms, limits.allowance_ms(envelope.phase), limits.gone_ms)
    sha = digest(envelope.sealed)
    rolling = digest(match.rolling + envelope.counter.to_bytes(4, "big") + sha)
    before = digest(match.sealed) if match.sealed else None
    match = replace(
        match, counter=envelope.counter + 1, sealed=envelope.sealed, phase=envelope.phase, before=before,
        rolling=rolling, owed_since_ms=now_ms, clock=clock, closings=closings, closer=closer, is_doubtful=is_doubtful,
        recovery=None, recovery_left_ms=limits.recovery_ms if is_unsure else match.recovery_left_ms,
    )  # fmt: skip
    if closings == 2 and match.resigned is not None:
        return _end(match, Outcome.RESIGNED, now_ms, match.resigned)
    return match


def _end(match: Match, outcome: Outcome, now_ms: int, seat: int | None = None) -> Match:
    return replace(match, ending=Ending(outcome, now_ms, seat))
