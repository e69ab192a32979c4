"""A modified client against an honest one: every lie is met with its reason (docs/protocol.md section 19)."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.rules import Board, start
from koikoi_sdk.table import Finished, Kind, Reason, Rejected, Send, Step
from koikoi_sdk.table.envelope import Signed
from koikoi_sdk.table.playing import Flip

from tests.unit.table.pair import Pair, audited, has_four, is_kuttsuki, is_plain, opened, put, reached, started, swap

IDENTITY = bytes(32)
ORDER = 2**252 + 27742317777372353535851937790883648493


def assert_refused(step: Step, reason: Reason) -> None:
    assert isinstance(step, Rejected)
    assert step.evidence.reason is reason


def over_order(payload: bytes, at: int) -> bytes:
    """The same scalar plus the group's order, in another encoding."""
    value = int.from_bytes(payload[at : at + 32], "little") + ORDER
    return put(payload, at, value.to_bytes(32, "little"))


# Coin and shuffles


def test_a_coin_that_was_not_committed():
    pair = Pair().run_to(Kind.COIN_OPEN)
    assert_refused(pair.cheat(lambda _: b"r" * 32), Reason.PROOF)


@pytest.mark.parametrize("kind", [Kind.S1, Kind.S2])
@pytest.mark.parametrize(
    ("alter", "reason"),
    [
        (lambda p: put(p, 32, p[64:96]), Reason.PROOF),  # a card twice
        (lambda p: swap(p, 32, 64), Reason.PROOF),  # two cards exchanged
        (lambda p: put(p, 32, IDENTITY), Reason.FORM),
        (lambda p: put(p, 32, b"\xff" * 32), Reason.FORM),
        (lambda p: put(p, 0, IDENTITY), Reason.FORM),
        (lambda p: put(p, 0, p[32:64]), Reason.PROOF),  # another key
        (lambda p: over_order(p, 32 + 1536 + 96 * 32), Reason.FORM),
        (lambda p: put(p, 32 + 1536 + 97 * 32, bytes(32)), Reason.PROOF),
        (lambda p: p[:-1], Reason.FORM),
        (lambda p: p + b"\0", Reason.FORM),
    ],
)
def test_a_tampered_shuffle(kind: Kind, alter: Callable[[bytes], bytes], reason: Reason):
    assert_refused(reached(kind).cheat(alter), reason)


def test_the_dealers_shuffle_is_not_the_others():
    """S1 replayed as S2 proves another statement."""
    pair = reached(Kind.S2)
    first = opened(pair.other(pair.sender), pair.log[-1]).payload
    assert_refused(pair.cheat(lambda p: first + p[len(first) :]), Reason.PROOF)


def test_a_wrong_token_of_the_dealt_hand():
    at = 7872
    assert_refused(reached(Kind.S2).cheat(lambda p: swap(p, at, at + 32)), Reason.PROOF)
    assert_refused(reached(Kind.S2).cheat(lambda p: put(p, at, IDENTITY)), Reason.FORM)


def test_a_field_card_that_was_not_dealt():
    pair = reached(Kind.S3)
    hand = pair.sender._table.deal.hand
    at = 256 + 64
    assert_refused(pair.copy().cheat(lambda p: put(p, at, bytes([hand[0]]))), Reason.PROOF)
    assert_refused(pair.copy().cheat(lambda p: put(p, at, b"\x30")), Reason.CARD)
    assert_refused(pair.copy().cheat(lambda p: put(p, at, p[at + 1 : at + 2])), Reason.POSITION)
    assert_refused(pair.copy().cheat(lambda p: swap(p, 0, 32)), Reason.PROOF)


# A turn


def test_a_card_that_was_not_dealt_to_that_position():
    pair = reached(Kind.T1)
    sender = pair.sender
    hand = sender._table.deal.hand
    other = next(card for card in range(48) if card not in sender._table.board.seen and card not in hand)
    assert_refused(pair.copy().cheat(lambda p: put(p, 1, bytes([other]))), Reason.PROOF)
    assert_refused(pair.copy().cheat(lambda p: put(p, 1, bytes([hand[3]]))), Reason.PROOF)
    assert_refused(pair.copy().cheat(lambda p: put(p, 0, b"\x03")), Reason.PROOF)
    assert_refused(pair.copy().cheat(lambda p: put(p, 1, b"\xff")), Reason.CARD)
    assert_refused(pair.copy().cheat(lambda p: over_order(p, 2)), Reason.FORM)


@pytest.mark.parametrize("position", [8, 15, 16, 23, 24, 47, 48, 255])
def test_a_position_that_is_not_in_the_hand(position: int):
    assert_refused(reached(Kind.T1).cheat(lambda p: put(p, 0, bytes([position]))), Reason.POSITION)


