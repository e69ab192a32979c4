"""The relay against a simple model: two lists of what was accepted, and who may speak."""

import hashlib

import hypothesis.strategies as st
from hypothesis import assume, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.match.domain import relay
from services.match.domain.deadlines import Limits
from services.match.domain.envelope import SUCCESSIONS, Envelope, digest
from services.match.domain.errors import (
    EnvelopeConflict,
    EnvelopeInvalid,
    FrameInvalid,
    MatchClosed,
    NotYourTurn,
    RelayError,
    Superseded,
)
from services.match.domain.match import Match
from services.match.domain.outcomes import Outcome

LIMITS = Limits()
CHARGED = {Outcome.STALLED, Outcome.ABANDONED, Outcome.RESIGNED}

seats = st.integers(0, 1)
payloads = st.integers(0, 3)


def body(number: int, variant: int) -> bytes:
    return (
        hashlib.sha256(f"{number}/{variant}".encode()).digest() * 20 + bytes(13)
        if number >= 2
        else bytes([variant]) * 131
    )


class RelayMachine(RuleBasedStateMachine):
    """The model is the list of accepted (phase, bytes), the live connection of each seat, and the time."""

    @initialize(first_seat=seats)
    def begin(self, first_seat: int):
        self.now = 0
        self.first_seat = first_seat
        self.log: list[tuple[int, bytes]] = []
        self.speaker: list[str] = ["", ""]
        self.here = [False, False]
        self.names = 0
        self.match: Match = relay.create(first_seat, 0, LIMITS.match_ms, b"epoch---", LIMITS)

    def refused_with(self, act, kind: type[RelayError]) -> None:
        before = self.match
        try:
            act()
        except kind:
            assert self.match is before
            return
        raise AssertionError(f"{kind.__name__} was not raised")

    @property
    def closings(self) -> int:
        return sum(phase == 6 for phase, _ in self.log)

    def owner(self, number: int) -> int:
        return self.first_seat if number % 2 == 0 else 1 - self.first_seat

    @rule(seat=seats, behind=st.integers(0, 3))
    def join(self, seat: int, behind: int):
        position = max(0, len(self.log) - behind)
        self.names += 1
        name = f"c{self.names}"
        before = self.match
        self.match = relay.join(self.match, seat, (name, "p"), position, self.now, b"new-----", LIMITS)
        if before.ending is not None:
            assert self.match is before
            return
        self.speaker[seat], self.here[seat] = name, True
        last_is_theirs = bool(self.log) and self.owner(len(self.log) - 1) != seat
        assert self.match.missed(seat, position) == (last_is_theirs and position < len(self.log))

    @rule(seat=seats, is_doubt=st.booleans())
    def leave(self, seat: int, is_doubt: bool):
        if is_doubt:
            self.match = relay.doubt(self.match, seat, self.speaker[seat], self.now, self.now, LIMITS)
        else:
            self.match = relay.depart(self.match, seat, self.speaker[seat], self.now)
        if self.match.ending is None:
            self.here[seat] = False

    @rule(seat=seats, number=st.integers(-3, 3), phase=st.integers(0, 7), variant=payloads)
    def send(self, seat: int, number: int, phase: int, variant: int):
        number += len(self.log)
        assume(number >= 0)
        data = body(number, variant)

        def act() -> None:
            self.match = relay.accept(
                self.match, seat, self.speaker[seat], Envelope(number, phase, data), self.now, LIMITS
            )

        if self.match.ending is not None:
            self.refused_with(act, MatchClosed)
        elif phase > 6 or (phase == 0) != (number < 2):
            self.refused_with(act, EnvelopeInvalid)
        elif self.owner(number) != seat or number > len(self.log) or number < len(self.log) - 2:
            self.refused_with(act, NotYourTurn)
        elif number < len(self.log):
            if data == self.log[number][1]:
                before = self.match
                act()
                assert self.match is before
            else:
                self.refused_with(act, EnvelopeConflict)
        elif self.closings == 2:
            self.refused_with(act, NotYourTurn)
        elif self.log and phase not in SUCCESSIONS[self.log[-1][0]]:
            self.refused_with(act, EnvelopeInvalid)
        else:
            act()
            self.log.append((phase, data))

    @rule(number=st.integers(0, 1), variant=payloads)
    def send_what_is_owed(self, number: int, variant: int):
        """Take the most natural step, so that matches get somewhere."""
        phases = [0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
        if len(self.log) < len(phases):
            self.send(self.owner(len(self.log)), 0, phases[len(self.log)], variant)

    @rule(seat=seats)
    def send_as_superseded(self, seat: int):
        if self.match.ending is None and self.match.closings < 2:
            self.refused_with(
                lambda: relay.accept(self.match, seat, "stranger", Envelope(0, 0, bytes(131)), self.now, LIMITS),
                Superseded,
            )

    @precondition(lambda self: self.match.ending is None)
    @rule(ms=st.integers(0, 30_000))
    def wait(self, ms: int):
        self.now += ms
        due = self.match.due_ms
        before = self.match
        self.match = relay.expire(self.match, self.now)
        if self.now < due:
            assert self.match is before
            return
        ending = self.match.ending
        assert ending is not None
        owing = None if self.closings == 2 else self.owner(len(self.log))
        if ending.outcome is Outcome.STALLED:
            assert ending.seat == owing
            assert self.here[owing]
            assert len(self.log) >= 2
        elif ending.outcome is Outcome.ABANDONED:
            assert ending.seat == owing
            assert not self.here[owing]
        elif ending.outcome is Outcome.NEVER_STARTED:
            assert len(self.log) < 2
        elif ending.outcome is Outcome.FINISHED:
            assert self.closings == 2
        else:
            assert ending.outcome is Outcome.RESIGNED
            assert ending.seat == before.resigned

    @precondition(lambda self: self.match.ending is None)
    @rule(seat=seats)
    def resign(self, seat: int):
        first_closer = next((self.owner(n) for n, (phase, _) in enumerate(self.log) if phase == 6), None)

        def act() -> None:
            self.match = relay.resign(self.match, seat, self.speaker[seat], self.now, LIMITS)

        if first_closer == seat:
            act()
            assert self.match.resigned == seat
        else:
            self.refused_with(act, FrameInvalid)

    @precondition(lambda self: self.match.ending is None)
    @rule(seat=seats, is_proved=st.booleans())
    def finish(self, seat: int, is_proved: bool):
        had = self.match.finished[1 - seat]
        self.match = relay.finish(self.match, seat, self.speaker[seat], self.now, is_proved=is_proved)
        if self.match.resigned is not None:
            assert self.match.ending is None
        else:
            assert (self.match.ending is not None) == (is_proved or had)

    @invariant()
    def the_state_says_what_was_accepted(self):
        match = self.match
        assert match.counter == len(self.log)
        if self.log:
            assert (match.phase, match.sealed) == self.log[-1]
        rolling = bytes(32)
        for number, (_, data) in enumerate(self.log):
            rolling = digest(rolling + number.to_bytes(4, "big") + digest(data))
        assert match.rolling == rolling
        assert [seat.is_connected for seat in match.seats] == self.here

    @invariant()
    def exactly_one_side_owes_or_the_match_is_over(self):
        if self.match.ending is not None or self.closings == 2:
            assert self.match.owing is None
        else:
            assert self.match.owing == self.owner(len(self.log))
        for seat in (0, 1):
            own = [number for number in range(len(self.log)) if self.owner(number) == seat]
            assert self.match.acknowledged(seat) == (own[-1] + 1 if own else None)

    @invariant()
    def an_ending_charges_a_seat_only_where_the_list_says_so(self):
        ending = self.match.ending
        if ending is not None:
            assert (ending.seat is not None) == (ending.outcome in CHARGED)


RelayMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_the_relay_agrees_with_the_model = RelayMachine.TestCase
