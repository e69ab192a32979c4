"""What a seat makes of an envelope: docs/protocol.md section 10, check 1, in its order."""

import pytest
from koikoi_sdk.table import Choose, Kind, Outgoing, Reason, Rejected, Seat, Send, Step, Unreadable, Wait
from koikoi_sdk.table.envelope import Signed

from tests.unit.table.pair import DEVICES, Pair, reached, sign_body


@pytest.fixture
def pair() -> Pair:
    """The first play is in flight from the dealer."""
    return reached(Kind.T1)


def receiver(pair: Pair) -> Seat:
    return pair.other(pair.sender)


def seal(pair: Pair, plaintext: bytes) -> Outgoing:
    """Encrypt anything with the session's keys, as only the peer can."""
    message = pair.flying
    envelope = pair.sender._table.channel.seal(Signed(plaintext, b""), b"n" * 24)
    return Outgoing(message.counter, message.phase, envelope)


def deliver(pair: Pair, message: Outgoing, phase: int | None = None) -> Step:
    phase = message.phase if phase is None else phase
    return receiver(pair).receive(message.counter, phase, message.envelope)


def assert_unreadable(pair: Pair, message: Outgoing, phase: int | None = None) -> None:
    before = receiver(pair).dump()
    assert isinstance(deliver(pair, message, phase), Unreadable)
    assert receiver(pair).dump() == before
    assert isinstance(pair.advance(), Send | Choose), "the right envelope is still accepted"


def assert_rejected(pair: Pair, message: Outgoing, reason: Reason, phase: int | None = None) -> None:
    seat = receiver(pair)
    step = deliver(pair, message, phase)
    assert isinstance(step, Rejected)
    assert step.evidence.reason is reason
    assert seat.step == step
    assert seat.receive(message.counter, message.phase, pair.flying.envelope) == Wait(), "the match stopped"
    assert pair.reload(seat).step == step
    assert seat._state.outbox is None
    assert not seat._table.deals


def test_the_honest_message_is_answered(pair: Pair):
    assert isinstance(pair.advance(), Send)


# (a) the relay's number, and the AEAD


@pytest.mark.parametrize("shift", [-3, -1, 1, 2, 3, 2**31])
def test_another_number_than_expected(pair: Pair, shift: int):
    message = pair.flying
    moved = Outgoing(message.counter + shift, message.phase, message.envelope)
    assert_unreadable(pair, moved)


def test_one_message_at_a_time():
    """While this seat's player thinks, nothing can come."""
    pair = reached(Kind.S4)
    pair.advance()
    seat = pair.sender
    assert isinstance(seat.step, Choose)
    before = seat.dump()
    for ahead in (0, 1, 2):
        assert isinstance(seat.receive(seat.position + ahead, 4, b"x" * 653), Unreadable)
    assert seat.dump() == before


@pytest.mark.parametrize("length", [0, 1, 23, 24, 39, 40, 41, 652, 653, 654, 3725, 9357])
def test_bytes_that_do_not_open(pair: Pair, length: int):
    message = pair.flying
    assert_unreadable(pair, Outgoing(message.counter, message.phase, b"g" * length))


@pytest.mark.parametrize("at", [0, 23, 24, 100, 652])
def test_a_changed_bit(pair: Pair, at: int):
    message = pair.flying
    envelope = bytearray(message.envelope)
    envelope[at] ^= 1
    assert_unreadable(pair, Outgoing(message.counter, message.phase, bytes(envelope)))


def test_an_envelope_of_another_match(pair: Pair):
    other = Pair(seed=99).run_to(Kind.T1)
    message = pair.flying
    assert_unreadable(pair, Outgoing(message.counter, message.phase, other.flying.envelope))


def test_the_own_message_reflected(pair: Pair):
    seat = receiver(pair)
    own = Outgoing(seat._state.outbox.counter, 3, seat._state.outbox.envelope)
    assert isinstance(seat.receive(own.counter, own.phase, own.envelope), Unreadable)
    assert_unreadable(pair, Outgoing(pair.flying.counter, 4, own.envelope))


