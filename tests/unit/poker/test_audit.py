"""The audit: honest shuffles pass, doctored ones do with rate 2^-rounds, one nonce per commitment."""

import copy
import pickle

import pytest
from koikoi_sdk.poker import audit, group
from koikoi_sdk.poker.audit import LINK_ANSWER, ROUNDS, SEED_ANSWER, Commitment, challenge_bits, response_size
from koikoi_sdk.poker.errors import OrderError, ProofError, Reason
from koikoi_sdk.poker.group import multiply
from koikoi_sdk.poker.statement import Layer, Statement
from koikoi_sdk.poker.transcript import CARDS, digest, u16

from tests.unit.poker.cheats import DECK

LAYER = Layer.derive(b"s" * 32, b"did")
STATEMENT = LAYER.shuffle(DECK)
CONTEXT = audit.audit_context(b"did", 0, b"head")
NONCE = b"n" * 32


def commit() -> Commitment:
    return Commitment(CONTEXT, STATEMENT, LAYER, b"m" * 64)


@pytest.fixture(scope="module")
def honest() -> tuple[bytes, bytes]:
    commitment = commit()
    return commitment.value, commitment.respond(NONCE)


def reason_of(
    response: bytes,
    commitment: bytes,
    nonce: bytes = NONCE,
    context: bytes = CONTEXT,
    statement: Statement = STATEMENT,
) -> Reason:
    with pytest.raises(ProofError) as caught:
        audit.verify(context, statement, commitment, nonce, response)
    return caught.value.reason


@pytest.mark.usefixtures("each_implementation")
def test_an_honest_shuffle_passes_and_discloses_neither_key_nor_permutation(honest: tuple[bytes, bytes]) -> None:
    commitment, response = honest
    audit.verify(CONTEXT, STATEMENT, commitment, NONCE, response)
    bits = challenge_bits(CONTEXT, commitment, NONCE)
    assert len(response) == response_size(bits) == 32 * bits.count(0) + 80 * bits.count(1)
    assert LAYER.secret not in response
    assert LAYER.inverse not in response
    assert bytes(LAYER.permutation) not in response


def test_the_challenge_takes_the_bits_of_each_byte_from_the_lowest() -> None:
    data = digest("audit/challenge", CONTEXT, b"c", b"n")
    bits = challenge_bits(CONTEXT, b"c", b"n")
    assert bits == [int(bit) for byte in data[:5] for bit in f"{byte:08b}"[::-1]]
    assert len(bits) == ROUNDS == 40


def test_a_commitment_answers_one_nonce_ever() -> None:
    commitment = commit()
    with pytest.raises(ProofError) as caught:
        commitment.respond(NONCE[:-1])
    assert caught.value.reason is Reason.FORM
    commitment.respond(NONCE)
    for nonce in (NONCE, b"o" * 32):
        with pytest.raises(OrderError, match="one nonce"):
            commitment.respond(nonce)
    assert commitment._seeds is None
    assert not hasattr(commitment, "_layer")


def test_a_commitment_can_be_neither_copied_nor_stored(honest: tuple[bytes, bytes]) -> None:
    commitment = commit()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="never stored"):
            attempt(commitment)
    assert commitment.respond(NONCE) == honest[1], "a refused copy has not used it up"


def test_two_answers_would_disclose_the_key() -> None:
    """Why the rule exists: one re-shuffle shown from both sides gives k."""
    seed = b"e" * 32
    factor, _ = audit._reshuffle(seed)
    answer = audit._link(seed, LAYER)[:32]
    assert group.scalar_multiply(factor, group.scalar_invert(answer)) == LAYER.secret


def test_nothing_but_the_exact_context_nonce_and_commitment_fits(honest: tuple[bytes, bytes]) -> None:
    commitment, response = honest
    assert reason_of(response, bytes(32)) in {Reason.FORM, Reason.AUDIT}
    assert reason_of(response, commitment, b"o" * 32) in {Reason.FORM, Reason.AUDIT}
    for context in (
        audit.audit_context(b"did", 1, b"head"),
        audit.audit_context(b"did", 0, b"other"),
        audit.audit_context(b"dId", 0, b"head"),
    ):
        assert reason_of(response, commitment, context=context) in {Reason.FORM, Reason.AUDIT}


