"""Every lie of a modified client, and the reason with which the honest one refuses it (docs/protocol.md section 19)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from koikoi_sdk.client.players import Resign
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.poker.layout import HANDS, S1_SIZE
from koikoi_sdk.poker.statement import Statement as Shuffled
from koikoi_sdk.poker.transcript import point, proof_context
from koikoi_sdk.rules import start, variant
from koikoi_sdk.table import Choice, Kind, Outgoing, Phase, Reason, View
from koikoi_sdk.table.closing import _state
from koikoi_sdk.table.statement import Ending

from tests.e2e.cheaters import Cheater, Deviate, Lie, Resigning, is_plain_deal
from tests.unit.poker import cheats
from tests.unit.table.pair import Layout, forge, has_four, has_teshi, is_kuttsuki, is_plain, opened, put, swap

__all__ = ["HONEST", "LIES", "noise", "says"]

R = Reason
NOTHING = bytes(32)  # also the identity of the group
FAKE = DeviceKey(b"f" * 32)


def noise(size: int) -> bytes:
    return hashlib.shake_256(b"noise").digest(size)


# How a message is re-made


def says(alter: Callable[[bytes], bytes]) -> Deviate:
    """Another payload, signed and sealed as it should be."""
    return lambda seat, message: forge(seat, message, alter)


def knows(alter: Callable[[Cheater, bytes], bytes]) -> Deviate:
    """Another payload, made with what the cheater knows."""
    return lambda seat, message: forge(seat, message, lambda payload: alter(seat, payload))


def seals(size: int) -> Deviate:
    """Something of a right size that does not open."""
    return lambda seat, message: Outgoing(message.counter, message.phase, noise(size))


def flipped(payload: bytes, at: int) -> bytes:
    return put(payload, at, bytes([payload[at] ^ 1]))


def earlier(seat: Cheater, kind: Kind) -> bytes:
    """The payload of the first message of a kind that this seat sent."""
    return seat.said[kind][0]


# Greetings


def greeting(version: int = 1, x25519: bytes | None = None, device: DeviceKey | None = None) -> Deviate:
    """A's greeting with other content, signed by itself or by another key."""

    def deviate(seat: Cheater, message: Outgoing) -> Outgoing:
        contract, own = seat.contract, seat.contract.keys[seat.seat]
        listed, nonce = b"\1" + version.to_bytes(2, "big"), message.envelope[35:67]
        public = message.envelope[3:35] if x25519 is None else x25519
        fields = (contract.hash, own, contract.keys[1 - seat.seat], listed, public, nonce, contract.rules_hash)
        signature = (device or seat._table.device).sign("hello", *fields)
        return Outgoing(0, Phase.HELLO, listed + public + nonce + signature)

    return deviate


# Shuffles: complete, self-consistent proofs of wrong statements


def shuffle(lie: Callable[[list[bytes]], list[bytes]]) -> Deviate:
    """Another deck than the shuffled one, with the best proof there is for it."""

    def deviate(seat: Cheater, message: Outgoing) -> Outgoing:
        deal = seat._table.deal
        state, layer = deal.state, deal._layer
        before = deal.points if state.role == 0 else state.dealer_deck
        head = opened(seat, message).head
        secret = cheats.decode(layer.secret)
        after = lie(list(layer.apply(before)))
        statement = Shuffled(layer.key, tuple(before), tuple(after))
        context = proof_context(state.did, "shuffle", state.role, head)
        proof = cheats.prove(statement, secret, cheats.permutation_matrix(layer.permutation), context=context).proof
        made = b"".join((layer.key, *after, proof.encode()))
        return forge(seat, message, lambda payload: made + payload[S1_SIZE:])

    return deviate


def substituted(deck: list[bytes]) -> list[bytes]:
    return [*deck[:7], point("cheat/foreign"), *deck[8:]]


def duplicated(deck: list[bytes]) -> list[bytes]:
    return [*deck[:7], deck[8], *deck[8:]]


def marked(deck: list[bytes]) -> list[bytes]:
    """Half of the deck under another exponent, so that it can be told apart."""
    return [*deck[:24], *(cheats.times(2, card) for card in deck[24:])]


# The deal


def claim_of_nothing(seat: Cheater, payload: bytes) -> bytes:
    """Shows a hand that is worth nothing, in a true opening."""
    deal = seat._table.deal
    head = opened(seat, seat.ready).head
    return payload + deal._open(HANDS[deal.state.role], head, b"f" * 32)


def silent(seat: Cheater, message: Outgoing) -> Outgoing:
    """Keeps the claim of the own hand back and goes on as if there were nothing to claim."""
    table, state, deal = seat._table, seat._state, seat._table.deal
    for place in HANDS[deal.state.role]:
        del deal.state.opened[place]
    match = table.match
    table.round.board = start(match.variant, match.dealer, match.points, frozenset(deal.field))
    if opened(seat, message).body[0] == Kind.S4:
        state.due = Kind.T1
        return forge(seat, message, lambda payload: b"\0")
    return forge(seat, message, lambda payload: payload[:392])


