"""A durable session: one seat, its disk and its connection to the relay, from HELLO to the outcome.

Everything the seat says is stored before it is sent (write-ahead), and sent again unchanged after every reconnect until
it was acknowledged or answered; the relay answers the same bytes the same way. So the process may be killed at any
point and a new one goes on (docs/protocol.md section 11, docs/architecture.md section 3 "Resume").
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from koikoi.match.v1 import envelope_pb2
from koikoi.match.v1 import match_service_pb2 as match

from koikoi_sdk.client.backoff import Backoff
from koikoi_sdk.client.errors import KoikoiError, LocalProtocolError, RelayClosed, RemoteProtocolError
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import Player, Resign
from koikoi_sdk.client.receipts import Verify, Witness
from koikoi_sdk.client.transport import Connection, Transport
from koikoi_sdk.client.version import CLIENT_VERSION
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.table import (
    Choice,
    Choose,
    Ending,
    Evidence,
    Finished,
    Reason,
    Rejected,
    Seat,
    Send,
    SignedResult,
    Step,
    Unreadable,
    View,
)

CLOSING_LIMIT_S = 30.0
"""Seconds in which a device that has its result waits for the relay to confirm the end."""
_MAX_REFUSALS = 3


@dataclass(frozen=True, slots=True)
class MatchEnd:
    """How a match ended for this device.

    `outcome` is the relay's word (OUTCOME_UNSPECIFIED when it could not be heard), `seat` whom it charges, `result`
    what both devices signed, if they did.
    """

    outcome: match.Outcome.ValueType
    seat: int | None
    result: SignedResult | None


class Session:
    """Plays one stored match over one door. Make it inside `outbox.lock()`.

    `observe` is called after every step with what this seat may see, `lament` each time the connection is lost and
    tried again after a while. With `verify_receipt` the session asks for receipts and stores those that verify.
    """

    def __init__(
        self,
        outbox: Outbox,
        seat: Seat,
        device: DeviceKey,
        transport: Transport,
        *,
        observe: Callable[[View], None] = lambda view: None,
        lament: Callable[[RelayClosed], None] = lambda closed: None,
        verify_receipt: Verify | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._outbox = outbox
        self._seat = seat
        self._device = device
        self._transport = transport
        self._observe = observe
        self._lament = lament
        self._backoff = backoff or Backoff()
        self._witness = Witness(outbox, seat.seat, verify_receipt)
        self._contract = outbox.contract
        self._epoch = b""
        self._acknowledged = 0
        self._is_welcome = self._is_repairing = False
        self._refusals = 0
        self._unreadable: int | None = None
        self._dispute: int | None = None
        self._end: MatchEnd | None = None
        self._patience: asyncio.Timeout | None = None

    async def play(self, player: Player) -> MatchEnd:
        """Play until the relay tells the outcome.

        Raises:
            RemoteProtocolError: The opponent broke the protocol; the evidence is stored, the match closed as disputed.
            RelayClosed: The relay refuses this seat for good.
            StorageError: The disk cannot be written; nothing was sent that is not stored.
        """
        choosing = _Choosing(player)
        try:
            async with asyncio.timeout(None) as patience:
                self._patience = patience
                while self._end is None:
                    self._limit_patience()
                    await self._play_once(choosing)
        except TimeoutError:
            if not self._is_settled:
                raise
            self._end = MatchEnd(match.OUTCOME_UNSPECIFIED, None, self._seat.result)
        finally:
            choosing.cancel()
            await self._witness.settle()
        assert self._end is not None
        return self._finish(self._end)

    async def _play_once(self, choosing: _Choosing) -> None:
        """Live through one connection."""
        try:
            connection = await self._transport.connect(self._outbox.match_id)
            try:
                await self._join(connection)
                await self._live(connection, choosing)
            finally:
                await connection.close()
        except RelayClosed as closed:
            if self._end is None:
                await self._take_close(closed)

    async def _take_close(self, closed: RelayClosed) -> None:
        """Come back after a while, unless the relay will not have this seat any more."""
        if self._may_come_back(closed):
            self._lament(closed)
            await asyncio.sleep(self._backoff.next_delay_s(closed.retry_after_s))
        elif self._seat.result is not None:  # nothing more to gain: both signatures are here
            self._end = MatchEnd(match.OUTCOME_UNSPECIFIED, None, self._seat.result)
        else:
            raise closed

    def _may_come_back(self, closed: RelayClosed) -> bool:
        """Tell whether another try may do better; two of the final reasons may only be the fruit of bad timing.

        A closed match tells its outcome again. A resignation whose envelope was not taken is no resignation yet.
        """
        if closed.is_retryable:
            return True
        self._refusals += 1
        is_bad_timing = closed.reason == "MATCH_CLOSED" or (
            closed.reason == "FRAME_INVALID" and self._seat.has_resigned
        )
        return is_bad_timing and self._refusals <= _MAX_REFUSALS

    def _limit_patience(self) -> None:
        """Wait for the relay's last word only for a while once there is nothing more to gain."""
        if self._is_settled and self._patience is not None and self._patience.when() is None:
            self._patience.reschedule(asyncio.get_running_loop().time() + CLOSING_LIMIT_S)

    async def _join(self, connection: Connection) -> None:
        self._is_welcome = self._is_repairing = False
        frame = await connection.receive()
        if frame.WhichOneof("frame") != "challenge" or len(frame.challenge.challenge) != 32:
            raise RelayClosed(0, "the relay did not begin with a challenge")
        contract, number = self._seat.contract, self._seat.seat
        door = self._transport.door
        signature = self._device.sign(
            "relay-connect", frame.challenge.challenge, door.encode(), contract.hash, bytes([number])
        )
        join = match.Join(
            contract=self._contract,
            seat=number,
            signature=signature,
            door=door,
            epoch=self._epoch,
            position=self._position,
            client_version=CLIENT_VERSION,
        )
        await connection.send(match.ClientFrame(join=join))

    @property
    def _position(self) -> int:
        """Give the next number as this seat sees it: an own envelope counts once it was acknowledged or answered."""
        step = self._seat.step
        if isinstance(step, Send) and self._acknowledged <= step.message.counter:
            return step.message.counter
        return self._seat.position

    @property
    def _is_settled(self) -> bool:
        """Tell whether this device may close: it has both signatures, and the peer has or will get its own."""
        step = self._seat.step
        if isinstance(step, Send):
            return self._seat.result is not None and self._acknowledged > step.message.counter
        return isinstance(step, Finished)

    async def _live(self, connection: Connection, choosing: _Choosing) -> None:
        reading = asyncio.create_task(connection.receive())
        try:
            while self._end is None:
                choice = choosing.task(self._seat)  # is made before the welcome, but not carried out
                awaited = [reading, choice if self._is_welcome else None, self._witness.alarm]
                await asyncio.wait([task for task in awaited if task], return_when=asyncio.FIRST_COMPLETED)
                if reading.done():
                    frame = reading.result()
                    reading = asyncio.create_task(connection.receive())
                    await self._take(connection, frame)
                elif self._witness.ask():
                    await self._ask_for_receipt(connection)
                elif choice is not None:
                    self._act(choosing.take())
                    await self._carry_out(connection, self._seat.step)
                self._limit_patience()
        finally:
            self._witness.rest()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, KoikoiError):
                await reading

    async def _take(self, connection: Connection, frame: match.ServerFrame) -> None:
        if frame.HasField("acknowledged"):
            await self._take_acknowledgement(connection, frame.acknowledged)
        kind = frame.WhichOneof("frame")
        if kind == "welcome":
            self._epoch = frame.welcome.epoch
            self._is_repairing = frame.welcome.is_recovering
            self._is_welcome = not self._is_repairing
            self._witness.heed(frame.welcome.status, self._epoch, self._position)
            if self._is_welcome:  # else another welcome follows, once both seats told their position
                await self._carry_out(connection, self._seat.step)
        elif kind == "envelope":
            await self._take_envelope(connection, frame.envelope)
        elif kind == "ended":
            self._take_ended(frame.ended)
        elif kind == "status":
            self._witness.heed(frame.status, self._epoch, self._position)
        elif kind == "receipt":
            self._witness.take(frame.receipt, self._epoch, self._position)
        elif kind == "refusal":
            self._take_refusal(frame.refusal)

    async def _take_acknowledgement(self, connection: Connection, acknowledged: int) -> None:
        self._backoff.reset()
        if acknowledged > self._acknowledged:  # every welcome repeats the old one, which is no progress
            self._acknowledged, self._refusals = acknowledged, 0
            await self._close_if_settled(connection)

    async def _take_envelope(self, connection: Connection, envelope: envelope_pb2.Envelope) -> None:
        step = self._seat.receive(envelope.counter, envelope.phase, envelope.sealed)
        if isinstance(step, Unreadable):
            if self._unreadable == envelope.counter:
                self._dispute = int(Reason.UNREADABLE)
                await self._carry_out(connection, step)
                return
            self._unreadable = envelope.counter
            raise RelayClosed(0, "an envelope does not open; asking for it once more")
        self._save()
        await self._carry_out(connection, self._seat.step)

    def _take_ended(self, ended: match.Ended) -> None:
        if ended.outcome not in match.Outcome.values():
            raise RelayClosed(0, "the relay told an outcome that does not exist")
        self._end = MatchEnd(ended.outcome, ended.seat if ended.HasField("seat") else None, self._seat.result)

    def _take_refusal(self, refusal: match.Refusal) -> None:
        if self._is_repairing:  # which also a lying opponent can bring about: the next welcome asks for all again
            return
        self._refusals += 1
        is_known = refusal.reason in match.Reason.values()
        reason = match.Reason.Name(refusal.reason).removeprefix("REASON_") if is_known else str(refusal.reason)
        if self._refusals > _MAX_REFUSALS:
            raise LocalProtocolError(f"the relay refuses what this device says: {reason}: {refusal.message}")
        raise RelayClosed(0, reason)

    def _act(self, choice: Choice | Resign) -> None:
        if isinstance(choice, Resign):
            self._seat.resign()
        else:
            self._seat.act(choice)
        self._save()

    async def _carry_out(self, connection: Connection, step: Step) -> None:
        """Send what the step owes; safe to repeat."""
        if isinstance(step, Rejected):
            if step.evidence.body:
                self._outbox.save_evidence(step.evidence)
            self._dispute = int(step.evidence.reason)
        if self._dispute is not None:
            await self._ask_for_receipt(connection)
            close = match.Close(outcome=match.OUTCOME_DISPUTED, dispute_reason=self._dispute)
            await connection.send(match.ClientFrame(close=close))
        elif isinstance(step, Send):
            message = step.message
            envelope = envelope_pb2.Envelope(counter=message.counter, phase=int(message.phase), sealed=message.envelope)
            await connection.send(match.ClientFrame(envelope=envelope))
            if self._seat.has_resigned:  # said at once, so that it is noted before the answer
                await connection.send(match.ClientFrame(close=match.Close(outcome=match.OUTCOME_RESIGNED)))
        await self._close_if_settled(connection)

    async def _ask_for_receipt(self, connection: Connection) -> None:
        if self._witness.can_verify:
            await connection.send(match.ClientFrame(receipt_request=match.ReceiptRequest()))

    async def _close_if_settled(self, connection: Connection) -> None:
        result = self._seat.result
        if result is None or not self._is_settled:
            return
        self._outbox.save_result(result)
        close = match.Close(
            outcome=match.OUTCOME_FINISHED, result_digest=result.digest, result_signatures=result.signatures
        )
        if result.statement.ending is Ending.RESIGNED and self._seat.has_resigned:
            close = match.Close(outcome=match.OUTCOME_RESIGNED)  # it may not have been noted before the answer came
        await connection.send(match.ClientFrame(close=close))

    def _save(self) -> None:
        self._outbox.save(self._seat.dump())
        self._observe(self._seat.view())

    def _finish(self, end: MatchEnd) -> MatchEnd:
        evidence = self._evidence
        if end.result is not None:
            self._outbox.save_result(end.result)
        self._seat.close()
        self._outbox.erase()
        if evidence is not None:
            raise RemoteProtocolError(evidence)
        return end

    @property
    def _evidence(self) -> Evidence | None:
        step = self._seat.step
        return step.evidence if isinstance(step, Rejected) else None


class _Choosing:
    """Asks the player while the connection is read, and over reconnects: a person is asked once."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._task: asyncio.Task[Choice | Resign] | None = None

    def task(self, seat: Seat) -> asyncio.Task[Choice | Resign] | None:
        """Give the task that ends with the choice that is due, None when none is."""
        if not isinstance(seat.step, Choose):
            self.cancel()
        elif self._task is None:
            self._task = asyncio.create_task(self._ask(seat.view()))
        return self._task

    async def _ask(self, view: View) -> Choice | Resign:
        return await self._player.choose(view)

    def take(self) -> Choice | Resign:
        """Give the choice that was made."""
        assert self._task is not None
        task, self._task = self._task, None
        return task.result()

    def cancel(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