def test_a_commitment_to_another_head_fails_even_for_the_same_bits(honest: tuple[bytes, bytes]) -> None:
    commitment, response = honest
    bits = challenge_bits(CONTEXT, commitment, NONCE)
    with pytest.raises(ProofError) as caught:
        audit.check(audit.audit_context(b"did", 0, b"other"), STATEMENT, commitment, bits, response)
    assert caught.value.reason is Reason.AUDIT


def place_of_first_link(commitment: bytes) -> int:
    bits = challenge_bits(CONTEXT, commitment, NONCE)
    return sum(SEED_ANSWER if bit == 0 else 0 for bit in bits[: bits.index(1)])


@pytest.mark.parametrize(
    ("at", "new", "reason", "text"),
    [
        (0, (group.ORDER + 1).to_bytes(32, "little"), Reason.FORM, "canonical scalar"),
        (0, group.ZERO, Reason.AUDIT, "zero"),
        (32, bytes(48), Reason.AUDIT, "not a permutation"),
        (32, bytes(range(1, 49)), Reason.AUDIT, "not a permutation"),
        (32, bytes(range(48)), Reason.AUDIT, "does not fit"),
        (0, group.ONE, Reason.AUDIT, "does not fit"),
    ],
)
def test_a_wrong_link_is_refused(honest: tuple[bytes, bytes], at: int, new: bytes, reason: Reason, text: str) -> None:
    commitment, response = honest
    at += place_of_first_link(commitment)
    with pytest.raises(ProofError, match=text) as caught:
        audit.verify(CONTEXT, STATEMENT, commitment, NONCE, response[:at] + new + response[at + len(new) :])
    assert caught.value.reason is reason


def test_a_wrong_length_is_refused_before_curve_work(honest: tuple[bytes, bytes]) -> None:
    commitment, response = honest
    for changed in (b"", response[:-1], response + b"\0", response + bytes(LINK_ANSWER)):
        assert reason_of(changed, commitment) is Reason.FORM


def doctored() -> Statement:
    """One card doubled in weight: no honest shuffle gives this deck."""
    first, *rest = STATEMENT.after
    return Statement(STATEMENT.key, DECK, (multiply((2).to_bytes(32, "little"), first), *rest))


@pytest.mark.usefixtures("each_implementation")
def test_a_doctored_deck_fails_the_whole_audit(honest: tuple[bytes, bytes]) -> None:
    assert reason_of(honest[1], honest[0], statement=doctored()) is Reason.AUDIT


def test_a_doctored_deck_passes_small_audits_with_rate_two_to_the_minus_rounds() -> None:
    """The cheater guesses the bits and prepares each re-shuffle for its guess."""
    rounds, statement = 2, doctored()
    guess = [0, 1]
    seeds = [digest("cheat/seed", u16(index))[:32] for index in range(rounds)]
    answers = [audit._link(seed, LAYER) if bit else seed for seed, bit in zip(seeds, guess, strict=True)]
    images = [
        audit._from_link(answer, statement) if bit else audit._from_seed(answer, statement)
        for answer, bit in zip(answers, guess, strict=True)
    ]
    commitment = audit._commit(CONTEXT, images)
    passed = 0
    for number in range(80):
        bits = challenge_bits(CONTEXT, commitment, u16(number) * 16, rounds)
        attempts = [audit._link(seed, LAYER) if bit else seed for seed, bit in zip(seeds, bits, strict=True)]
        if bits == guess:
            audit.check(CONTEXT, statement, commitment, bits, b"".join(attempts))
            passed += 1
            continue
        with pytest.raises(ProofError) as caught:
            audit.check(CONTEXT, statement, commitment, bits, b"".join(attempts))
        assert caught.value.reason is Reason.AUDIT
    assert 12 <= passed <= 28, "80 / 2^2 = 20 expected"


def test_the_order_of_a_link_is_the_way_from_the_output_deck() -> None:
    seed = b"e" * 32
    assert audit._from_link(audit._link(seed, LAYER), STATEMENT) == audit._from_seed(seed, STATEMENT)
    assert sorted(audit._link(seed, LAYER)[32:]) == list(range(CARDS))
