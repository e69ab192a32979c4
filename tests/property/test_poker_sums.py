"""Weighted sums of public points, as proofs are checked, against one multiplication after the other."""

from hypothesis import given, settings
from hypothesis import strategies as st
from koikoi_sdk.poker import group
from koikoi_sdk.poker.errors import ProofError

IMPLEMENTATIONS = [each for each in (group.portable_weighted_sum, group.native_weighted_sum) if each]
SPECIAL = [0, 1, 2, 15, 16, 17, 31, 32, 33, 2**64 - 1, 2**128, 2**252 - 1, 2**252, group.ORDER - 2, group.ORDER - 1]
NUMBERS = st.sampled_from(SPECIAL) | st.integers(0, group.ORDER - 1)
ANY = st.binary(min_size=64, max_size=64).map(group.hash_to_point)
FEW = st.integers(0, 3).map(lambda number: group.multiply_base(number.to_bytes(32, "little")))  # equal ones, identities
POINTS = st.one_of(ANY, FEW, FEW.map(lambda point: group.subtract(group.IDENTITY, point)))
TERMS = st.lists(st.tuples(NUMBERS, POINTS), max_size=6) | st.lists(
    st.tuples(NUMBERS, POINTS), min_size=30, max_size=40
)


@settings(max_examples=100)
@given(TERMS)
def test_all_give_the_same_sum(terms: list[tuple[int, bytes]]) -> None:
    scalars, points = [number.to_bytes(32, "little") for number, _ in terms], [point for _, point in terms]
    expected = group.weighted_sum(scalars, points)
    assert [implementation(scalars, points) for implementation in IMPLEMENTATIONS] == [expected] * len(IMPLEMENTATIONS)


NEAR_THE_PRIME = st.integers(2**255 - 300, 2**255 + 300).map(lambda number: number.to_bytes(32, "little"))
ENCODINGS = st.one_of(st.binary(min_size=32, max_size=32), NEAR_THE_PRIME, ANY)


@settings(max_examples=300)
@given(ENCODINGS, st.integers(0, 255), st.integers(0, 2**256 - 1) | NUMBERS)
def test_all_refuse_the_same(encoding: bytes, bit: int, number: int) -> None:
    flipped = (int.from_bytes(encoding, "little") ^ 1 << bit).to_bytes(32, "little")
    for point in (encoding, flipped):
        verdicts = []
        for implementation in IMPLEMENTATIONS:
            try:
                verdicts.append(implementation([number.to_bytes(32, "little")], [point]))
            except ProofError as error:
                verdicts.append(bytes([error.reason]))
        assert len(set(verdicts)) == 1
        assert (verdicts[0] == b"\1") == (number >= group.ORDER or not is_point(point))


def is_point(encoding: bytes) -> bool:
    try:
        group.require_points([encoding], "point")
    except ProofError:
        return encoding == group.IDENTITY
    return True
