"""What is kept of a refused message convicts its signer: judged by somebody who has the contract and nothing else."""

from __future__ import annotations

from itertools import product

import pytest
from koikoi_sdk.poker import ProofError, deal_id, shuffle, verify
from koikoi_sdk.poker.statement import Statement
from koikoi_sdk.poker.transcript import proof_context
from koikoi_sdk.table import Evidence, Kind, Reason, Rejected, parse_contract
from koikoi_sdk.table.envelope import Signed

from tests.unit.table.pair import Pair, put, reached


def refused(pair: Pair, at: int) -> Evidence:
    """One byte of the shuffle's proof is changed."""
    step = pair.cheat(lambda payload: put(payload, at, bytes([payload[at] ^ 1])))
    assert isinstance(step, Rejected)
    assert step.evidence.reason is Reason.PROOF
    return step.evidence


def signers(contract: bytes, evidence: Evidence) -> tuple[bytes, bytes]:
    """Find who signed the message, and for whom."""
    first, second = parse_contract(contract).keys
    for pair in ((first, second), (second, first)):
        if verify(pair[0], evidence.signature, "msg", evidence.session_id, *pair, evidence.body):
            return pair
    raise AssertionError("nobody signed it")


def holds(session_id: bytes, first: bytes, second: bytes, signed: Signed, keys: tuple[bytes, bytes]) -> bool:
    """Judge S2 after S1 under every round and attempt there can be: a true one holds under its own."""
    dealt = [first[at : at + 32] for at in range(32, 49 * 32, 32)]
    key, *after = (second[at : at + 32] for at in range(0, 49 * 32, 32))
    for number, attempt in product((1, 2, 3), range(5)):
        did = deal_id(
            session_id, round_number=number, attempt=attempt, dealer_key=keys[0], other_key=keys[1], head=signed.head
        )
        context = proof_context(did, "shuffle", 1, signed.next_head())
        try:
            shuffle.verify(context, Statement(key, tuple(dealt), tuple(after)), second[49 * 32 : 7872])
        except ProofError:
            continue
        return True
    return False


@pytest.mark.parametrize("kind", [Kind.S1, Kind.S2])
def test_a_refused_message_names_its_signer(kind: Kind):
    pair = reached(kind)
    cheater = pair.sender.contract.keys[pair.sender.seat]
    evidence = refused(pair, 49 * 32 + 6304 - 1)
    assert signers(pair.contract, evidence)[0] == cheater
    answered = Signed.cut(evidence.answered)
    assert answered.next_head() == evidence.head == Signed(evidence.body, evidence.signature).head


def test_a_bad_second_shuffle_convicts_without_any_secret():
    pair = reached(Kind.S2)
    good = pair.sender._table.channel.reopen(pair.flying.envelope)
    evidence = refused(pair, 49 * 32 + 6304 - 1)
    signer, recipient = signers(pair.contract, evidence)
    first = Signed.cut(evidence.answered)
    keys = (recipient, signer)
    assert holds(evidence.session_id, first.payload, Signed.cut(good).payload, first, keys)
    bad = Signed(evidence.body, evidence.signature)
    assert not holds(evidence.session_id, first.payload, bad.payload, first, keys)


def test_the_greeting_before_the_first_sealed_message_is_not_kept():
    pair = Pair(seed=100).run_to(Kind.COIN_OPEN)
    step = pair.cheat(lambda share: share[::-1])
    assert isinstance(step, Rejected)
    assert step.evidence.session_id
    assert step.evidence.answered == b""