# (b) type and size


@pytest.mark.parametrize("code", [0, 2, 9, 14, 23, 34, 41, 52, 255])
def test_an_unknown_type(pair: Pair, code: int):
    assert_rejected(pair, pair.forge(body=lambda body: bytes([code]) + body[1:]), Reason.FORM)


@pytest.mark.parametrize("size", [0, 1, 36, 37, 64, 100, 101, 612, 614, 3685, 9317])
def test_another_size_than_the_types(pair: Pair, size: int):
    assert_rejected(pair, seal(pair, (b"\x14" + bytes(9400))[:size]), Reason.FORM)


def test_a_type_in_the_wrong_class(pair: Pair):
    assert_rejected(pair, pair.forge(body=lambda body: b"\x20" + body[1:]), Reason.FORM)


def test_type_and_size_come_before_the_number(pair: Pair):
    """(b) before (c)."""
    number = pair.flying.counter + 2
    forged = pair.forge(body=lambda body: b"\x63" + number.to_bytes(4, "big") + body[5:])
    assert_rejected(pair, forged, Reason.FORM)


# (c) the number inside


def test_another_number_inside(pair: Pair):
    assert_unreadable(pair, pair.forge(counter=pair.flying.counter + 2))


def test_the_number_comes_before_the_head(pair: Pair):
    """(c) before (d): a stale envelope under a new number is a fault of transport."""
    assert_unreadable(pair, pair.forge(counter=pair.flying.counter - 2, head=b"h" * 32))


def test_a_replay_under_the_next_number(pair: Pair):
    old = pair.flying
    for _ in range(2):
        pair.advance()
    message = pair.flying
    assert_unreadable(pair, Outgoing(message.counter, message.phase, old.envelope))


# (d) the head, (e) the signature


def test_another_head(pair: Pair):
    assert_rejected(pair, pair.forge(head=b"h" * 32), Reason.CHAIN)


def test_another_signer(pair: Pair):
    assert_rejected(pair, pair.forge(device=DEVICES[receiver(pair).seat]), Reason.CHAIN)


def test_a_damaged_signature(pair: Pair):
    assert_rejected(pair, pair.forge(signature=lambda s: s[:-1] + bytes([s[-1] ^ 1])), Reason.CHAIN)


def test_a_signature_for_another_recipient(pair: Pair):
    channel, sender = pair.sender._table.channel, pair.sender
    body = Signed.cut(pair_plaintext(pair)).body
    fields = (channel.session_id, channel.own_key, channel.own_key, body)
    signature = sender._table.device.sign("msg", *fields)
    assert_rejected(pair, seal(pair, body + signature), Reason.CHAIN)


def test_the_signature_comes_before_the_padding(pair: Pair):
    """(e) before (f)."""
    forged = pair.forge(body=lambda body: body[:-1] + b"\1", device=DEVICES[receiver(pair).seat])
    assert_rejected(pair, forged, Reason.CHAIN)


# (f) length and padding, (g) type expected, (h) phase


def test_padding_that_is_not_zero(pair: Pair):
    assert_rejected(pair, pair.forge(body=lambda body: body[:-1] + b"\1"), Reason.FORM)


def test_a_length_beyond_the_class(pair: Pair):
    assert_rejected(pair, pair.forge(body=lambda body: body[:37] + b"\xff\xff" + body[39:]), Reason.FORM)


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (Kind.HELLO, Kind.T1, Kind.RESIGN)])
def test_a_message_that_is_not_expected(pair: Pair, kind: Kind):
    assert_rejected(pair, pair.forge(lambda payload: b"", kind), Reason.FORM)


def test_the_phase_comes_last(pair: Pair):
    """(g) before (h): a server that changes the phase accuses nobody; an unexpected type is the peer's fault."""
    assert_rejected(pair.copy(), pair.forge(lambda payload: b"", Kind.T2), Reason.FORM, phase=3)
    assert_unreadable(pair, pair.flying, phase=3)


