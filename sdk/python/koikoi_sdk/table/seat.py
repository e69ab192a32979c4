"""One seat of a match as a state machine: envelope in, next step out (docs/protocol.md).

Sans-I/O. A `Seat` is told what arrived or what its player chose, and answers with exactly one `Step`.
It reads no clock and draws no randomness of its own. The whole flow is the table below: after each
accepted message, what may be owed next. Who owes it is never in doubt: device A (smaller key) sends
the even numbers, B the odd ones, always.

Every message runs through the same three functions: `build` on the side that owes, `accept` on the
other, then `after` on both, which changes what both know and names what is due. Two messages may stand
in another's place: RESIGN (see `closing.may_resign`) and, where an audit's answer is owed, AU1.

Whatever is received, `receive` does not raise: it answers Unreadable (nothing changed, nobody accused)
or Rejected (the match stops, with evidence). Store `dump()` before sending what a step says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from koikoi_sdk.poker import DeviceKey, ProofError
from koikoi_sdk.rules import Play, Variant
from koikoi_sdk.table import auditing, closing, dealing, opening, playing, snapshot
from koikoi_sdk.table.codec import Kind, phase_of, require_length
from koikoi_sdk.table.contract import Contract, parse_contract
from koikoi_sdk.table.envelope import HEADER_SIZE, SIGNATURE_SIZE, Signed, kind_of
from koikoi_sdk.table.errors import LocalProtocolError, Reason, RemoteProtocolError, TransportError, require
from koikoi_sdk.table.memory import Random, Table, draw_from_system
from koikoi_sdk.table.playing import Choice, Flip
from koikoi_sdk.table.state import Evidence, Outgoing, State
from koikoi_sdk.table.statement import Ending, SignedResult
from koikoi_sdk.table.steps import Choose, Finished, Rejected, Send, Step, Unreadable, Wait
from koikoi_sdk.table.view import View, look

K = Kind
TRANSITIONS: Mapping[Kind, tuple[Kind | None, ...]] = MappingProxyType(
    {
        K.HELLO: (K.HELLO, K.COIN_OPEN),
        K.COIN_OPEN: (K.S1, K.NEXT),  # the toss names the dealer; NEXT if the other seat owes
        K.NEXT: (K.S1,),
        K.S1: (K.S2,),
        K.S2: (K.S3,),
        K.S3: (K.S4,),
        K.S4: (K.T1, K.AU1, K.S1),  # play, or a hand yaku was claimed, or the deal is void
        K.T1: (K.T2,),
        K.T2: (K.T3,),
        K.T3: (K.T1, K.AU1),  # the other seat's turn, or the round is over
        K.AU1: (K.AU2,),
        K.AU2: (K.AU3,),
        K.AU3: (K.AU4,),
        K.AU4: (K.AU1, K.S1, K.NEXT, K.RESULT_SIGN),  # the next attempt's audit, round, or the end
        K.RESIGN: (K.RESULT_SIGN,),
        K.RESULT_SIGN: (K.RESULT_SIGN, None),
    }
)


class Part(NamedTuple):
    """How one kind of message is made, checked, and what follows from it."""

    build: Callable[[Table], bytes] | None
    accept: Callable[[Table, bytes], None]
    after: Callable[[Table], Kind | None]


PARTS: Mapping[Kind, Part] = MappingProxyType(
    {
        K.COIN_OPEN: Part(opening.build_coin, opening.accept_coin, opening.after_coin),
        K.NEXT: Part(opening.build_next, opening.accept_next, opening.after_next),
        K.S1: Part(dealing.build_first, dealing.accept_first, dealing.after_first),
        K.S2: Part(dealing.build_second, dealing.accept_second, dealing.after_second),
        K.S3: Part(dealing.build_third, dealing.accept_third, dealing.after_third),
        K.S4: Part(dealing.build_fourth, dealing.accept_fourth, dealing.after_fourth),
        K.T1: Part(None, playing.accept_play, playing.after_play),  # built when the player chose
        K.T2: Part(playing.build_token, playing.accept_token, playing.after_token),
        K.T3: Part(None, playing.accept_flip, playing.after_flip),
        K.AU1: Part(auditing.build_commitment, auditing.accept_commitment, auditing.after_commitment),
        K.AU2: Part(
            auditing.build_counter_commitment,
            auditing.accept_counter_commitment,
            auditing.after_counter_commitment,
        ),
        K.AU3: Part(auditing.build_answer, auditing.accept_answer, auditing.after_answer),
        K.AU4: Part(auditing.build_last_answer, auditing.accept_last_answer, auditing.after_last_answer),
        K.RESULT_SIGN: Part(closing.build_result, closing.accept_result, closing.after_result),
        K.RESIGN: Part(closing.build_resignation, closing.accept_resignation, closing.after_resignation),
    }
)
_AUDIT_ANSWERS = (K.AU3, K.AU4)
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What a fault of ours in parsing could raise; the machine's own (memory, disk) is not among them."""


