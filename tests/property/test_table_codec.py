from hypothesis import given
from hypothesis import strategies as st
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.table import Kind
from koikoi_sdk.table.codec import FORMS, Answered, Committed, Flipped, Played
from koikoi_sdk.table.envelope import OVERHEAD, Channel, Signed, kind_of

ONE, TWO = DeviceKey(b"1" * 32), DeviceKey(b"2" * 32)
SENDER = Channel(b"m" * 32, b"k" * 32, b"l" * 32, ONE.public, TWO.public)
RECEIVER = Channel(b"m" * 32, b"l" * 32, b"k" * 32, TWO.public, ONE.public)
KINDS = st.sampled_from(sorted(FORMS))


@given(
    KINDS.flatmap(lambda kind: st.tuples(st.just(kind), st.binary(max_size=FORMS[kind].size - 2))),
    st.integers(0, 2**32 - 1),
    st.binary(min_size=32, max_size=32),
)
def test_what_is_opened_is_what_was_sealed(message: tuple[Kind, bytes], counter: int, head: bytes):
    kind, payload = message
    signed = SENDER.sign(ONE, kind, counter, head, payload)
    envelope = SENDER.seal(signed, b"n" * 24)
    assert len(envelope) == FORMS[kind].size + OVERHEAD
    plaintext = RECEIVER.decrypt(envelope)
    assert kind_of(plaintext) is kind
    opened = Signed.cut(plaintext)
    assert (opened.counter, opened.head, opened.payload) == (counter, head, payload)
    assert RECEIVER.is_signed(opened)
    assert opened.next_head() == signed.next_head()


@given(st.binary(min_size=3, max_size=70))
def test_payloads_are_cut_as_they_were_joined(payload: bytes):
    for part in (Played, Flipped, Answered):
        assert part.cut(payload).join() == payload


@given(st.binary(min_size=64, max_size=96))
def test_commitments_are_cut_as_they_were_joined(payload: bytes):
    assert Committed.cut(payload).join() == payload