def test_a_card_played_twice():
    pair = reached(Kind.T1, 3)
    before = opened(pair.sender, next(m for m, k in zip(pair.log, pair.kinds, strict=True) if k is Kind.T1)).payload
    assert_refused(pair.copy().cheat(lambda p: put(p, 0, before[:1])), Reason.POSITION)
    assert_refused(pair.copy().cheat(lambda p: put(p, 1, before[1:2])), Reason.POSITION)
    assert_refused(pair.copy().cheat(lambda _: before), Reason.POSITION)


def test_a_proof_of_another_moment():
    """A proof is bound to the head: it cannot be replayed, not even for the same card."""
    pair, twin = reached(Kind.T1), reached(Kind.S4)
    twin.randoms[twin.sender.seat].fixed["aead", twin.flying.counter, 0] = b"m" * 24
    foreign = started(seed=2).run_to(Kind.T1)
    payload = opened(foreign.sender, foreign.flying).payload
    assert_refused(pair.cheat(lambda p: p[:2] + payload[2:66] + p[66:]), Reason.PROOF)


def choosing_pair(kind: Kind) -> Pair:
    """Play until a message with a real capture choice is in flight."""

    def choosy(seat, options):
        chosen = [option for option in options if option.target is not None]
        return (chosen or options)[0]

    pair = started(seed=1, pick=choosy)
    while True:
        pair.run_to(kind)
        if opened(pair.sender, pair.flying).payload[66 if kind is Kind.T1 else 65] != 255:
            return pair
        pair.advance()


@pytest.mark.parametrize(("kind", "at"), [(Kind.T1, 66), (Kind.T3, 65)])
def test_an_illegal_capture(kind: Kind, at: int):
    choosing = choosing_pair(kind)
    for value in (255, 47, 48, 200):
        assert_refused(choosing.copy().cheat(lambda p, value=value: put(p, at, bytes([value]))), Reason.CAPTURE)
    free = reached(kind)
    assert opened(free.sender, free.flying).payload[at] == 255
    for value in (0, 5, 254):
        assert_refused(free.copy().cheat(lambda p, value=value: put(p, at, bytes([value]))), Reason.CAPTURE)


def test_a_decision_where_none_is_due():
    pair = reached(Kind.T3)
    assert opened(pair.sender, pair.flying).payload[66] == 0
    for value in (1, 2, 3, 255):
        assert_refused(pair.copy().cheat(lambda p, value=value: put(p, 66, bytes([value]))), Reason.DECISION)


def deciding_pair() -> Pair:
    def go_on(seat, options):
        return options[-1]

    pair = started(seed=1, pick=go_on)
    while True:
        pair.run_to(Kind.T3)
        if opened(pair.sender, pair.flying).payload[66] == 2:
            return pair
        pair.advance()


def test_no_decision_where_one_is_due():
    pair = deciding_pair()
    for value in (0, 3, 255):
        assert_refused(pair.copy().cheat(lambda p, value=value: put(p, 66, bytes([value]))), Reason.DECISION)


def test_the_opening_is_checked_before_the_rules():
    pair = reached(Kind.T3)
    bad = lambda p: put(put(p, 5, bytes([p[5] ^ 1])), 66, b"\1")  # noqa: E731
    assert_refused(pair.cheat(bad), Reason.PROOF)


def test_a_token_for_another_card():
    pair = reached(Kind.T2)
    sender = pair.sender
    deal = sender._table.deal
    other = next(token for place, token in deal.state.tokens.items() if place < 8)
    assert_refused(pair.copy().cheat(lambda p: other + p[32:]), Reason.PROOF)
    assert_refused(pair.copy().cheat(lambda p: put(p, 0, IDENTITY)), Reason.FORM)
    assert_refused(pair.copy().cheat(lambda p: over_order(p, 32)), Reason.FORM)


def test_a_flipped_card_that_was_not_on_top():
    pair = reached(Kind.T3)
    sender = pair.sender._table
    hand = [card for card in sender.deal.hand if card not in sender.board.seen]
    assert_refused(pair.copy().cheat(lambda p: put(p, 0, bytes([hand[0]]))), Reason.PROOF)
    assert_refused(pair.copy().cheat(lambda p: put(p, 0, bytes([min(sender.board.seen)]))), Reason.POSITION)


# Hand yaku and redeals


def modify(pair: Pair, payload: bytes) -> Step:
    """Let a modified client send a payload and go on as if it had been its own."""
    message = pair.forge(lambda _: payload)
    sender = pair.sender
    mirror = replace(sender._table.channel, receiving=sender._table.channel.sending)
    sender._state.head = Signed.cut(mirror.decrypt(message.envelope)).next_head()
    sender._state.outbox = message
    return pair.advance()


