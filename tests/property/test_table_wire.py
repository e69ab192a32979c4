"""Two seats over a wire that drops, repeats, reorders, damages and mislabels, with devices that restart."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from koikoi_sdk.table import Choose, Finished, Kind, Outgoing, Send, Unreadable, Wait

from tests.unit.table.pair import Pair, audited, has_teshi, reached, started

STARTS = {
    "greetings": lambda: Pair(seed=5),
    "deal": started,
    "play": lambda: reached(Kind.T1),
    "late": lambda: reached(Kind.T1, 14),
    "boardgameland": lambda: reached(Kind.T2, 15, "boardgameland"),
    "hand yaku": lambda: started().skip(5).stack(has_teshi),
    "audit": lambda: audited(Kind.AU2),
    "closing": lambda: audited(Kind.RESULT_SIGN),
}


class Wire(RuleBasedStateMachine):
    """The seats must agree whatever the wire does, as long as the right bytes arrive in the end."""

    @initialize(start=st.sampled_from(sorted(STARTS)))
    def begin(self, start: str):
        self.pair = STARTS[start]()
        self.restarts = 0

    @property
    def is_over(self) -> bool:
        return all(seat.result is not None for seat in self.pair.seats)

    @precondition(lambda self: not self.is_over)
    @rule(choice=st.integers(0, 50))
    def deliver(self, choice: int):
        self.pair.pick = lambda seat, options: options[choice % len(options)]
        step = self.pair.advance()
        assert isinstance(step, Send | Choose | Finished), step

    @precondition(lambda self: self.pair.log)
    @rule(index=st.integers(0, 400))
    def deliver_again(self, index: int):
        message = self.pair.log[index % len(self.pair.log)]
        seat = self.receiver_of(message)
        before = seat.dump()
        assert seat.receive(message.counter, message.phase, message.envelope) == Wait()
        assert seat.dump() == before

    @precondition(lambda self: not self.is_over and not self.is_choosing)
    @rule(shift=st.integers(-6, 6), seat=st.integers(0, 1))
    def mislabel(self, shift: int, seat: int):
        """Another number: ignored if it is an old one, else refused; never a change."""
        message = self.pair.flying
        if shift and (shift % 2 or seat == self.pair.other(self.pair.sender).seat):
            self.expect_nothing(seat, Outgoing(message.counter + shift, message.phase, message.envelope))

    @precondition(lambda self: not self.is_over and not self.is_choosing)
    @rule(phase=st.integers(0, 255))
    def change_phase(self, phase: int):
        message = self.pair.flying
        if phase != message.phase:
            receiver = self.pair.other(self.pair.sender).seat
            self.expect_nothing(receiver, Outgoing(message.counter, phase, message.envelope), unreadable=True)

    @precondition(lambda self: not self.is_over and not self.is_choosing)
    @rule(at=st.integers(0, 9400), bit=st.integers(0, 7), cut=st.booleans())
    def damage(self, at: int, bit: int, cut: bool):
        message = self.pair.flying
        envelope = bytearray(message.envelope)
        at %= len(envelope)
        envelope[at] ^= 1 << bit
        damaged = bytes(envelope[:at] if cut else envelope)
        receiver = self.pair.other(self.pair.sender).seat
        self.expect_nothing(receiver, Outgoing(message.counter, message.phase, damaged), unreadable=True)

    @precondition(lambda self: self.is_auditing is False or self.restarts < 2)
    @rule(seat=st.integers(0, 1))
    def restart(self, seat: int):
        self.restarts += self.is_auditing
        before = self.pair.seats[seat].step
        assert self.pair.reload(self.pair.seats[seat]).step == before

    @invariant()
    def exactly_one_side_owes(self):
        if hasattr(self, "pair") and not self.is_over:
            positions = [seat.position for seat in self.pair.seats]
            assert abs(positions[0] - positions[1]) <= 1
            owing = [seat for seat in self.pair.seats if isinstance(seat.step, Choose)]
            newest = max(positions)
            sending = [s for s in self.pair.seats if isinstance(s.step, Send) and s.position == newest]
            assert len(owing) == 1 or len(sending) == 1

    @invariant()
    def both_agree(self):
        if hasattr(self, "pair"):
            seats = self.pair.seats
            if seats[0].position == seats[1].position:
                assert seats[0]._state.head == seats[1]._state.head
                assert seats[0]._state.due == seats[1]._state.due
                assert seats[0].view().results == seats[1].view().results
                boards = [seat._state.round and seat._state.round.board for seat in seats]
                assert boards[0] == boards[1]
            if self.is_over:
                assert seats[0].result == seats[1].result

    @property
    def is_choosing(self) -> bool:
        return any(isinstance(seat.step, Choose) for seat in self.pair.seats)

    @property
    def is_auditing(self) -> bool:
        return any(seat._state.due in (Kind.AU2, Kind.AU3, Kind.AU4) for seat in self.pair.seats)

    def receiver_of(self, message: Outgoing):
        return self.pair.b if message.counter % 2 == 0 else self.pair.a

    def expect_nothing(self, seat: int, message: Outgoing, *, unreadable: bool = False):
        device = self.pair.seats[seat]
        before = device.dump()
        step = device.receive(message.counter, message.phase, message.envelope)
        assert isinstance(step, Unreadable) or (step == Wait() and not unreadable), step
        assert device.dump() == before


Wire.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestWire = Wire.TestCase