class Seat:
    """One device's seat in one match. Make it with `start` or `load`."""

    def __init__(self, contract: Contract, device: DeviceKey, random: Random, state: State) -> None:
        self._table = Table(contract, device, random, state)
        self._state = state

    @classmethod
    def start(cls, contract: bytes, device: DeviceKey, random: Random = draw_from_system) -> Seat:
        """Sit down. `contract` are the payload bytes of a contract whose signature was verified.

        Raises:
            ContractError: The contract cannot be played, or has no seat for this device.
        """
        seat = cls(parse_contract(contract), device, random, State())
        seat._proceed()
        return seat

    @classmethod
    def load(cls, contract: bytes, data: bytes, device: DeviceKey, random: Random = draw_from_system) -> Seat:
        """Take up what `dump` wrote for this contract and device.

        Raises:
            ContractError: As for `start`.
            SnapshotError: The data is damaged, or of another version.
        """
        parsed = parse_contract(contract)
        return cls(parsed, device, random, snapshot.load(State, data, {Variant: parsed.rules.variant}))

    def dump(self) -> bytes:
        """Write the whole state, secrets included, but never an audit master."""
        return snapshot.dump(self._state, {Variant: self._table.contract.rules.variant})

    @property
    def contract(self) -> Contract:
        """Give the contract."""
        return self._table.contract

    @property
    def seat(self) -> int:
        """Give the number of this seat, 0 or 1."""
        return self._table.seat

    @property
    def position(self) -> int:
        """Give the number of the message that is owed next."""
        return self._state.counter

    @property
    def result(self) -> SignedResult | None:
        """Give the result once this device has both signatures."""
        return closing.signed_result(self._table)

    @property
    def has_resigned(self) -> bool:
        """Tell whether this device signed that it gives the match up."""
        statement = self._state.statement
        return statement is not None and statement.ending is Ending.RESIGNED and statement.winner != self.seat

    @property
    def step(self) -> Step:
        """Tell again what is to be done now, also after `load`."""
        state = self._state
        if state.evidence is not None:
            return Rejected(state.evidence)
        if state.outbox is not None:
            return Send(state.outbox)
        if self.result is not None:
            return Finished(self.result)
        return Choose(self._options()) if self._table.owing == self.seat else Wait()

    def view(self) -> View:
        """Show what this seat may know."""
        return look(self._table, self._options())

    def receive(self, counter: int, phase: int, envelope: bytes) -> Step:
        """Take what the relay delivered.

        An envelope that was accepted before changes nothing and gives Wait.
        """
        if self._is_over:
            return Wait()
        try:
            if self._state.due is K.HELLO:
                return self._greeted(counter, phase, envelope)
            return self._received(counter, phase, envelope)
        except TransportError as error:
            return Unreadable(str(error))

    def act(self, choice: Choice) -> Step:
        """Do what the player chose.

        Raises:
            LocalProtocolError: No choice is due, or not this one; nothing changed.
        """
        if self._is_over or choice not in self._options():
            raise LocalProtocolError("this choice is not one of the legal ones now")
        if isinstance(choice, Play):
            return self._send(K.T1, playing.build_play(self._table, choice))
        return self._send(K.T3, playing.build_flip(self._table, choice))

    def resign(self) -> Step:
        """Give the match up: now if this seat owes a choice, else with the next message it owes.

        Where the protocol has no place for it any more, the match just ends as it stands.

        Raises:
            LocalProtocolError: The match is over.
        """
        if self._is_over:
            raise LocalProtocolError("the match is over")
        self._state.is_resigning = True
        return self._proceed()

    def close(self) -> None:
        """Erase keys, outbox and secrets: the match is closed at the relay."""
        self._table.erase()
        self._state.channel, self._state.outbox, self._state.is_closed = None, None, True

    @property
    def _is_over(self) -> bool:
        state = self._state
        return state.due is None or state.evidence is not None or state.is_closed

    def _options(self) -> tuple[Choice, ...]:
        """List the choices of which one is due from this seat; () if none is."""
        if self._is_over or self._table.owing != self.seat:
            return ()
        if self._state.due is K.T1:
            return playing.play_options(self._table)
        return playing.flip_options(self._table) if self._state.due is K.T3 else ()

    # Receiving: section 10, in exactly this order.

    def _greeted(self, counter: int, phase: int, data: bytes) -> Step:
        if counter != self._state.counter or self._table.owing == self.seat:
            raise TransportError("the envelope's number is not the one expected")
        if phase != phase_of(K.HELLO):
            raise TransportError("the phase is not that of the message")
        try:
            opening.accept_greeting(self._table, data)
        except RemoteProtocolError as error:
            return self._reject(error, Signed.cut(data))
        self._meet(data)
        self._state.outbox = None
        return self._proceed()

    def _received(self, counter: int, phase: int, envelope: bytes) -> Step:
        state, table = self._state, self._table
        if counter < 2:
            return Wait()  # greetings once more
        if table.sender_of(counter) == self.seat or counter > state.counter:
            raise TransportError("the envelope's number is not the one expected")
        if counter < state.counter:
            return self._received_again(counter, envelope)
        plaintext = table.channel.decrypt(envelope)
        message = Signed.cut(plaintext)
        try:
            kind = self._accept(counter, phase, plaintext)
        except RemoteProtocolError as error:
            return self._reject(error, message)
        except ProofError as error:
            return self._reject(RemoteProtocolError(Reason(error.reason), str(error)), message)
        except _FAULTS:
            return self._reject(RemoteProtocolError(Reason.FORM, "the message cannot be processed"), message)
        state.fingerprint, state.outbox = message.fingerprint, None
        self._advance(kind, message)
        return self._proceed()

    def _received_again(self, counter: int, envelope: bytes) -> Step:
        """Ignore an old number, unless the peer signed two different messages under the last one."""
        channel = self._table.channel
        if counter < self._state.counter - 2:
            return Wait()
        try:
            plaintext = channel.decrypt(envelope)
        except TransportError:
            return Wait()
        message = Signed.cut(plaintext)
        complete = len(plaintext) >= HEADER_SIZE + SIGNATURE_SIZE
        if not complete or message.counter != counter or not channel.is_signed(message):
            return Wait()
        if message.fingerprint == self._state.fingerprint:
            return Wait()
        return self._reject(RemoteProtocolError(Reason.EQUIVOCATION, "two messages under one number"), message)

    def _accept(self, counter: int, phase: int, plaintext: bytes) -> Kind:
        table, due = self._table, self._state.due
        kind, message = kind_of(plaintext), Signed.cut(plaintext)
        if message.counter != counter:
            raise TransportError("the number inside is another")
        require(message.head == self._state.head, Reason.CHAIN, "the head is another")
        require(table.channel.is_signed(message), Reason.CHAIN, "the signature is wrong")
        payload = message.payload
        is_restart = kind is K.AU1 and due in _AUDIT_ANSWERS
        is_resignation = kind is K.RESIGN and closing.may_resign(table)
        require(kind is due or is_restart or is_resignation, Reason.FORM, f"{kind.name} is not expected now")
        if phase != phase_of(kind):
            raise TransportError("the phase is not that of the message")
        if is_restart:
            auditing.count_restart(table, table.peer)
        if kind is K.S1:
            dealing.require_attempt(table)
        require_length(kind, payload)
        PARTS[kind].accept(table, payload)
        return kind

    def _reject(self, error: RemoteProtocolError, message: Signed | None) -> Rejected:
        state = self._state
        body, signature = (message.body, message.signature) if message else (b"", b"")
        known = self._evidenced()
        state.evidence = Evidence(error.reason, error.check, state.head, body, signature, *known)
        state.outbox = None
        self._table.erase()
        return Rejected(state.evidence)

    def _evidenced(self) -> tuple[bytes, bytes]:
        """Give the session's id and the own message to which the peer answers, as far as there are any."""
        channel, sent = self._state.channel, self._state.outbox
        if channel is None:
            return b"", b""
        if sent is None or sent.phase is phase_of(K.HELLO):  # which travels unsealed
            return channel.session_id, b""
        return channel.session_id, channel.reopen(sent.envelope)

    # Sending.

    def _proceed(self) -> Step:
        """Make the message that this seat owes, if it owes one that needs no choice."""
        state, table = self._state, self._table
        if state.due is None:
            return self.step
        if table.owing != self.seat:
            return Wait()
        if state.due is K.HELLO:
            return self._greet()
        kind = state.due
        if state.is_resigning and closing.may_resign(table):
            kind = K.RESIGN
        try:
            if kind is K.S1:
                dealing.require_attempt(table)
            if kind in _AUDIT_ANSWERS and table.commitment is None:
                auditing.count_restart(table, self.seat)
                kind = K.AU1
        except RemoteProtocolError as error:
            return self._reject(error, None)
        build = PARTS[kind].build
        return self._send(kind, build(table)) if build else self._ask()

    def _ask(self) -> Step:
        """Ask the player, except where the turned card leaves nothing to choose or to decide."""
        options = self._options()
        if options == (Flip(),):
            return self.act(options[0])
        return Choose(options)

    def _greet(self) -> Step:
        data = opening.build_greeting(self._table)
        self._state.outbox = Outgoing(self._state.counter, phase_of(K.HELLO), data)
        self._meet(data)
        return Send(self._state.outbox)

    def _send(self, kind: Kind, payload: bytes) -> Step:
        state, channel = self._state, self._table.channel
        message = channel.sign(self._table.device, kind, state.counter, state.head, payload)
        envelope = channel.seal(message, self._table.draw("aead", size=24))
        state.outbox = Outgoing(state.counter, phase_of(kind), envelope)
        self._advance(kind, message)
        return Send(state.outbox)

    # What both sides do once a message is accepted.

    def _meet(self, data: bytes) -> None:
        self._state.counter += 1
        self._state.due = opening.after_greeting(self._table, data)

    def _advance(self, kind: Kind, message: Signed) -> None:
        state = self._state
        state.head = message.next_head()
        state.counter += 1
        due = PARTS[kind].after(self._table)
        assert due in TRANSITIONS[kind]
        state.due = due
        if due is None:
            self._table.erase()
