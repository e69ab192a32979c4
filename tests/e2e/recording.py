"""A seat that plays like any other and notes every secret it uses, as it uses it.

What is not stored anywhere is derived again from what was drawn, with the formulas of docs/protocol.md, and compared
with what went into the message: a note of something that is no secret of this match would fail there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from koikoi_sdk.poker import Deal, DeviceKey, audit, group, shuffle
from koikoi_sdk.poker.layout import DEALER, DECK_SIZE, FIELD, HANDS, S1_SIZE, SECOND_TOKENS
from koikoi_sdk.poker.statement import Statement
from koikoi_sdk.poker.transcript import digest, hedge, proof_context, secret_scalar, u16
from koikoi_sdk.table import Kind, Seat, Send, draw_from_system
from koikoi_sdk.table.contract import Contract
from koikoi_sdk.table.opening import _hellos
from koikoi_sdk.table.state import State
from nacl import bindings

from tests.e2e.search import Search

__all__ = ["Recorder", "RecordingRandom", "RecordingSeat"]

_CLOSING = (Kind.RESULT_SIGN, Kind.RESIGN)
_PUBLIC_LABELS = ("aead", "hello")  # an envelope's nonce; A's share is noted by its seat, B's travels openly
_PROOF = 64
# Where the equality proofs lie in a payload, and whether one may follow in a claim.
_EQUALITIES = {
    Kind.S2: (S1_SIZE + 32 * len(SECOND_TOKENS),),
    Kind.S3: (32 * 8, 32 * 8 + _PROOF + len(FIELD)),
    Kind.T1: (2,),
    Kind.T2: (32,),
    Kind.T3: (1,),
}
_CLAIMS = {Kind.S3: 32 * 8 + 2 * _PROOF + len(FIELD), Kind.S4: 1}


class Recorder:
    """The secrets of one match so far, ready to be looked for; how many of each kind; the kind of each message."""

    def __init__(self) -> None:
        self.search = Search()
        self.counts: Counter[str] = Counter()
        self.kinds: dict[int, Kind] = {}

    def note(self, name: str, *values: bytes) -> None:
        """Note secrets of one kind."""
        for value in values:
            self.counts[name] += 1
            self.search.add(name, value)


class RecordingRandom:
    """Draws from the operating system and notes what it drew."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.drawn: dict[tuple[str, int, int], bytes] = {}
        self.x25519 = b""

    def __call__(self, label: str, number: int, index: int, size: int) -> bytes:
        value = draw_from_system(label, number, index, size)
        self.drawn[label, number, index] = value
        if label == "x25519":
            self.x25519 = value
        if label not in _PUBLIC_LABELS:
            self.recorder.note(f"drawn: {label}", value)
        return value


