"""Deals over many seeds: cards are conserved, both devices agree, damaged messages never crash."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from koikoi_sdk.poker import ProofError, group
from koikoi_sdk.poker.transcript import permutation

from tests.unit.poker.pair import Pair, copied

FEW = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
DEALT = Pair(b"property").deal()


@FEW
@given(st.binary(min_size=1, max_size=8), st.data())
def test_48_cards_are_conserved_and_both_devices_agree(name: bytes, data: st.DataObject) -> None:
    pair = Pair(name).deal()
    hands = data.draw(st.permutations(range(8))), data.draw(st.permutations(range(8, 16)))
    assert pair.dealer.field == pair.other.field
    for turn in range(data.draw(st.integers(0, 16))):
        pair.turn(hands[turn % 2][turn // 2])
        pair.dealer, pair.other = copied(pair.dealer), copied(pair.other)
    known = {**pair.dealer.cards, **pair.other.cards}
    assert pair.dealer.state.opened == pair.other.state.opened
    assert len(set(known.values())) == len(known)
    assert set(known.values()) <= set(range(48))


@MANY
@given(st.integers(0, 65), st.integers(0, 7))
def test_a_play_with_one_bit_changed_is_refused(at: int, bit: int) -> None:
    dealer, other = copied(DEALT.dealer), copied(DEALT.other)
    payload = bytearray(dealer.play(3, b"h", b"f"))
    payload[at] ^= 1 << bit
    try:
        other.accept_play(bytes(payload), b"h")
    except ProofError:
        assert 3 not in other.state.opened
    else:
        raise AssertionError("a changed play was accepted")


@MANY
@given(st.binary(max_size=100))
def test_arbitrary_bytes_are_refused_and_never_crash(payload: bytes) -> None:
    other = copied(DEALT.other)
    before = vars(copied(other).state)
    for receive in (other.accept_play, other.accept_token, other.accept_flip, other.accept_field, other.accept_first):
        try:
            receive(payload, b"h")
        except ProofError:
            continue
        raise AssertionError("arbitrary bytes were accepted")
    assert vars(other.state) == before


@MANY
@given(st.integers(1, 256), st.binary(max_size=40))
def test_a_permutation_is_one(size: int, seed: bytes) -> None:
    assert sorted(permutation(size, "property", seed)) == list(range(size))


@MANY
@given(st.integers(0, group.ORDER - 1), st.integers(0, group.ORDER - 1))
def test_multiplication_distributes_over_addition(a: int, b: int) -> None:
    x, y = a.to_bytes(32, "little"), b.to_bytes(32, "little")
    total = group.scalar_add(x, y)
    assert group.multiply_base(total) == group.add(group.multiply_base(x), group.multiply_base(y))
    point = group.multiply_base(y)
    assert group.multiply(x, point) == group.multiply_base(group.scalar_multiply(x, y))