def test_a_phase_beside_a_bad_payload_is_a_transport_error(pair: Pair):
    """(h) before check 2."""
    assert_unreadable(pair, pair.forge(lambda payload: payload[:-1]), phase=3)


@pytest.mark.parametrize("length", [0, 1, 66, 68, 510])
def test_another_payload_length(pair: Pair, length: int):
    assert_rejected(pair, pair.forge(lambda payload: (payload + bytes(510))[:length]), Reason.FORM)


# Old numbers and equivocation


def test_what_was_accepted_before_is_ignored(pair: Pair):
    old = pair.flying
    pair.advance()
    seat = pair.sender
    before = seat.dump()
    for message in (old, *[m for m in pair.log if m.counter % 2 == old.counter % 2]):
        assert seat.receive(message.counter, message.phase, message.envelope) == Wait()
    assert seat.dump() == before


def test_garbage_under_an_old_number_is_ignored(pair: Pair):
    sealed = [seal(pair, b"x" * size) for size in (0, 5, 100, 101, 613)]
    forged = [
        pair.forge(lambda p: p[:-1] + b"\1", counter=pair.flying.counter - 2),
        pair.forge(head=b"h" * 32, device=DEVICES[receiver(pair).seat]),
    ]
    old = pair.flying
    pair.advance()
    seat = pair.sender
    before = seat.dump()
    for message in (*sealed, *forged):
        assert seat.receive(old.counter, 4, message.envelope) == Wait()
        assert seat.receive(old.counter - 2, 4, message.envelope) == Wait()
    assert seat.receive(old.counter, 4, b"short") == Wait()
    assert seat.dump() == before


@pytest.mark.parametrize(
    "body", [lambda b: b[:37] + b"\0\0" + bytes(510), lambda b: b"\x63" + b[1:], lambda b: b[:5] + b"h" * 32 + b[37:]]
)
def test_two_signed_messages_under_one_number(pair: Pair, body):
    old, second = pair.flying, pair.forge(body=body)
    pair.advance()
    seat = pair.sender
    step = seat.receive(old.counter, 4, second.envelope)
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.EQUIVOCATION
    channel = pair.other(seat)._table.channel
    assert sign_body(channel, DEVICES[1 - seat.seat], step.evidence.body).signature == step.evidence.signature


def test_the_same_message_sealed_anew_is_no_equivocation(pair: Pair):
    old, again = pair.flying, pair.forge()
    assert again.envelope != old.envelope
    pair.advance()
    assert pair.sender.receive(old.counter, 4, again.envelope) == Wait()


def test_equivocation_is_seen_while_the_own_answer_is_in_flight(pair: Pair):
    old, second = pair.flying, pair.forge(body=lambda b: b[:37] + b"\0\0" + bytes(510))
    pair.advance()
    pair.advance()
    seat = pair.other(pair.sender)
    assert isinstance(seat.receive(old.counter, 4, second.envelope), Rejected)


def pair_plaintext(pair: Pair) -> bytes:
    forged = pair.forge()
    return receiver(pair)._table.channel.decrypt(forged.envelope)


def test_evidence_can_be_checked_by_others(pair: Pair):
    seat, sender = receiver(pair), pair.sender
    step = deliver(pair, pair.forge(lambda payload: payload[:-1]))
    assert isinstance(step, Rejected)
    evidence = step.evidence
    assert sign_body(sender._table.channel, DEVICES[sender.seat], evidence.body).signature == evidence.signature
    assert Signed(evidence.body, evidence.signature).head == evidence.head == seat._state.head
    assert "length" in evidence.check


def test_a_fault_of_ours_in_parsing_crashes_nobody(pair: Pair):
    """A durable envelope that crashed a device would crash it on every resume."""
    receiver(pair)._table.deals.clear()
    assert_rejected(pair, pair.flying, Reason.FORM)
