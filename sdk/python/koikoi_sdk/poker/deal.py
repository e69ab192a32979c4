"""One attempt to deal and play 48 cards, as seen by one device (docs/protocol.md sections 3, 4 and 10).

Sans-I/O. A `Deal` builds the poker part of this device's messages and accepts the opponent's; it
never sees an envelope, a rule of the game, a clock or a random generator. Both devices count the
same steps, so what is due is a function of the count alone:

    step 0  shuffle_first     dealer    S1
    step 1  shuffle_second    other     S2
    step 2  show_field        dealer    S3      then, before the first play, each may claim its hand
    then in turn t = 0, 1, ... of the mover (t even: dealer)
    step 3+3t  play           mover     T1
    step 4+3t  give_token     opponent  T2      always for the top of the pile, position 24+t
    step 5+3t  flip           mover     T3

`accept_X` takes what the opponent's X built. Every accept checks first and changes the state last:
when it raises ProofError nothing has changed. Positions: 0-7 the dealer's hand, 8-15 the other hand,
16-23 the field, 24-47 the pile. No function takes a point, or a position to release a token for.

Storing: `DealState` is plain data; `Deal(state)` derives everything else again (key, permutation,
card points, cards read) from (seed, did) and the two decks, without verifying them a second time.
Write the state after each step, together with the message. Messages are never built again: a
restarted device resends the stored bytes.
"""

from collections.abc import Iterable, Mapping, Sequence

from koikoi_sdk.poker import audit, group, proofs, shuffle
from koikoi_sdk.poker.errors import OrderError, ProofError, Reason, require
from koikoi_sdk.poker.group import SIZE
from koikoi_sdk.poker.layout import (
    CLAIM_SIZE,
    DEALER,
    DECK_SIZE,
    FIELD,
    FLIP_SIZE,
    HANDS,
    OTHER,
    PLAY_SIZE,
    S1_SIZE,
    S2_SIZE,
    S3_SIZE,
    SECOND_TOKENS,
    TOKEN_SIZE,
    Role,
    Step,
    card_points,
    due,
    other_role,
    reader,
    top,
)
from koikoi_sdk.poker.state import DealState
from koikoi_sdk.poker.statement import Layer, Statement
from koikoi_sdk.poker.transcript import CARDS, hedge, proof_context