class RecordingSeat(Seat):
    """A seat that notes its secrets before each message leaves it."""

    def __init__(self, contract: Contract, device: DeviceKey, random: RecordingRandom, state: State) -> None:
        super().__init__(contract, device, random, state)
        self._random = random
        self._recorder = random.recorder

    def _greet(self) -> Send:
        self._recorder.kinds[self._state.counter] = Kind.HELLO
        step = super()._greet()
        assert isinstance(step, Send)
        if self._state.share:
            self._recorder.note("coin share", self._state.share)
        return step

    def _meet(self, data: bytes) -> None:
        super()._meet(data)
        channel = self._state.channel
        if channel is not None:
            self._recorder.note("envelope key", channel.sending, channel.receiving)
            hellos = _hellos(self._table)
            peer = next(
                hello for hello in hellos if hello.x25519 != bindings.crypto_scalarmult_base(self._random.x25519)
            )
            shared = bindings.crypto_scalarmult(self._random.x25519, peer.x25519)
            publics = (b"".join(self._keys()), hellos[0].x25519 + hellos[1].x25519)
            to_b = digest("e2e", shared, channel.session_id, *publics, b"\0")[:32]
            assert to_b in (channel.sending, channel.receiving)
            self._recorder.note("x25519 shared", shared)

    def _send(self, kind: Kind, payload: bytes) -> Send:
        state = self._state
        message = self._table.channel.sign(self._table.device, kind, state.counter, state.head, payload)
        self._recorder.kinds[state.counter] = kind
        # The ranking gets the signature that a closing message carries; its other bytes nobody gets.
        self._recorder.note("body", message.body[:64] if kind in _CLOSING else message.body)
        if kind not in _CLOSING:
            self._recorder.note("payload", payload)
        self._recorder.note("message signature", message.signature)
        if self._table.deals and kind not in _CLOSING:
            self._note_deal(kind, payload)
        step = super()._send(kind, payload)
        assert isinstance(step, Send)
        return step

    def _keys(self) -> Iterable[bytes]:
        contract = self._table.contract
        return contract.keys[contract.seat_a], contract.keys[1 - contract.seat_a]

    def _note_deal(self, kind: Kind, payload: bytes) -> None:
        deal = self._table.deals[0] if kind in (Kind.AU1, Kind.AU2, Kind.AU3, Kind.AU4) else self._table.deal
        layer = deal._layer
        assert group.multiply_base(layer.secret) == layer.key
        for at in _EQUALITIES.get(kind, ()):
            self._note_equality(payload[at : at + _PROOF], layer.secret)
        claim = _CLAIMS.get(kind)
        if claim is not None and len(payload) > claim:
            self._note_equality(payload[-_PROOF:], layer.secret)
        if kind in (Kind.S1, Kind.S2):
            self._recorder.note("seed", bytes(deal.state.seed))
            self._recorder.note("k", layer.secret, layer.inverse)
            self._recorder.note("permutation", bytes(layer.permutation))
            self._note_shuffle(deal, payload[32 + DECK_SIZE : S1_SIZE])
        if kind in (Kind.S2, Kind.S3):
            self._note_tokens(deal)
        if kind in (Kind.AU1, Kind.AU2):
            self._note_audit(deal)

    def _note_equality(self, proof: bytes, secret: bytes) -> None:
        challenge, answer = group.split(proof)
        nonce = group.scalar_subtract(answer, group.scalar_multiply(challenge, secret))
        self._recorder.note("equality proof", challenge, answer)
        self._recorder.note("equality nonce", nonce)

    def _note_shuffle(self, deal: Deal, data: bytes) -> None:
        state, layer, head = deal.state, deal._layer, self._state.head
        context = proof_context(state.did, "shuffle", state.role, head)
        randomness = hedge(state.seed, state.did, "shuffle", head, self._fresh)
        proof = shuffle.Proof.decode(data)
        statement = _statement_before(deal)
        bound = (randomness, shuffle.hash_statement(context, statement, proof.commitments), b"".join(proof.chain))
        indices = [u16(index) for index in range(48)]
        nonces = [secret_scalar(f"nonce/{name}", randomness, context, at) for name in ("r", "rh") for at in indices]
        nonces += [secret_scalar(f"nonce/{name}", *bound, at) for name in ("wh", "wp") for at in indices]
        nonces += [secret_scalar(f"nonce/{name}", *bound, u16(0)) for name in ("w1", "w2", "w3", "wk")]
        used = group.scalar_subtract(proof.sk, group.scalar_multiply(proof.challenge, layer.secret))
        assert nonces[-1] == used, "these are not the nonces of this proof"
        self._recorder.note("hedged randomness", randomness)
        self._recorder.note("shuffle nonce", *nonces)
        answers = (proof.challenge, proof.s1, proof.s2, proof.s3, proof.sk, *proof.sh, *proof.sp)
        self._recorder.note("shuffle proof", *answers)

    def _note_tokens(self, deal: Deal) -> None:
        """All 48, also those that nobody ever gives."""
        state, layer = deal.state, deal._layer
        if state.role == DEALER:
            tokens = [group.multiply(layer.inverse, image) for image in state.deck]
        else:
            tokens = [state.dealer_deck[place] for place in layer.permutation]
        given = HANDS[1 - state.role]
        assert all(state.tokens[place] == tokens[place] for place in given if place in state.tokens)
        self._recorder.note("token", *tokens)

    def _note_audit(self, deal: Deal) -> None:
        state, head, commitment = deal.state, self._state.head, self._table.commitment
        assert commitment is not None and commitment._seeds is not None
        context = audit.audit_context(state.did, state.role, head)
        master = hedge(state.seed, state.did, "audit", head, self._fresh)
        assert digest("audit/seed", master, context, u16(0))[:32] == commitment._seeds[0]
        self._recorder.note("audit master", master)
        self._recorder.note("audit seed", *commitment._seeds)
        self._recorder.note("audit factor", *(secret_scalar("audit/t", seed) for seed in commitment._seeds))

    @property
    def _fresh(self) -> bytes:
        """The random bytes of the first proof in the message being sent."""
        return self._random.drawn["fresh", self._state.counter, 0]


def _statement_before(deal: Deal) -> Statement:
    """The statement of this device's shuffle, right after it was made."""
    state = deal.state
    if state.role == DEALER:
        return Statement(deal._layer.key, deal.points, state.dealer_deck)
    return Statement(deal._layer.key, state.dealer_deck, state.deck)
