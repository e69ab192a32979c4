"""The shuffle proof: complete for every permutation, and each equation is needed."""

from dataclasses import fields, replace

import pytest
from koikoi_sdk.poker import group, shuffle
from koikoi_sdk.poker.errors import ProofError, Reason
from koikoi_sdk.poker.shuffle import Announcement, hash_statement, recompute, weights
from koikoi_sdk.poker.statement import Layer, Statement
from koikoi_sdk.poker.transcript import CARDS

from tests.unit.poker import cheats
from tests.unit.poker.cheats import CONTEXT, DECK, ORDER, Lie, decode, encode

DID = b"\x07" * 64


def failing_equations(lie: Lie) -> set[str]:
    """Which points the verifier recomputes differently from what the prover announced."""
    st = hash_statement(CONTEXT, lie.statement, lie.proof.commitments)
    found = recompute(lie.statement, lie.proof, weights(st))
    assert lie.proof.challenge == lie.announcement.challenge(st, lie.proof.chain), "not self-consistent"
    return {f.name for f in fields(Announcement) if getattr(found, f.name) != getattr(lie.announcement, f.name)}


def reason_of(statement: Statement, proof: bytes, context: bytes = CONTEXT) -> Reason:
    with pytest.raises(ProofError) as caught:
        shuffle.verify(context, statement, proof)
    return caught.value.reason


@pytest.fixture(scope="module")
def honest() -> Lie:
    return cheats.honest()


@pytest.mark.usefixtures("each_implementation")
@pytest.mark.parametrize("name", cheats.LIES)
def test_each_cheating_prover_is_stopped_by_one_equation_only(name: str) -> None:
    prover, equation = cheats.LIES[name]
    lie = prover()
    assert failing_equations(lie) == {equation}
    assert reason_of(lie.statement, lie.proof.encode()) is Reason.PROOF


def test_the_six_equations_all_have_a_cheating_prover() -> None:
    assert {equation for _, equation in cheats.LIES.values()} == {f.name for f in fields(Announcement)}


def test_a_forged_chain_end_breaks_only_the_last_link() -> None:
    lie = cheats.linear_mix_with_forged_chain_end()
    st = hash_statement(CONTEXT, lie.statement, lie.proof.commitments)
    found = recompute(lie.statement, lie.proof, weights(st))
    assert [a == b for a, b in zip(found.th, lie.announcement.th, strict=True)] == [True] * 47 + [False]


def test_a_duplicated_card_is_refused_before_the_proof_is_checked() -> None:
    lie = cheats.duplicated()
    assert failing_equations(lie) == {"t4"}
    with pytest.raises(ProofError, match="two points of the deck are equal") as caught:
        shuffle.verify(CONTEXT, lie.statement, lie.proof.encode())
    assert caught.value.reason is Reason.PROOF


@pytest.mark.usefixtures("each_implementation")
def test_the_independent_prover_is_accepted_when_it_is_honest(honest: Lie) -> None:
    assert failing_equations(honest) == set()
    shuffle.verify(CONTEXT, honest.statement, honest.proof.encode())


@pytest.mark.parametrize(
    "order",
    [
        tuple(range(CARDS)),
        tuple(reversed(range(CARDS))),
        tuple((card + 1) % CARDS for card in range(CARDS)),
    ],
    ids=["identity", "reversed", "rotated"],
)
def test_special_permutations_are_proved_like_any_other(order: tuple[int, ...]) -> None:
    layer = replace(Layer.derive(b"s" * 32, DID), permutation=order)
    statement = layer.shuffle(DECK)
    assert statement.after == tuple(group.multiply(layer.secret, DECK[card]) for card in order)
    shuffle.verify(CONTEXT, statement, shuffle.prove(CONTEXT, statement, layer, b"z" * 64))


def test_a_proof_is_a_function_of_its_inputs_and_new_randomness_changes_it() -> None:
    layer = Layer.derive(b"s" * 32, DID)
    statement = layer.shuffle(DECK)
    first, again, other = (shuffle.prove(CONTEXT, statement, layer, z * 64) for z in (b"a", b"a", b"b"))
    assert first == again != other
    assert len(first) == shuffle.PROOF_SIZE == 6304