class MonthsFirst:
    """Plays the months of which the hand has most cards first, so that a hidden hand comes to light."""

    async def choose(self, view: View) -> Choice | Resign:
        assert view.round is not None
        months = [card // 4 for card in view.round.hand]
        if hasattr(view.options[0], "card"):
            return max(view.options, key=lambda option: months.count(option.card // 4))  # type: ignore[union-attr]
        return view.options[-1]  # koi-koi where it is a choice: the round goes on


class GoesOn:
    """Takes the last option: koi-koi where it is a choice, so that the round goes on."""

    async def choose(self, view: View) -> Choice | Resign:
        return view.options[-1]


def other_has_teshi(cards: Layout) -> bool:
    return has_teshi((*cards[8:16], *cards[:8], *cards[16:]))


def has_hidden_kuttsuki(cards: Layout) -> bool:
    return is_kuttsuki(cards[:8]) and is_plain(cards[8:16]) and not has_four(cards[16:24])


def dealer_decides(cards: Layout, preset: str = "house") -> bool:
    """With players who take their first option, the dealer is the first whose total rises."""
    if not is_plain_deal(cards):
        return False
    board = start(variant(preset), 0, (0, 0), frozenset(cards[16:24]))
    hands, pile = (list(cards[:8]), list(cards[8:16])), iter(cards[24:])
    while board.turn <= 8 and not board.options():
        card = hands[board.mover].pop(0)
        board = board.play(card, (board.choices(card) or (None,))[0])
        card = next(pile)
        targets = board.choices(card)
        board = board.flip(card)
        if targets:
            board = board.take(targets[0])
    return bool(board.options()) and board.mover == 0


# A turn


def own_other_card(seat: Cheater, payload: bytes) -> bytes:
    """The number of another card of the own hand."""
    return put(payload, 1, bytes([next(card for card in seat._table.deal.hand if card != payload[1])]))


def peers_place(seat: Cheater, payload: bytes) -> bytes:
    return put(payload, 0, bytes([HANDS[1 - seat._table.deal.state.role][0]]))


def wrong_month(payload: bytes, card: int, at: int) -> bytes:
    """Capture a card of another month."""
    return put(payload, at, bytes([(payload[card] + 4) % 48]))


def hand_instead(seat: Cheater, payload: bytes) -> bytes:
    """Turn a card of the hand instead of the pile's top."""
    return put(payload, 0, bytes([next(card for card in seat._table.deal.hand if card not in seat._table.board.seen)]))


def seen_instead(seat: Cheater, payload: bytes) -> bytes:
    return put(payload, 0, bytes([min(seat._table.board.seen - {payload[0]})]))


def other_token(seat: Cheater, payload: bytes) -> bytes:
    """The token of the next card of the pile."""
    deal = seat._table.deal
    tokens = deal.state.tokens
    return next(token for place, token in tokens.items() if place in HANDS[1 - deal.state.role]) + payload[32:]


def replayed(kind: Kind, at: int) -> Deviate:
    """The proof of an earlier message, one move later."""
    return knows(lambda seat, payload: put(payload, at, earlier(seat, kind)[at : at + 64]))


# The audit and the end


def commitment_of_nothing(seat: Cheater, message: Outgoing) -> Outgoing:
    commitment = seat._table.commitment
    assert commitment is not None
    commitment.value = b"c" * 32
    return forge(seat, message, lambda payload: put(payload, 0, commitment.value))


def restarts_for_ever(seat: Cheater) -> None:
    """Grind: forget the commitment whenever its answer is owed, and the own count."""
    state = seat._state
    if state.due in (Kind.AU3, Kind.AU4) and seat._table.owing == seat.seat and state.round is not None:
        seat._table.commitment = None
        state.round.restarts[seat.seat] = 0


def wins_by_resigning(seat: Cheater, payload: bytes) -> bytes:
    """Resign, but sign that the other one did."""
    statement = _state(seat._table, Ending.RESIGNED, seat.seat)
    return seat._table.device.sign("match-result", statement.encode())


def as_is(seat: Cheater, message: Outgoing) -> Outgoing:
    return message


HONEST = Lie("none", Kind.NEXT, as_is, R.FORM, count=99, cheater=lambda: Resigning(4), honest=lambda: Resigning(4))
"""No lie at all: a short match that somebody gives up."""

LIES: tuple[Lie, ...] = (
    Lie("a greeting of noise", Kind.HELLO, seals(131), R.UNREADABLE, is_a=True),
    Lie("a greeting that another key signed", Kind.HELLO, greeting(device=FAKE), R.UNREADABLE, is_a=True),
    Lie("a greeting in no known version", Kind.HELLO, greeting(version=7), R.VERSION, is_a=True),
    Lie("a key agreement without a secret", Kind.HELLO, greeting(x25519=NOTHING), R.VERSION, is_a=True),
    Lie("another coin than the committed one", Kind.COIN_OPEN, says(lambda p: b"r" * 32), R.PROOF, is_a=True),
    # Shuffles
    Lie("S1: a foreign card", Kind.S1, shuffle(substituted), R.PROOF),
    Lie("S1: a card twice", Kind.S1, shuffle(duplicated), R.PROOF),
    Lie("S1: half of the deck marked", Kind.S1, shuffle(marked), R.PROOF),
    Lie("S1: the identity as a card", Kind.S1, says(lambda p: put(p, 32, NOTHING)), R.FORM),
    Lie("S1: another key than the proved one", Kind.S1, says(lambda p: put(p, 0, p[32:64])), R.PROOF),
    Lie("S1: a short one", Kind.S1, says(lambda p: p[:-1]), R.FORM),
    Lie("S2: a foreign card", Kind.S2, shuffle(substituted), R.PROOF, is_dealer=False),
    Lie("S2: a card twice", Kind.S2, shuffle(duplicated), R.PROOF, is_dealer=False),
    Lie("S2: half of the deck marked", Kind.S2, shuffle(marked), R.PROOF, is_dealer=False),
    Lie(
        "S2: the dealer's own shuffle given back",
        Kind.S2,
        knows(lambda seat, p: put(p, 32, b"".join(seat._table.deal.state.dealer_deck))),
        R.PROOF,
        is_dealer=False,
    ),
    Lie(
        "S2: tokens of two cards exchanged",
        Kind.S2,
        says(lambda p: swap(p, S1_SIZE, S1_SIZE + 32)),
        R.PROOF,
        is_dealer=False,
    ),
    # Deal and claims
    Lie("S3: tokens of two cards exchanged", Kind.S3, says(lambda p: swap(p, 0, 32)), R.PROOF),
    Lie(
        "S3: a card of the own hand shown as the field's",
        Kind.S3,
        knows(lambda seat, p: put(p, 320, bytes([seat._table.deal.hand[0]]))),
        R.PROOF,
    ),
    Lie("S3: a card that does not exist", Kind.S3, says(lambda p: put(p, 320, b"\x30")), R.CARD),
    Lie("S3: a claim of nothing", Kind.S3, knows(claim_of_nothing), R.DECISION),
    Lie("S4: a claim of nothing", Kind.S4, knows(claim_of_nothing), R.DECISION, is_dealer=False),
    Lie("S4: a good deal called void", Kind.S4, says(lambda p: b"\1"), R.DECISION, is_dealer=False),
    Lie(
        "the dealer hides four of a month",
        Kind.S3,
        silent,
        R.DECISION,
        wish=has_teshi,
        cheater=MonthsFirst,
        honest=GoesOn,
    ),
    Lie(
        "the other hides four of a month",
        Kind.S4,
        silent,
        R.DECISION,
        is_dealer=False,
        wish=other_has_teshi,
        cheater=MonthsFirst,
        honest=GoesOn,
    ),
    Lie(
        "the dealer hides four pairs",
        Kind.S3,
        silent,
        R.DECISION,
        wish=has_hidden_kuttsuki,
        cheater=MonthsFirst,
        honest=GoesOn,
    ),
    # Turns
    Lie("T1: another card than dealt", Kind.T1, knows(own_other_card), R.PROOF),
    Lie("T1: another place of the hand", Kind.T1, says(lambda p: put(p, 0, bytes([(p[0] + 1) % 8]))), R.PROOF),
    Lie("T1: a place of the other's hand", Kind.T1, knows(peers_place), R.POSITION),
    Lie("T1: a place of the pile", Kind.T1, says(lambda p: put(p, 0, b"\x18")), R.POSITION),
    Lie("T1: a card played before", Kind.T1, knows(lambda seat, p: earlier(seat, Kind.T1)), R.POSITION, count=2),
    Lie("T1: a forged proof", Kind.T1, says(lambda p: flipped(p, 2)), R.PROOF),
    Lie("T1: a replayed proof", Kind.T1, replayed(Kind.T1, 2), R.PROOF, count=2),
    Lie("T1: an illegal capture", Kind.T1, says(lambda p: wrong_month(p, 1, 66)), R.CAPTURE),
    Lie("T2: the token of another card", Kind.T2, knows(other_token), R.PROOF, is_dealer=False),
    Lie("T2: the identity as a token", Kind.T2, says(lambda p: put(p, 0, NOTHING)), R.FORM, is_dealer=False),
    Lie(
        "T2: a replayed token",
        Kind.T2,
        knows(lambda seat, p: earlier(seat, Kind.T2)),
        R.PROOF,
        is_dealer=False,
        count=2,
    ),
    Lie("T3: a card of the hand as turned", Kind.T3, knows(hand_instead), R.PROOF),
    Lie("T3: a card on the table as turned", Kind.T3, knows(seen_instead), R.POSITION),
    Lie("T3: a forged proof", Kind.T3, says(lambda p: flipped(p, 1)), R.PROOF),
    Lie("T3: an illegal capture", Kind.T3, says(lambda p: wrong_month(p, 0, 65)), R.CAPTURE),
    Lie(
        "T3: a decision that is not due",
        Kind.T3,
        says(lambda p: put(p, 66, b"\1")),
        R.DECISION,
        when=lambda p: not p[66],
    ),
    Lie(
        "T3: no decision where one is due",
        Kind.T3,
        says(lambda p: put(p, 66, b"\0")),
        R.DECISION,
        when=lambda p: bool(p[66]),
        wish=dealer_decides,
    ),
    # Envelopes
    Lie("another history", Kind.T1, lambda s, m: forge(s, m, head=b"h" * 32), R.CHAIN),
    Lie("another signer", Kind.T1, lambda s, m: forge(s, m, device=FAKE), R.CHAIN),
    Lie("a damaged signature", Kind.T1, lambda s, m: forge(s, m, signature=lambda x: flipped(x, 63)), R.CHAIN),
    Lie("padding that is not zero", Kind.T1, lambda s, m: forge(s, m, body=lambda b: b[:-1] + b"\1"), R.FORM),
    Lie("an unknown type", Kind.T1, lambda s, m: forge(s, m, body=lambda b: b"\x63" + b[1:]), R.FORM),
    Lie("a message that is not due", Kind.T1, lambda s, m: forge(s, m, lambda p: p, Kind.T3), R.FORM),
    Lie("another number inside", Kind.T1, lambda s, m: forge(s, m, counter=m.counter + 2), R.UNREADABLE),
    Lie("another phase outside", Kind.T1, lambda s, m: Outgoing(m.counter, Phase.AUDIT, m.envelope), R.UNREADABLE),
    Lie("noise", Kind.T1, seals(653), R.UNREADABLE),
    Lie("noise of another size", Kind.T1, seals(9357), R.UNREADABLE),
    Lie("an old envelope again", Kind.T1, lambda s, m: Outgoing(m.counter, m.phase, s.sent[-1]), R.UNREADABLE),
    Lie(
        "the other's envelope given back",
        Kind.T1,
        lambda s, m: Outgoing(m.counter, m.phase, s.received[-1]),
        R.UNREADABLE,
    ),
    # Audit: the dealer's hand yaku ends the round at once
    Lie(
        "the dealer's audit of another result", Kind.AU1, says(lambda p: put(p, 32, NOTHING)), R.RESULT, wish=has_teshi
    ),
    Lie(
        "the other's audit of another result",
        Kind.AU2,
        says(lambda p: put(p, 64, NOTHING)),
        R.RESULT,
        is_dealer=False,
        wish=has_teshi,
    ),
    Lie(
        "the audit refused: the next round instead",
        Kind.AU1,
        lambda s, m: forge(s, m, lambda p: b"", Kind.NEXT),
        R.FORM,
        wish=has_teshi,
    ),
    Lie(
        "the audit's answer refused",
        Kind.AU4,
        lambda s, m: forge(s, m, lambda p: b"", Kind.NEXT),
        R.FORM,
        is_dealer=False,
        wish=has_teshi,
    ),
    Lie("an audit answer that is wrong", Kind.AU3, says(lambda p: flipped(p, len(p) - 1)), R.AUDIT, wish=has_teshi),
    Lie("an audit answer that is short", Kind.AU4, says(lambda p: p[:-1]), R.FORM, is_dealer=False, wish=has_teshi),
    Lie("an audit commitment to nothing", Kind.AU1, commitment_of_nothing, R.AUDIT, wish=has_teshi),
    Lie(
        "audits begun anew without end", Kind.AU1, as_is, R.ATTEMPTS, wish=has_teshi, count=4, before=restarts_for_ever
    ),
    # The end
    Lie("a resignation that wins", Kind.RESIGN, knows(wins_by_resigning), R.RESULT, cheater=Resigning),
    Lie(
        "a result signed with noise",
        Kind.RESULT_SIGN,
        says(lambda p: noise(64)),
        R.RESULT,
        is_dealer=False,
        rules=("boardgameland", 3),
        wish=lambda cards: dealer_decides(cards, "boardgameland"),  # who loses the last round signs first
    ),
)
assert len({lie.name for lie in LIES}) == len(LIES)
