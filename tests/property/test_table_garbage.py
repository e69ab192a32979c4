"""Nothing received may crash a device: it answers with one of two verdicts, or ignores it."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from koikoi_sdk.table import Kind, Reason, Rejected, Unreadable, Wait
from koikoi_sdk.table.codec import FORMS
from koikoi_sdk.table.envelope import Signed

from tests.unit.table.pair import Pair, audited, opened, reached, started


def at(kind: Kind) -> Pair:
    if kind in (Kind.COIN_OPEN, Kind.NEXT):
        return Pair(seed=100).run_to(Kind.COIN_OPEN) if kind is Kind.COIN_OPEN else started()
    if kind >= Kind.AU1 and kind is not Kind.RESIGN:
        return audited(kind)
    return reached(kind)


KINDS = [kind for kind in FORMS if kind is not Kind.RESIGN]


@settings(max_examples=150)
@given(
    counter=st.integers(-(2**40), 2**40) | st.integers(0, 12),
    phase=st.integers(-1, 300),
    data=st.binary(max_size=10_000),
)
def test_garbage_from_the_server(counter: int, phase: int, data: bytes):
    for pair in (reached(Kind.T1), Pair()):
        for seat in pair.seats:
            before = seat.dump()
            assert isinstance(seat.receive(counter, phase, data), Unreadable | Wait)
            assert seat.dump() == before


def test_garbage_of_every_length_from_the_server():
    pair = reached(Kind.T1)
    message, seat = pair.flying, pair.other(pair.sender)
    before = seat.dump()
    for length in range(800):
        assert isinstance(seat.receive(message.counter, message.phase, b"\x5a" * length), Unreadable)
    assert seat.dump() == before


@settings(max_examples=60)
@given(
    plaintext=st.binary(max_size=700)
    | st.builds(lambda k, b: bytes([k]) + b, st.sampled_from(sorted(FORMS)), st.binary(min_size=612, max_size=612))
)
@example(b"")
def test_garbage_sealed_by_the_peer(plaintext: bytes):
    pair = reached(Kind.T1)
    message = pair.flying
    envelope = pair.sender._table.channel.seal(Signed(plaintext, b""), b"n" * 24)
    step = pair.other(pair.sender).receive(message.counter, message.phase, envelope)
    assert isinstance(step, Rejected | Unreadable)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(payload=st.data())
def test_garbage_signed_by_the_peer(kind: Kind, payload: st.DataObject):
    """Payloads of the right and of any other length, filled with anything."""
    form = FORMS[kind]
    lengths = st.sampled_from(form.lengths) if form.lengths else st.integers(0, form.size - 2)
    length = payload.draw(lengths | st.integers(0, form.size - 2))
    fill = payload.draw(st.sampled_from([b"\0", b"\xff", b"\x01", b"\x7f"]) | st.binary(min_size=1, max_size=64))
    data = (fill * (length // len(fill) + 1))[:length]
    pair = at(kind)
    if data == opened(pair.sender, pair.flying).payload:
        return
    step = pair.cheat(lambda _: data)
    assert isinstance(step, Rejected)
    assert Reason.FORM <= step.evidence.reason <= Reason.RESULT


@pytest.mark.parametrize("kind", [Kind.S1, Kind.S2, Kind.S3, Kind.T1, Kind.T2, Kind.T3])
@settings(max_examples=12)
@given(at_byte=st.integers(0, 9000), value=st.integers(1, 255))
def test_one_changed_byte_of_a_true_message(kind: Kind, at_byte: int, value: int):
    pair = at(kind)

    def alter(payload: bytes) -> bytes:
        place = at_byte % len(payload)
        return payload[:place] + bytes([payload[place] ^ value]) + payload[place + 1 :]

    assert isinstance(pair.cheat(alter), Rejected)