def hide_claim(pair: Pair, kind: Kind, void: bool = False) -> Pair:
    """Let the sender of S3 or S4 keep its claim to itself."""
    pair.run_to(kind)
    sender = pair.sender
    table, state = sender._table, sender._state
    payload = opened(sender, pair.flying).payload
    places = range(8) if kind is Kind.S3 else range(8, 16)
    for place in places:
        del table.deal.state.opened[place]
    match = table.match
    board: Board = start(match.variant, match.dealer, match.points, frozenset(table.deal.field))
    assert state.round is not None
    state.round.board = board
    if kind is Kind.S4:
        state.due = Kind.T1
    modify(pair, payload[:392] if kind is Kind.S3 else b"\0")
    return pair


def teshi_first(seat, options):
    """Play the four cards of one month first."""
    hand = seat._table.deal.hand
    months = [card // 4 for card in hand]
    if isinstance(options[0], Flip):
        return options[-1]
    return max(options, key=lambda option: months.count(option.card // 4))


@pytest.mark.parametrize(
    ("kind", "mine", "theirs"), [(Kind.S3, slice(0, 8), slice(8, 16)), (Kind.S4, slice(8, 16), slice(0, 8))]
)
@pytest.mark.parametrize("preset", ["house", "boardgameland"])
def test_a_hidden_four_of_a_month_is_found_with_its_fourth_card(kind: Kind, mine: slice, theirs: slice, preset: str):
    pair = started(preset, pick=teshi_first)
    pair.stack(lambda cards: has_four(cards[mine]) and is_plain(cards[theirs]) and not has_four(cards[16:24]))
    hide_claim(pair, kind)
    step = pair.run()
    assert_refused(step, Reason.DECISION)
    assert pair.kinds.count(Kind.T1) == (7 if kind is Kind.S3 else 8)


def test_a_hidden_kuttsuki_is_found_with_its_last_card():
    pair = started(pick=teshi_first)
    pair.stack(lambda cards: is_kuttsuki(cards[:8]) and is_plain(cards[8:16]) and not has_four(cards[16:24]))
    hide_claim(pair, Kind.S3)
    step = pair.run()
    if isinstance(step, Finished):
        pytest.fail("the round was stopped before the eighth play")
    assert_refused(step, Reason.DECISION)
    assert pair.kinds.count(Kind.T1) == 15


def claim_of(pair: Pair) -> bytes:
    """A complete, true opening of the sender's hand for the message in flight."""
    sender = pair.sender
    deal = sender._table.deal
    head = opened(sender, pair.flying).head
    saved = dict(deal.state.opened)
    claim = deal.claim_hand(head, b"f" * 32)
    deal.state.opened.clear()
    deal.state.opened.update(saved)
    return claim


@pytest.mark.parametrize("kind", [Kind.S3, Kind.S4])
@pytest.mark.parametrize("preset", ["house", "boardgameland", "sdin", "wikipedia_en"])
def test_a_claim_of_nothing(kind: Kind, preset: str):
    pair = started(preset)
    pair.stack(lambda cards: is_plain(cards[:8]) and is_plain(cards[8:16]) and not has_four(cards[16:24]))
    pair.run_to(kind)
    claim = claim_of(pair)
    assert_refused(pair.copy().cheat(lambda p: p + claim), Reason.DECISION)
    assert_refused(pair.copy().cheat(lambda p: p + put(claim, 0, claim[1:2])), Reason.POSITION)
    assert_refused(pair.copy().cheat(lambda p: p + put(claim, 0, b"\x30")), Reason.CARD)
    assert_refused(pair.copy().cheat(lambda p: p + put(claim, 20, bytes([claim[20] ^ 1]))), Reason.PROOF)
    assert_refused(pair.copy().cheat(lambda p: p + over_order(claim, 8)), Reason.FORM)


@pytest.mark.parametrize("preset", ["sdin", "wikipedia_en"])
def test_presets_without_hand_yaku_have_no_claims(preset: str):
    pair = started(preset)
    pair.stack(lambda cards: has_four(cards[:8]) and not has_four(cards[16:24]))
    pair.run_to(Kind.S3)
    assert len(opened(pair.sender, pair.flying).payload) == 392
    claim = claim_of(pair)
    assert_refused(pair.cheat(lambda p: p + claim), Reason.DECISION)


def test_a_claim_after_a_claim():
    pair = started()
    pair.stack(lambda cards: has_four(cards[:8]) and has_four(cards[8:16]) and not has_four(cards[16:24]))
    pair.run_to(Kind.S4)
    assert opened(pair.sender, pair.flying).payload == b"\0"
    claim = claim_of(pair)
    assert_refused(pair.cheat(lambda p: p + claim), Reason.DECISION)


def test_a_claim_beside_a_field_redeal():
    pair = started()
    pair.stack(lambda cards: has_four(cards[:8]) and has_four(cards[16:24]))
    pair.run_to(Kind.S3)
    assert len(opened(pair.sender, pair.flying).payload) == 392
    claim = claim_of(pair)
    assert_refused(pair.cheat(lambda p: p + claim), Reason.DECISION)


@pytest.mark.parametrize("flag", [b"\1", b"\2", b"\xff"])
def test_a_wrong_redeal_flag(flag: bytes):
    assert_refused(reached(Kind.S4).cheat(lambda _: flag), Reason.DECISION)


def test_a_void_field_must_be_flagged():
    pair = started()
    pair.stack(lambda cards: has_four(cards[16:24]) and is_plain(cards[8:16]))
    pair.run_to(Kind.S4)
    assert opened(pair.sender, pair.flying).payload == b"\1"
    assert_refused(pair.cheat(lambda _: b"\0"), Reason.DECISION)


def test_a_hand_yaku_is_no_redeal():
    pair = started()
    pair.stack(lambda cards: is_plain(cards[:8]) and has_four(cards[8:16]) and not has_four(cards[16:24]))
    pair.run_to(Kind.S4)
    assert len(opened(pair.sender, pair.flying).payload) == 73
    assert_refused(pair.cheat(lambda p: b"\1" + p[1:]), Reason.DECISION)


# The audit


@pytest.mark.parametrize(("kind", "at"), [(Kind.AU1, 32), (Kind.AU2, 64)])
def test_another_round_result(kind: Kind, at: int):
    assert_refused(audited(kind).cheat(lambda p: put(p, at, b"\0" * 32)), Reason.RESULT)


@pytest.mark.parametrize("kind", [Kind.AU3, Kind.AU4])
def test_a_wrong_audit_response(kind: Kind):
    """Nothing is verified twice on one run, so each case is a pair of its own."""
    assert_refused(audited(kind).cheat(lambda p: p[:-1] + bytes([p[-1] ^ 1])), Reason.AUDIT)


@pytest.mark.parametrize("kind", [Kind.AU3, Kind.AU4])
@pytest.mark.parametrize("length", [0, 33, 3500])
def test_an_audit_response_of_another_length(kind: Kind, length: int):
    pair = audited(kind)
    assert_refused(pair.cheat(lambda p: (p + bytes(3500))[:length]), Reason.FORM)


def test_a_commitment_that_was_not_made():
    pair = audited(Kind.AU1)
    commitment = pair.sender._table.commitment
    assert commitment is not None
    commitment.value = b"c" * 32
    modify(pair, commitment.value + opened(pair.sender, pair.flying).payload[32:])
    pair.run_to(Kind.AU3)
    assert_refused(pair.advance(), Reason.AUDIT)


def test_a_device_answers_one_nonce_ever():
    """Two answers to one commitment would disclose the key: the second AU2 is equivocation, unanswered."""
    pair = audited(Kind.AU2)
    message, second = pair.flying, pair.forge(lambda p: put(p, 32, b"n" * 32))
    pair.advance()
    seat = pair.sender
    step = seat.receive(message.counter, message.phase, second.envelope)
    assert_refused(step, Reason.EQUIVOCATION)


# The end


def test_a_wrong_result_signature():
    for alter in (lambda p: bytes(64), lambda p: p[:-1] + bytes([p[-1] ^ 1])):
        pair = audited(Kind.RESULT_SIGN)
        assert_refused(pair.cheat(alter), Reason.RESULT)


def test_a_wrong_second_result_signature():
    pair = audited(Kind.RESULT_SIGN)
    pair.advance()
    own = opened(pair.other(pair.sender), pair.log[-1]).payload
    assert_refused(pair.cheat(lambda _: own), Reason.RESULT)


def test_a_resignation_over_another_statement():
    pair = reached(Kind.S4)
    pair.advance()
    pair.sender.resign()
    assert pair.flying_kind is Kind.RESIGN
    wrong = DeviceKey(b"z" * 32).sign("match-result", b"")
    assert_refused(pair.cheat(lambda _: wrong), Reason.RESULT)


def test_a_resignation_where_there_is_no_place_for_it():
    """After the deciding round's first AU1, and instead of RESULT_SIGN."""
    for kind in (Kind.AU2, Kind.AU4, Kind.RESULT_SIGN):
        assert_refused(audited(kind).cheat(lambda _: bytes(64), Kind.RESIGN), Reason.FORM)


def test_a_resignation_after_a_resignation():
    pair = reached(Kind.S4)
    pair.advance()
    pair.sender.resign()
    assert isinstance(pair.advance(), Send)
    assert pair.flying_kind is Kind.RESULT_SIGN
    assert_refused(pair.cheat(lambda p: p, Kind.RESIGN), Reason.FORM)