def test_the_base_point_as_key_is_refused() -> None:
    statement = Statement(group.GENERATOR, DECK, DECK)
    lie = cheats.prove(statement, 1, cheats.permutation_matrix(range(CARDS)))
    assert failing_equations(lie) == set(), "a valid proof that hides nothing"
    with pytest.raises(ProofError, match="base point") as caught:
        shuffle.verify(CONTEXT, statement, lie.proof.encode())
    assert caught.value.reason is Reason.PROOF


def test_another_context_is_refused(honest: Lie) -> None:
    assert reason_of(honest.statement, honest.proof.encode(), b"other") is Reason.PROOF


def test_another_input_deck_is_refused(honest: Lie) -> None:
    swapped = (DECK[1], DECK[0], *DECK[2:])
    assert reason_of(replace(honest.statement, before=swapped), honest.proof.encode()) is Reason.PROOF


def test_swapped_output_cards_are_refused(honest: Lie) -> None:
    first, second, *rest = honest.statement.after
    statement = replace(honest.statement, after=(second, first, *rest))
    assert reason_of(statement, honest.proof.encode()) is Reason.PROOF


SCALARS = range(2 * CARDS, 4 * CARDS + 5)


@pytest.mark.parametrize("index", [SCALARS[0], SCALARS[1], SCALARS[4], SCALARS[5], SCALARS[-1]])
def test_a_scalar_plus_the_order_is_refused_as_form(honest: Lie, index: int) -> None:
    parts = list(group.split(honest.proof.encode()))
    parts[index] = (decode(parts[index]) + ORDER).to_bytes(32, "little")
    with pytest.raises(ProofError, match="canonical scalar") as caught:
        shuffle.verify(CONTEXT, honest.statement, b"".join(parts))
    assert caught.value.reason is Reason.FORM


BAD_POINTS = {
    "identity": group.IDENTITY,
    "not canonical": b"\xed" + b"\xff" * 30 + b"\x7f",
    "bit 255": group.GENERATOR[:31] + bytes([group.GENERATOR[31] | 0x80]),
    "negative": b"\x01" + bytes(31),
    "off the group": bytes.fromhex("26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371"),
}


@pytest.mark.parametrize("bad", BAD_POINTS.values(), ids=BAD_POINTS.keys())
@pytest.mark.parametrize("where", ["key", "after", "commitment", "chain"])
def test_a_bad_point_anywhere_is_refused_as_form(honest: Lie, where: str, bad: bytes) -> None:
    statement, parts = honest.statement, list(group.split(honest.proof.encode()))
    if where == "key":
        statement = replace(statement, key=bad)
    elif where == "after":
        statement = replace(statement, after=(*statement.after[:-1], bad))
    else:
        parts[{"commitment": 0, "chain": CARDS}[where]] = bad
    assert reason_of(statement, b"".join(parts)) is Reason.FORM


def test_a_wrong_length_is_refused_as_form(honest: Lie) -> None:
    proof = honest.proof.encode()
    for changed in (b"", proof[:-1], proof[:-32], proof + b"\0", proof + bytes(32)):
        assert reason_of(honest.statement, changed) is Reason.FORM
    short = replace(honest.statement, after=honest.statement.after[:-1])
    assert reason_of(short, proof) is Reason.FORM
    with pytest.raises(ProofError, match="6304"):
        shuffle.Proof.decode(proof[:-1])


@pytest.mark.usefixtures("each_implementation")
def test_every_part_of_the_proof_is_bound(honest: Lie) -> None:
    """Any one scalar or commitment replaced by another valid one breaks it."""
    parts = list(group.split(honest.proof.encode()))
    for index in (0, CARDS, *SCALARS[:6], SCALARS[-1]):
        changed = list(parts)
        changed[index] = encode(decode(parts[index]) + 1) if index in SCALARS else DECK[0]
        assert reason_of(honest.statement, b"".join(changed)) is Reason.PROOF, index


@pytest.mark.usefixtures("each_implementation")
def test_zero_responses_are_handled_and_refused(honest: Lie) -> None:
    """libsodium refuses to output the identity; a peer must not be able to crash us with it."""
    proof = replace(honest.proof, sk=group.ZERO, s1=group.ZERO, sp=(group.ZERO,) * CARDS)
    assert reason_of(honest.statement, proof.encode()) is Reason.PROOF
    proof = replace(proof, challenge=group.ZERO)
    assert reason_of(honest.statement, proof.encode()) is Reason.PROOF
