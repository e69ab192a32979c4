"""The second, independent proof of a shuffle, made after the round (docs/protocol.md section 7).

Cut and choose with 40 rounds: the prover commits to 40 re-shuffles, the opponent sends a nonce, and
each of the 40 hashed challenge bits asks for the way from the input deck or the way to the output
deck, never both. A wrong deck passes with probability 2^-40. No key, card or permutation is
disclosed (Sako and Kilian, "Receipt-Free Mix-Type Voting Scheme"). Shares only group arithmetic and
hashing with `shuffle`.
"""

from collections.abc import Callable, Iterator, Sequence

from koikoi_sdk.poker import group
from koikoi_sdk.poker.errors import OrderError, Reason, require
from koikoi_sdk.poker.group import SIZE, multiply, multiply_base, public_weighted_sum
from koikoi_sdk.poker.statement import Layer, Statement
from koikoi_sdk.poker.transcript import CARDS, byte, digest, permutation, secret_scalar, u16

ROUNDS = 40
NONCE_SIZE = SIZE
SEED_ANSWER = SIZE
LINK_ANSWER = SIZE + CARDS
Product = Callable[[bytes, bytes], bytes]


def audit_context(did: bytes, role: int, head: bytes) -> bytes:
    """Give actx; `role` is the prover's, `head` the one before the message with the commitment."""
    return digest("audit", did, byte(role), head)


def challenge_bits(context: bytes, commitment: bytes, nonce: bytes, rounds: int = ROUNDS) -> list[int]:
    """Give the challenge: one bit a round."""
    data = digest("audit/challenge", context, commitment, nonce)
    return [data[index >> 3] >> (index & 7) & 1 for index in range(rounds)]


def response_size(bits: Sequence[int]) -> int:
    """Give the exact number of bytes that answer these challenge bits."""
    return sum(LINK_ANSWER if bit else SEED_ANSWER for bit in bits)


def _reshuffle(seed: bytes) -> tuple[bytes, tuple[int, ...]]:
    return secret_scalar("audit/t", seed), permutation(CARDS, "audit/perm", seed)


def _public_product(factor: bytes, point: bytes) -> bytes:
    """Multiply what the prover disclosed; the prover itself uses `multiply`, of constant time."""
    return public_weighted_sum((factor,), (point,))


def _digest_image(product: Product, factor: bytes, key: bytes, deck: Sequence[bytes], order: Sequence[int]) -> bytes:
    return digest("audit/z", key + b"".join(product(factor, deck[card]) for card in order))


def _commit(context: bytes, images: Sequence[bytes]) -> bytes:
    return digest("audit/commit", context, *images)[:SIZE]


class Commitment:
    """A prover's commitment, which answers one nonce, ever.

    Two answers to one commitment disclose the key, so the secrets are gone before the first answer
    is returned, and the object can be neither copied nor pickled: a restarted device makes a new
    commitment (AU1 again). `value` is what travels.
    """

    def __init__(self, context: bytes, statement: Statement, layer: Layer, master: bytes) -> None:
        """Commit to 40 re-shuffles derived from `master`, the 64 hedged bytes of kind `audit`."""
        self._context, self._layer = context, layer
        self._seeds: list[bytes] | None = [
            digest("audit/seed", master, context, u16(index))[:SIZE] for index in range(ROUNDS)
        ]
        self.value = _commit(context, [_from_seed(seed, statement) for seed in self._seeds])

    def __reduce__(self) -> str:
        raise TypeError("an audit commitment is never stored or copied")

    def respond(self, nonce: bytes) -> bytes:
        """Answer the opponent's nonce, once.

        Raises:
            ProofError: FORM if the nonce has not 32 bytes; it may still be answered then.
            OrderError: A nonce was answered before.
        """
        require(len(nonce) == NONCE_SIZE, Reason.FORM, f"a nonce has {NONCE_SIZE} bytes")
        seeds, self._seeds = self._seeds, None
        if seeds is None:
            raise OrderError("this commitment has answered its one nonce")
        bits = challenge_bits(self._context, self.value, nonce)
        parts = [_link(seed, self._layer) if bit else seed for seed, bit in zip(seeds, bits, strict=True)]
        del self._layer
        return b"".join(parts)


def _from_seed(seed: bytes, statement: Statement, product: Product = multiply) -> bytes:
    factor, order = _reshuffle(seed)
    return _digest_image(product, factor, multiply_base(factor), statement.before, order)


def _link(seed: bytes, layer: Layer) -> bytes:
    factor, order = _reshuffle(seed)
    places = {card: place for place, card in enumerate(layer.permutation)}
    return group.scalar_multiply(factor, layer.inverse) + bytes(places[card] for card in order)


def _from_link(answer: bytes, statement: Statement) -> bytes:
    factor, order = answer[:SIZE], answer[SIZE:]
    group.require_scalars([factor], "audit response")
    require(factor != group.ZERO, Reason.AUDIT, "an audit response is zero")
    whole = sorted(order) == list(range(CARDS))
    require(whole, Reason.AUDIT, "an audit response is not a permutation")
    key = _public_product(factor, statement.key)
    return _digest_image(_public_product, factor, key, statement.after, order)


def _answers(bits: Sequence[int], response: bytes) -> Iterator[bytes]:
    at = 0
    for bit in bits:
        end = at + (LINK_ANSWER if bit else SEED_ANSWER)
        yield response[at:end]
        at = end


def verify(context: bytes, statement: Statement, commitment: bytes, nonce: bytes, response: bytes) -> None:
    """Accept the audit of one shuffle or refuse it.

    `nonce` is this device's own, drawn after the commitment was received and never used before.

    Raises:
        ProofError: FORM for a wrong length or a non-canonical scalar, else AUDIT.
    """
    check(context, statement, commitment, challenge_bits(context, commitment, nonce), response)


def check(context: bytes, statement: Statement, commitment: bytes, bits: Sequence[int], response: bytes) -> None:
    """Check a response against challenge bits already derived; `verify` is the protocol's form."""
    require(len(response) == response_size(bits), Reason.FORM, "the audit response has another length")
    images = [
        _from_link(answer, statement) if bit else _from_seed(answer, statement, _public_product)
        for bit, answer in zip(bits, _answers(bits, response), strict=True)
    ]
    require(commitment == _commit(context, images), Reason.AUDIT, "the audit response does not fit")
