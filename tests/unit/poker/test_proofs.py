"""The equality proof of tokens and openings."""

from dataclasses import replace

import pytest
from koikoi_sdk.poker import group, proofs
from koikoi_sdk.poker.errors import ProofError, Reason
from koikoi_sdk.poker.proofs import Equality
from koikoi_sdk.poker.transcript import point, secret_scalar

SECRET = secret_scalar("test/secret")
POINTS = [point("test/point", bytes([index])) for index in range(4)]


def equality(points: list[bytes] = POINTS, secret: bytes = SECRET) -> Equality:
    images = [group.multiply(secret, each) for each in points]
    return Equality(b"context", bytes(len(points)), group.multiply_base(SECRET), points, images)


def reason_of(claim: Equality, proof: bytes) -> Reason:
    with pytest.raises(ProofError) as caught:
        proofs.verify(claim, proof)
    return caught.value.reason


HONEST = equality()
PROOF = proofs.prove(HONEST, SECRET, b"z" * 64)


@pytest.mark.usefixtures("each_implementation")
@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_true_equality_is_proved_in_64_bytes(size: int) -> None:
    claim = equality(POINTS[:size])
    proof = proofs.prove(claim, SECRET, b"z" * 64)
    assert len(proof) == 64
    proofs.verify(claim, proof)


@pytest.mark.usefixtures("each_implementation")
def test_errors_that_cancel_in_the_sum_are_caught_by_the_weights() -> None:
    error = point("test/error")
    tampered = [group.add(POINTS[0], error), group.subtract(POINTS[1], error), *POINTS[2:]]
    claim = replace(HONEST, points=tampered)
    # An unweighted batch would accept this: the sums are in the right relation.
    assert group.multiply(SECRET, group.add_all(tampered)) == group.add_all(HONEST.images)
    assert reason_of(claim, proofs.prove(claim, SECRET, b"z" * 64)) is Reason.PROOF


@pytest.mark.usefixtures("each_implementation")
@pytest.mark.parametrize(
    "changed",
    [
        replace(HONEST, context=b"other"),
        replace(HONEST, label=b"\1\0\0\0"),
        replace(HONEST, key=group.multiply_base(group.ONE)),
        replace(HONEST, points=[POINTS[1], POINTS[0], *POINTS[2:]]),
        replace(HONEST, images=HONEST.images[::-1]),
        replace(HONEST, points=POINTS[:3], images=HONEST.images[:3]),
    ],
    ids=["context", "label", "key", "swapped points", "reversed images", "one fewer"],
)
def test_a_proof_holds_for_nothing_else(changed: Equality) -> None:
    assert reason_of(changed, PROOF) is Reason.PROOF


def test_another_exponent_is_refused() -> None:
    claim = equality(secret=group.scalar_add(SECRET, group.ONE))
    assert reason_of(claim, proofs.prove(claim, SECRET, b"z" * 64)) is Reason.PROOF


def test_malformed_proofs_are_refused_as_form() -> None:
    challenge, response = group.split(PROOF)
    larger = (int.from_bytes(response, "little") + group.ORDER).to_bytes(32, "little")
    for proof in (PROOF[:-1], PROOF + b"\0", b"", challenge + larger, b"\xff" * 32 + response):
        assert reason_of(HONEST, proof) is Reason.FORM
    assert reason_of(HONEST, bytes(64)) is Reason.PROOF


def test_the_nonce_depends_on_the_statement_and_the_randomness() -> None:
    """With one nonce for two challenges the secret would follow from the two responses."""
    other = replace(HONEST, context=b"other")
    seen = set()
    for claim, randomness in ((HONEST, b"z"), (HONEST, b"y"), (other, b"z")):
        challenge, response = group.split(proofs.prove(claim, SECRET, randomness * 64))
        seen.add(group.scalar_subtract(response, group.scalar_multiply(challenge, SECRET)))
    assert len(seen) == 3
