"""A deal between two devices: what is due, what each may know, and that a refusal changes nothing."""

import json
from pathlib import Path

import pytest
from koikoi_sdk.poker import Deal, DealState, OrderError, ProofError, Reason, Step, group, reader
from koikoi_sdk.poker.layout import DEALER, OTHER

from tests.unit.poker import forgeries
from tests.unit.poker.pair import Pair, copied

CASES = json.loads((Path(__file__).parents[2] / "vectors/poker/receive.json").read_text())["cases"]
RECEIVERS = ("accept_first", "accept_second", "accept_field", "accept_play", "accept_token", "accept_flip")


@pytest.fixture(scope="module")
def dealt() -> Pair:
    return Pair().deal()


@pytest.fixture
def pair(dealt: Pair) -> Pair:
    """A freshly dealt pair of its own for each test, without dealing again."""
    own = Pair()
    own.dealer, own.other = copied(dealt.dealer), copied(dealt.other)
    for _ in range(3):
        own.next()
    return own


@pytest.fixture(scope="module")
def stages() -> list[Deal]:
    """The receiver of each message, just before it arrives."""
    scripts = [forgeries.stage(number) for number in range(6)]
    return [s.dealer if number in {1, 4} else s.other for number, s in enumerate(scripts)]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_forged_message_is_refused_for_its_reason_and_changes_nothing(case: dict, stages: list[Deal]) -> None:
    number, payload = case["message"], bytes.fromhex(case["payload"])
    deal = copied(stages[number])
    before, cards = vars(copied(deal).state), dict(deal.cards)
    receive, head = getattr(deal, RECEIVERS[number]), bytes.fromhex(case["deal"]["h"][number + 1])
    if case["reason"] == 0:
        receive(payload, head)
        assert deal.state.steps == number + 1
        return
    with pytest.raises(ProofError) as caught:
        receive(payload, head)
    assert caught.value.reason == case["reason"], str(caught.value)
    assert vars(deal.state) == before
    assert deal.cards == cards


def test_each_device_knows_its_hand_and_the_field_and_nothing_else(pair: Pair) -> None:
    dealer, other = pair.dealer, pair.other
    assert dealer.field == other.field
    assert len({*dealer.hand, *other.hand, *dealer.field}) == 24
    assert set(dealer.cards) == {*range(8), *range(16, 24)}
    assert set(other.cards) == {*range(8, 24)}
    layers = dealer._layer.permutation, other._layer.permutation
    deck = [layers[0][card] for card in layers[1]]
    assert (*dealer.hand, *other.hand, *dealer.field) == tuple(deck[:24])


def test_nothing_is_known_before_the_deal() -> None:
    fresh = Pair()
    assert fresh.dealer.hand == fresh.dealer.field == fresh.other.hand == ()
    assert fresh.dealer.cards == {}
    assert fresh.dealer.top == 24
    head, z = fresh.next()
    fresh.other.accept_first(fresh.dealer.shuffle_first(head, z), head)
    head, z = fresh.next()
    fresh.dealer.accept_second(fresh.other.shuffle_second(head, z, z), head)
    assert len(fresh.dealer.hand) == len(fresh.dealer.field) == 8, "the dealer sees hand and field first"
    assert fresh.other.hand == fresh.other.field == ()