class Deal:
    """Builds and accepts the messages of one deal for one device.

    Building methods take `head`, the transcript head before the message, and 32 fresh random bytes for
    each proof, in payload order; they raise OrderError if the message is not due. Accepting methods
    take the payload and the same head; they raise ProofError. All but claims advance `state.steps`.
    """

    def __init__(self, state: DealState) -> None:
        """Take up a deal, new or stored.

        Raises:
            ValueError: The seed has not 32 bytes (it was erased).
        """
        if len(state.seed) != SIZE:
            raise ValueError("the seed of this deal is gone; an erased deal cannot be taken up")
        self.state = state
        self.points = card_points(state.did)
        self._secrets: Layer | None = Layer.derive(state.seed, state.did)
        self._card_of = {encoded: card for card, encoded in enumerate(self.points)}
        mine = {place: token for place, token in state.tokens.items() if reader(place) == state.role}
        self._read = self._look_up(mine)

    @property
    def due(self) -> tuple[Step, Role]:
        """Give the step that is due and the role that owes it (claims aside)."""
        return due(self.state.steps)

    @property
    def top(self) -> int:
        """Give the position of the pile's top card."""
        return top(self.state.steps)

    @property
    def cards(self) -> Mapping[int, int]:
        """Give all cards that this device knows, by position: its own readings and what was opened."""
        return {**self._read, **self.state.opened}

    @property
    def hand(self) -> tuple[int, ...]:
        """Give this device's eight cards as dealt, in position order; () before it knows them."""
        return self._known(HANDS[self.state.role])

    @property
    def field(self) -> tuple[int, ...]:
        """Give the eight field cards as dealt; () before this device knows them."""
        return self._known(FIELD)

    def shuffle_first(self, head: bytes, fresh: bytes) -> bytes:
        """Build S1: K_D | A | proof, 7872 bytes."""
        self._start(Step.FIRST)
        statement = self._layer.shuffle(self.points)
        payload = self._prove_shuffle(statement, head, fresh)
        self.state.dealer_deck = statement.after
        self.state.steps += 1
        return payload

    def accept_first(self, payload: bytes, head: bytes) -> None:
        """Accept S1; the dealer's shuffle of the card points is proved."""
        self._expect(Step.FIRST, payload, S1_SIZE)
        statement = self._require_shuffle(self.points, payload, head)
        self.state.peer_key, self.state.dealer_deck = statement.key, statement.after
        self.state.steps += 1

    def shuffle_second(self, head: bytes, fresh: bytes, fresh_token: bytes) -> bytes:
        """Build S2: K_N | B | proof | tokens for 0-7 and 16-23 | proof, 8448 bytes."""
        self._start(Step.SECOND)
        statement = self._layer.shuffle(self.state.dealer_deck)
        payload = self._prove_shuffle(statement, head, fresh)
        self.state.deck = statement.after
        self.state.steps += 1
        return payload + self._release(SECOND_TOKENS, head, fresh_token)

    def accept_second(self, payload: bytes, head: bytes) -> None:
        """Accept S2; the final deck is proved, and the dealer can read its hand and the field."""
        self._expect(Step.SECOND, payload, S2_SIZE)
        shuffled, tokens = payload[:S1_SIZE], payload[S1_SIZE:]
        proofs.require_tokens_form(tokens)
        statement = self._require_shuffle(self.state.dealer_deck, shuffled, head)
        received = self._check_tokens(SECOND_TOKENS, tokens, head, statement)
        self.state.peer_key, self.state.deck = statement.key, statement.after
        self._keep(*received)
        self.state.steps += 1

    def show_field(self, head: bytes, fresh_token: bytes, fresh_opening: bytes) -> bytes:
        """Build S3 without a claim: tokens for 8-15 | proof | field cards | proof, 392 bytes."""
        self._start(Step.FIELD)
        tokens = self._release(HANDS[OTHER], head, fresh_token)
        payload = tokens + self._open(FIELD, head, fresh_opening)
        self.state.steps += 1
        return payload

    def accept_field(self, payload: bytes, head: bytes) -> None:
        """Accept S3 without its claim; the other can read its hand, and the field is open."""
        self._expect(Step.FIELD, payload, S3_SIZE)
        tokens, opening = payload[:-CLAIM_SIZE], payload[-CLAIM_SIZE:]
        proofs.require_tokens_form(tokens)
        proofs.require_form(opening[len(FIELD) :])
        received = self._check_tokens(HANDS[OTHER], tokens, head)
        self._accept_opening(FIELD, opening, head)
        self._keep(*received)
        self.state.steps += 1

    def claim_hand(self, head: bytes, fresh: bytes) -> bytes:
        """Build a claim: this device's eight cards | proof, 72 bytes, appended to S3 or S4.

        It shows the whole hand. `head` is that of the message it is appended to; build S3 first.
        """
        places = HANDS[self.state.role]
        if self.due[0] is not Step.PLAY or not self.state.opened.keys().isdisjoint(places):
            raise OrderError("a hand can be claimed once, between the deal and the first play")
        return self._open(places, head, fresh)

    def accept_claim(self, payload: bytes, head: bytes) -> tuple[int, ...]:
        """Accept the opponent's claim and give its eight cards; whether it is justified is a rule."""
        require(self.due[0] is Step.PLAY, Reason.FORM, "no claim is possible now")
        require(len(payload) == CLAIM_SIZE, Reason.FORM, f"a claim has {CLAIM_SIZE} bytes")
        proofs.require_form(payload[len(FIELD) :])
        return self._accept_opening(HANDS[other_role(self.state.role)], payload, head)

    def play(self, position: int, head: bytes, fresh: bytes) -> bytes:
        """Build the start of T1: position | card | proof, 66 bytes."""
        self._start(Step.PLAY)
        if position not in HANDS[self.state.role] or position in self.state.opened:
            raise OrderError(f"position {position} is no card left in this hand")
        opening = self._open([position], head, fresh)
        self.state.steps += 1
        return bytes([position]) + opening

    def accept_play(self, payload: bytes, head: bytes) -> tuple[int, int]:
        """Accept the start of T1 and give (position, card)."""
        self._expect(Step.PLAY, payload, PLAY_SIZE)
        position, opening = payload[0], payload[1:]
        proofs.require_form(opening[1:])
        in_hand = position in HANDS[other_role(self.state.role)]
        require(in_hand, Reason.POSITION, "the played position is not in the sender's hand")
        (card,) = self._accept_opening([position], opening, head)
        self.state.steps += 1
        return position, card

    def give_token(self, head: bytes, fresh: bytes) -> bytes:
        """Build T2: the token for the top of the pile | proof, 96 bytes. Possible once per play."""
        self._start(Step.TOKEN)
        payload = self._release([self.top], head, fresh)
        self.state.steps += 1
        return payload

    def accept_token(self, payload: bytes, head: bytes) -> int:
        """Accept T2 and give the card that this device now has to flip."""
        self._expect(Step.TOKEN, payload, TOKEN_SIZE)
        proofs.require_tokens_form(payload)
        self._keep(*self._check_tokens([self.top], payload, head))
        card = self._read[self.top]
        self.state.steps += 1
        return card

    def flip(self, head: bytes, fresh: bytes) -> bytes:
        """Build the start of T3: card | proof, 65 bytes."""
        self._start(Step.FLIP)
        payload = self._open([self.top], head, fresh)
        self.state.steps += 1
        return payload

    def accept_flip(self, payload: bytes, head: bytes) -> int:
        """Accept the start of T3 and give the card."""
        self._expect(Step.FLIP, payload, FLIP_SIZE)
        proofs.require_form(payload[1:])
        (card,) = self._accept_opening([self.top], payload, head)
        self.state.steps += 1
        return card

    def commit_audit(self, head: bytes, fresh: bytes) -> audit.Commitment:
        """Commit to the audit of this device's shuffle; `head` precedes the message that carries it.

        Possible from the moment the final deck is known. The result must never be stored.

        Raises:
            OrderError: The deck is not known, or the same commitment was made before: a repeated
                generator, and answering it again would disclose the key.
        """
        role = self.state.role
        context = audit.audit_context(self.state.did, role, head)
        commitment = audit.Commitment(context, self._statement(role), self._layer, self._hedge("audit", head, fresh))
        if commitment.value in self.state.commitments:
            raise OrderError("this audit commitment was made before; its fresh bytes are not fresh")
        self.state.commitments.append(commitment.value)
        return commitment

    def challenge_audit(self, head: bytes, commitment: bytes, nonce: bytes) -> None:
        """Fix the nonce with which this device answers the opponent's commitment.

        `head` precedes the message with the commitment. `nonce` is 32 random bytes drawn now, after the
        commitment arrived: who knows it earlier can grind a commitment that hides a wrong deck. A new
        challenge voids the open one (docs/protocol.md section 7, restart).

        Raises:
            OrderError: The nonce was used before in this deal.
        """
        if nonce in self.state.nonces or len(nonce) != audit.NONCE_SIZE:
            raise OrderError("an audit nonce is 32 bytes that were never used before")
        require(len(commitment) == SIZE, Reason.FORM, f"an audit commitment has {SIZE} bytes")
        self.state.nonces.append(nonce)
        self.state.challenge = (head, commitment)

    def accept_audit(self, response: bytes) -> None:
        """Accept the audit of the opponent's shuffle: its response to the open challenge.

        Raises:
            ProofError: FORM (length, non-canonical scalar, no challenge is open), else AUDIT.
        """
        if self.state.challenge is None:
            raise ProofError(Reason.FORM, "no audit response is due")
        (head, commitment), role = self.state.challenge, other_role(self.state.role)
        context = audit.audit_context(self.state.did, role, head)
        audit.verify(context, self._statement(role), commitment, self.state.nonces[-1], response)
        self.state.challenge = None

    def erase(self) -> None:
        """Forget key, permutation, seed and unopened cards; only what was opened stays readable.

        Best effort: Python cannot overwrite immutable bytes, so the seed is zeroed and the rest dropped.
        """
        self.state.seed[:] = bytes(len(self.state.seed))
        self.state.seed.clear()
        self._secrets = None
        self._read.clear()

    @property
    def _layer(self) -> Layer:
        if self._secrets is None:
            raise OrderError("the secrets of this deal were erased")
        return self._secrets

    def _known(self, places: Iterable[int]) -> tuple[int, ...]:
        known = self.cards
        return tuple(known[place] for place in places if place in known)

    def _start(self, step: Step) -> None:
        if self.due != (step, self.state.role):
            raise OrderError(f"{step.value} is not due from this device; due is {self.due[0].value}")

    def _expect(self, step: Step, payload: bytes, size: int) -> None:
        from_peer = self.due[0] is step and self.due[1] != self.state.role
        require(from_peer, Reason.FORM, f"{step.value} is not due from the opponent")
        require(len(payload) == size, Reason.FORM, f"{step.value} has {size} bytes")

    def _statement(self, role: Role) -> Statement:
        state = self.state
        key = self._layer.key if role == state.role else state.peer_key
        if not state.deck:
            raise OrderError("the deck of this deal is not complete")
        if role == DEALER:
            return Statement(key, self.points, state.dealer_deck)
        return Statement(key, state.dealer_deck, state.deck)

    def _hedge(self, kind: str, head: bytes, fresh: bytes) -> bytes:
        return hedge(self.state.seed, self.state.did, kind, head, fresh)

    def _prove_shuffle(self, statement: Statement, head: bytes, fresh: bytes) -> bytes:
        context = proof_context(self.state.did, "shuffle", self.state.role, head)
        randomness = self._hedge("shuffle", head, fresh)
        proof = shuffle.prove(context, statement, self._layer, randomness)
        return b"".join((statement.key, *statement.after, proof))

    def _require_shuffle(self, before: Sequence[bytes], payload: bytes, head: bytes) -> Statement:
        key, *after = group.split(payload[: SIZE + DECK_SIZE])
        statement = Statement(key, tuple(before), tuple(after))
        context = proof_context(self.state.did, "shuffle", other_role(self.state.role), head)
        shuffle.verify(context, statement, payload[SIZE + DECK_SIZE :])
        require(key != self._layer.key, Reason.PROOF, "the opponent's public key is mine")
        return statement

    def _release(self, places: Sequence[int], head: bytes, fresh: bytes) -> bytes:
        """Make the tokens that the schedule demands now; private, since places must follow from it."""
        state, layer = self.state, self._layer
        images = [state.deck[place] for place in places]
        if state.role == DEALER:
            tokens = [group.multiply(layer.inverse, image) for image in images]
        else:  # B[j] = b*A[sigma(j)], so removing b gives back a point of A
            tokens = [state.dealer_deck[layer.permutation[place]] for place in places]
        context = proof_context(state.did, "token", state.role, head)
        equality = proofs.Equality(context, bytes(places), layer.key, tokens, images)
        proof = proofs.prove(equality, layer.secret, self._hedge("token", head, fresh))
        state.tokens.update(zip(places, tokens, strict=True))
        return b"".join((*tokens, proof))

    def _check_tokens(
        self, places: Sequence[int], payload: bytes, head: bytes, made: Statement | None = None
    ) -> tuple[dict[int, bytes], dict[int, int]]:
        """Give tokens and the cards they show; checked against the deck, in S2 the one in the message."""
        key, deck = (made.key, made.after) if made else (self.state.peer_key, self.state.deck)
        tokens = group.split(payload[: -proofs.PROOF_SIZE])
        context = proof_context(self.state.did, "token", other_role(self.state.role), head)
        images = [deck[place] for place in places]
        equality = proofs.Equality(context, bytes(places), key, tokens, images)
        proofs.verify(equality, payload[-proofs.PROOF_SIZE :])
        received = dict(zip(places, tokens, strict=True))
        return received, self._look_up(received)

    def _keep(self, tokens: Mapping[int, bytes], cards: Mapping[int, int]) -> None:
        self.state.tokens.update(tokens)
        self._read.update(cards)

    def _look_up(self, tokens: Mapping[int, bytes]) -> dict[int, int]:
        """Read cards from tokens for this device, by position."""
        if self.state.role == DEALER:
            order = self._layer.permutation
            table = dict(zip(self.state.dealer_deck, order, strict=False))  # no deck yet: no tokens
            found = {place: table.get(token) for place, token in tokens.items()}
        else:
            inverse = self._layer.inverse
            bare = {place: group.multiply(inverse, token) for place, token in tokens.items()}
            found = {place: self._card_of.get(encoded) for place, encoded in bare.items()}
        cards = {place: card for place, card in found.items() if card is not None}
        require(len(cards) == len(tokens), Reason.CARD, "a token is no card of this deal")
        return cards

    def _open(self, places: Sequence[int], head: bytes, fresh: bytes) -> bytes:
        state, layer = self.state, self._layer
        cards = [self._read[place] for place in places]
        equality = self._opening(state.role, layer.key, places, cards, head)
        proof = proofs.prove(equality, layer.secret, self._hedge("open", head, fresh))
        state.opened.update(zip(places, cards, strict=True))
        return bytes(cards) + proof

    def _accept_opening(self, places: Sequence[int], payload: bytes, head: bytes) -> tuple[int, ...]:
        cards, proof = tuple(payload[: len(places)]), payload[len(places) :]
        opened = self.state.opened
        require(opened.keys().isdisjoint(places), Reason.POSITION, "a position is opened twice")
        require(max(cards) < CARDS, Reason.CARD, f"a card number is above {CARDS - 1}")
        fresh = len(set(cards)) == len(cards) and set(cards).isdisjoint(opened.values())
        require(fresh, Reason.POSITION, "a card is opened twice")
        sender = other_role(self.state.role)
        proofs.verify(self._opening(sender, self.state.peer_key, places, cards, head), proof)
        opened.update(zip(places, cards, strict=True))
        return cards

    def _opening(
        self, role: int, key: bytes, places: Sequence[int], cards: Sequence[int], head: bytes
    ) -> proofs.Equality:
        context = proof_context(self.state.did, "open", role, head)
        points = [self.points[card] for card in cards]
        tokens = [self.state.tokens[place] for place in places]
        return proofs.Equality(context, bytes(places) + bytes(cards), key, points, tokens)
