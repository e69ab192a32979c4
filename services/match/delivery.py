"""What one connection has been told, and what it is told next.

Level-triggered: `Session.show` compares the newest state with what the device knows and sends the difference. So a
lost, doubled or late notification can never lose, double or reorder an envelope.
"""

import asyncio
from collections.abc import Callable

from services.match.domain.deadlines import Clock, Limits
from services.match.domain.envelope import Envelope
from services.match.domain.errors import Draining, MatchClosed, RelayError, StoreUnavailable, Superseded
from services.match.domain.match import Match
from services.match.ports import Ended, Outgoing, Outlet, Status, Stored, Welcome

__all__ = ["Session"]

_ACKNOWLEDGE_WITHIN_S = 0.02

Greet = Callable[[Match, bool, Status], Welcome]


class Session:
    """One connected seat.

    Args:
        seat: The seat it proved.
        connection: Its random id.
        outlet: Its door.
        epoch: The epoch it said it knew.
        position: The next number as it sees it.
        limits: The relay's times.
        greet: Makes a welcome of a match, whether the epoch was known, and the status.
        now_ms: The relay's clock.
    """

    def __init__(
        self,
        seat: int,
        connection: str,
        outlet: Outlet,
        epoch: bytes,
        position: int,
        limits: Limits,
        greet: Greet,
        now_ms: Callable[[], int],
    ) -> None:
        self.seat, self.connection, self.position = seat, connection, position
        self.joins = 0
        self.is_over = False
        self.is_relays_fault = False  # the relay, not the device, ended the connection
        self._outlet, self._limits, self._greet, self._now_ms = outlet, limits, greet, now_ms
        self._epoch = epoch
        self._greeted: tuple[bytes, bool] | None = None  # epoch and "recovering" of the last welcome
        self._acknowledged: int | None = None
        self._owes_acknowledgement = False
        self._told: tuple[int | None, tuple[bool, bool], Clock] | None = None
        self._owes_status = False
        self._match: Match | None = None
        self._timer: asyncio.TimerHandle | None = None

    def show(self, stored: Stored | None) -> None:
        """Bring the device up to this state, or close the connection when the state is not one it can go on from."""
        if self.is_over:
            return
        if (error := self._objection(stored)) is not None or stored is None:
            self.close(error or StoreUnavailable("The relay's store lost the match.", retry_after_s=1.0))
            return
        match = self._match = stored.match
        self._note_acknowledgement(match)
        if self._greeted != (match.epoch, match.is_recovering):
            self._welcome(match)
        if not match.is_recovering and match.missed(self.seat, self.position):
            assert match.phase is not None
            self.position = match.counter
            self._send(Envelope(match.counter - 1, match.phase, match.sealed))
        if match.ending is not None:
            self.conclude(Ended(match.ending))
        elif self._told != (told := _essence(match)):
            self._told, self._owes_status = told, True
        self._flush_soon()

    def acknowledge(self, number: int) -> None:
        """Say (again) that an own envelope is stored."""
        self._acknowledged, self._owes_acknowledgement = number + 1, True
        self.position = max(self.position, number + 1)
        self._flush_soon()

    def remind(self) -> None:
        """Tell the status again: time is running out."""
        self._owes_status = True
        self._flush_soon()

    def send(self, frame: Outgoing) -> None:
        """Send a frame that is not part of the state: a refusal, a receipt."""
        if not self.is_over:
            self._send(frame)

    def conclude(self, ended: Ended) -> None:
        """Tell how the match ended, and close."""
        self._send(ended)
        self.close(MatchClosed("The match has ended."))

    def close(self, error: RelayError) -> None:
        """End the connection after what was sent."""
        if not self.is_over:
            self.is_over = True
            self.is_relays_fault = isinstance(error, (StoreUnavailable, Draining))
            self._stop_timer()
            self._outlet.close(error)

    def end(self) -> None:
        """Note that the door's side is gone."""
        self.is_over = True
        self._stop_timer()

    def _objection(self, stored: Stored | None) -> RelayError | None:
        if stored is None:
            return None
        match = stored.match
        if match.ending is None:
            held = match.seats[self.seat]
            if held.connection != self.connection and held.joins > self.joins:
                return Superseded("A newer connection speaks for this seat.")
            if held.connection != self.connection:
                return StoreUnavailable("Join again and say your position.", retry_after_s=0.0)
            if match.counter < self.position and not match.is_recovering:
                return StoreUnavailable("The relay's store lost its tail; join again.", retry_after_s=0.0)
        return None

    def _note_acknowledgement(self, match: Match) -> None:
        number = None if match.is_recovering else match.acknowledged(self.seat)
        if number is not None and number != self._acknowledged:
            self._acknowledged, self._owes_acknowledgement = number, True
            self.position = max(self.position, number)

    def _welcome(self, match: Match) -> None:
        is_known = self._greeted is None and self._epoch == match.epoch
        self._greeted, self._told, self._owes_status = (match.epoch, match.is_recovering), _essence(match), False
        self._send(self._greet(match, is_known, self._status(match)))

    def _status(self, match: Match) -> Status:
        left_ms = match.shown_left_ms(self._now_ms(), self._limits)
        return Status(match.owing, left_ms, (match.seats[0].is_connected, match.seats[1].is_connected))

    def _send(self, frame: Outgoing | None) -> None:
        acknowledged = self._acknowledged if self._owes_acknowledgement else None
        self._owes_acknowledgement = False
        self._outlet.send(acknowledged, frame)

    def _flush_soon(self) -> None:
        if (self._owes_acknowledgement or self._owes_status) and self._timer is None and not self.is_over:
            self._timer = asyncio.get_running_loop().call_later(_ACKNOWLEDGE_WITHIN_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        if self._owes_status and self._match is not None:
            self._owes_status = False
            self._send(self._status(self._match))
        elif self._owes_acknowledgement:
            self._send(None)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _essence(match: Match) -> tuple[int | None, tuple[bool, bool], Clock]:
    """Return what a status tells, without the time that passes."""
    return match.owing, (match.seats[0].is_connected, match.seats[1].is_connected), match.clock