def test_a_whole_deal_opens_forty_different_cards_and_leaves_eight_unseen(pair: Pair) -> None:
    for turn in range(16):
        pair.turn(turn // 2 + (8 if turn % 2 else 0))
    assert pair.dealer.state.opened == pair.other.state.opened
    assert len(set(pair.dealer.state.opened.values())) == 40
    assert not set(range(40, 48)) & (set(pair.dealer.cards) | set(pair.other.cards))
    mover, opponent = pair.movers()
    head, fresh = pair.next()
    for position in range(8):
        with pytest.raises(OrderError):
            mover.play(position, head, fresh)
    with pytest.raises(ProofError) as caught:
        opponent.accept_play(bytes(66), head)
    assert caught.value.reason is Reason.POSITION


def test_the_flipped_card_is_seen_by_the_mover_first_and_then_by_both(pair: Pair) -> None:
    pair.play(0)
    assert 24 not in pair.dealer.cards
    head, fresh = pair.next()
    card = pair.dealer.accept_token(pair.other.give_token(head, fresh), head)
    assert pair.dealer.cards[24] == card
    assert 24 not in pair.other.cards
    head, fresh = pair.next()
    assert pair.other.accept_flip(pair.dealer.flip(head, fresh), head) == card
    assert pair.other.cards[24] == card
    assert pair.dealer.top == 25


def test_readers_follow_from_the_position() -> None:
    roles = [reader(position) for position in range(48)]
    assert roles == [DEALER] * 8 + [OTHER] * 8 + [DEALER] * 8 + [DEALER, OTHER] * 12


def test_the_due_step_alternates_as_the_protocol_says(pair: Pair) -> None:
    seen = [Pair().dealer.due]
    for position in (0, 8):
        seen.append(pair.dealer.due)
        pair.play(position)
        seen.append(pair.other.due)
        pair.draw()
    assert seen == [
        (Step.FIRST, DEALER),
        (Step.PLAY, DEALER),
        (Step.TOKEN, OTHER),
        (Step.PLAY, OTHER),
        (Step.TOKEN, DEALER),
    ]


BUILDERS = [
    (Step.FIRST, lambda d: d.shuffle_first(b"h", b"f")),
    (Step.SECOND, lambda d: d.shuffle_second(b"h", b"f", b"f")),
    (Step.FIELD, lambda d: d.show_field(b"h", b"f", b"f")),
    (Step.PLAY, lambda d: d.play(0, b"h", b"f")),
    (Step.TOKEN, lambda d: d.give_token(b"h", b"f")),
    (Step.FLIP, lambda d: d.flip(b"h", b"f")),
]


@pytest.mark.parametrize("number", range(6))
def test_only_the_due_message_is_built_and_only_by_who_owes_it(number: int, stages: list[Deal]) -> None:
    receiver = copied(stages[number])
    for step, build in BUILDERS:
        with pytest.raises(OrderError, match=f"{step.value} is not due"):
            build(receiver)
    for name in RECEIVERS:
        if name != RECEIVERS[number]:
            with pytest.raises(ProofError, match="not due") as caught:
                getattr(receiver, name)(b"", b"h")
            assert caught.value.reason is Reason.FORM


def test_a_message_is_not_accepted_from_the_side_that_does_not_owe_it(pair: Pair) -> None:
    """My own message reflected to me."""
    head, fresh = pair.next()
    mine = copied(pair.dealer)
    payload = mine.play(0, head, fresh)
    with pytest.raises(ProofError) as caught:
        pair.dealer.accept_play(payload, head)
    assert caught.value.reason is Reason.FORM


def test_a_pile_token_is_released_once_per_play(pair: Pair) -> None:
    head, fresh = pair.next()
    with pytest.raises(OrderError):
        pair.other.give_token(head, fresh)
    pair.play(0)
    pair.other.give_token(head, fresh)
    with pytest.raises(OrderError):
        pair.other.give_token(head, fresh)
    assert set(pair.other.state.tokens) == {*range(25)}


def test_a_card_and_a_position_are_opened_once(pair: Pair) -> None:
    pair.turn(0)
    pair.turn(8)
    head, fresh = pair.next()
    forger = copied(pair.dealer)
    again = b"\0" + forger._open([0], head, fresh)
    card = forger.cards[0]
    other_place = bytes([1, card]) + forger._open([1], head, fresh)[1:]
    flipped = bytes([1, forger.cards[24]]) + bytes(64)
    for payload in (again, other_place, flipped):
        with pytest.raises(ProofError) as caught:
            pair.other.accept_play(payload, head)
        assert caught.value.reason is Reason.POSITION
    with pytest.raises(OrderError, match="position 0"):
        pair.dealer.play(0, head, fresh)
    for foreign in (8, 16, 24, -1, 48):
        with pytest.raises(OrderError):
            pair.dealer.play(foreign, head, fresh)


def test_a_token_of_no_card_is_refused_even_if_its_proof_holds(pair: Pair) -> None:
    """The look-up does not rely on the proof: here the deck itself is foreign."""
    pair.play(0)
    foreign = group.multiply_base((9).to_bytes(32, "little"))
    for deal in (pair.dealer, pair.other):
        image = group.multiply(pair.other._layer.secret, foreign)
        deal.state.deck = (*deal.state.deck[:24], image, *deal.state.deck[25:])
    pair.other.state.dealer_deck = (foreign,) * 48
    head, fresh = pair.next()
    with pytest.raises(ProofError, match="no card of this deal") as caught:
        pair.dealer.accept_token(pair.other.give_token(head, fresh), head)
    assert caught.value.reason is Reason.CARD
    assert 24 not in pair.dealer.state.tokens


def test_a_token_of_no_card_is_refused_by_the_other_too(pair: Pair) -> None:
    pair.turn(0)
    pair.play(8)
    foreign = group.multiply_base((9).to_bytes(32, "little"))
    for deal in (pair.dealer, pair.other):
        image = group.multiply(pair.dealer._layer.secret, foreign)
        deal.state.deck = (*deal.state.deck[:25], image, *deal.state.deck[26:])
    head, fresh = pair.next()
    with pytest.raises(ProofError, match="no card of this deal") as caught:
        pair.other.accept_token(pair.dealer.give_token(head, fresh), head)
    assert caught.value.reason is Reason.CARD


def test_a_claim_shows_the_whole_hand_once(pair: Pair) -> None:
    for claimer, judge in ((pair.dealer, pair.other), (pair.other, pair.dealer)):
        head, fresh = pair.next()
        claim = claimer.claim_hand(head, fresh)
        assert len(claim) == 72
        with pytest.raises(ProofError) as caught:
            judge.accept_claim(claim, b"other head")
        assert caught.value.reason is Reason.PROOF
        assert judge.accept_claim(claim, head) == claimer.hand
        with pytest.raises(OrderError, match="once"):
            claimer.claim_hand(head, fresh)
        with pytest.raises(ProofError) as caught:
            judge.accept_claim(claim, head)
        assert caught.value.reason is Reason.POSITION


def test_a_claim_is_refused_when_malformed_or_late(pair: Pair) -> None:
    head, fresh = pair.next()
    claim = copied(pair.dealer).claim_hand(head, fresh)
    for changed, reason in (
        (claim[:-1], Reason.FORM),
        (claim + b"\0", Reason.FORM),
        (forgeries.plus_order(claim, 40), Reason.FORM),
        (b"\x30" + claim[1:], Reason.CARD),
        (claim[1:2] + claim[1:], Reason.POSITION),
        (bytes([pair.dealer.field[0]]) + claim[1:], Reason.POSITION),
        (forgeries.swap(claim, 0, 1, 1), Reason.PROOF),
    ):
        with pytest.raises(ProofError) as caught:
            pair.other.accept_claim(changed, head)
        assert caught.value.reason is reason
    pair.play(0)
    with pytest.raises(OrderError):
        pair.other.claim_hand(head, fresh)
    with pytest.raises(ProofError) as caught:
        pair.other.accept_claim(claim, head)
    assert caught.value.reason is Reason.FORM


def test_a_stored_deal_goes_on_with_the_same_bytes(pair: Pair) -> None:
    for position in (0, 8, 1):
        pair.turn(position)
    pair.play(9)
    for deal in (pair.dealer, pair.other):
        again = copied(deal)
        assert vars(again.state) == vars(deal.state)
        assert again.cards == deal.cards
        assert again.due == deal.due
    head, fresh = pair.next()
    assert copied(pair.dealer).give_token(head, fresh) == pair.dealer.give_token(head, fresh)


def test_a_state_shows_nothing_when_printed(pair: Pair) -> None:
    assert repr(pair.dealer.state).startswith("<")
    assert repr(pair.dealer._layer).startswith("<")


def test_both_shuffles_pass_the_audit_once_per_nonce(pair: Pair) -> None:
    for prover, verifier in ((pair.dealer, pair.other), (pair.other, pair.dealer)):
        head, fresh = pair.next()
        commitment = prover.commit_audit(head, fresh)
        with pytest.raises(ProofError) as caught:
            verifier.accept_audit(b"")
        assert caught.value.reason is Reason.FORM
        verifier.challenge_audit(head, commitment.value, b"n" * 32)
        again = copied(verifier)
        response = commitment.respond(b"n" * 32)
        changed = response[:-1] + bytes([response[-1] ^ 1])
        with pytest.raises(ProofError) as caught:
            verifier.accept_audit(changed)
        assert caught.value.reason is Reason.AUDIT
        verifier.accept_audit(response)
        again.accept_audit(response)
        with pytest.raises(ProofError):
            verifier.accept_audit(response)


def test_an_audit_nonce_is_never_issued_twice(pair: Pair) -> None:
    """Who knows the nonce before committing can grind the commitment of a doctored deck."""
    pair.other.challenge_audit(b"h", b"c" * 32, b"n" * 32)
    restarted = copied(pair.other)
    for nonce in (b"n" * 32, b"n" * 31):
        with pytest.raises(OrderError, match="never used before"):
            restarted.challenge_audit(b"h2", b"d" * 32, nonce)
    with pytest.raises(ProofError) as caught:
        restarted.challenge_audit(b"h2", b"d" * 31, b"o" * 32)
    assert caught.value.reason is Reason.FORM
    assert restarted.state.challenge == (b"h", b"c" * 32)
    restarted.challenge_audit(b"h2", b"d" * 32, b"o" * 32)
    assert restarted.state.challenge == (b"h2", b"d" * 32)


def test_a_commitment_made_with_the_same_fresh_bytes_is_refused(pair: Pair) -> None:
    """Its second answer would disclose the key, even from another object or after a restart."""
    pair.dealer.commit_audit(b"h", b"f")
    with pytest.raises(OrderError, match="not fresh"):
        copied(pair.dealer).commit_audit(b"h", b"f")


def test_there_is_no_audit_without_a_deck() -> None:
    with pytest.raises(OrderError, match="not complete"):
        Pair().dealer.commit_audit(b"h", b"f")


def test_an_erased_deal_keeps_only_what_was_opened(pair: Pair) -> None:
    pair.turn(0)
    seed = pair.dealer.state.seed
    pair.dealer.erase()
    assert seed == bytearray()
    assert set(pair.dealer.cards) == {0, 24, *range(16, 24)}
    with pytest.raises(OrderError, match="erased"):
        pair.dealer.commit_audit(b"h", b"f")
    with pytest.raises(ValueError, match="seed"):
        Deal(pair.dealer.state)
    with pytest.raises(ValueError, match="seed"):
        Deal(DealState(DEALER, b"did", bytearray(31)))
