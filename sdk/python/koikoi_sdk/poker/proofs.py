"""The proof that one secret key removed or added a layer on several points (section 6).

Chaum and Pedersen, "Wallet Databases with Observers": equality of discrete logarithms, batched over
random weights, made non-interactive over the complete statement. Proved: key = k*G and
images[i] = k*points[i] for every i. The weights are essential: without them two errors that cancel
in the sum would pass.

Token: points = tokens, images = deck points, key of the giver.
Opening: points = card points, images = tokens, key of the reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from koikoi_sdk.poker import group
from koikoi_sdk.poker.errors import Reason, require
from koikoi_sdk.poker.group import add_all, multiply, multiply_base, public_weighted_sum
from koikoi_sdk.poker.transcript import digest, scalar, secret_scalar, u16

PROOF_SIZE = 2 * group.SIZE
"""Bytes of a proof, however many points it covers: 64."""


@dataclass(frozen=True)
class Equality:
    """Claims that images[i] = k*points[i] for all i, with key = k*G, in one context.

    `label` is the position bytes (token) or position bytes | card bytes (opening).
    """

    context: bytes
    label: bytes
    key: bytes
    points: Sequence[bytes]
    images: Sequence[bytes]

    def digest(self) -> bytes:
        """Give st."""
        lists = (b"".join(self.points), b"".join(self.images))
        return digest("dleq/statement", self.context, self.label, self.key, *lists)


def _weights(statement_hash: bytes, size: int) -> list[bytes]:
    """Give rho_2 .. rho_m; rho_1 is 1."""
    return [scalar("dleq/rho", statement_hash, u16(index)) for index in range(1, size)]


def _combine(rho: Sequence[bytes], points: Sequence[bytes]) -> bytes:
    return add_all([points[0], *map(multiply, rho, points[1:])])


def prove(equality: Equality, secret: bytes, randomness: bytes) -> bytes:
    """Prove a true equality; 64 bytes, a function of the arguments alone.

    `randomness` is the 64-byte hedged value of section 11, kind `token` or `open`.
    """
    st = equality.digest()
    base = _combine(_weights(st, len(equality.points)), equality.points)
    nonce = secret_scalar("nonce/dleq", randomness, st)
    challenge = scalar("dleq/c", st, multiply_base(nonce), multiply(nonce, base))
    return challenge + group.scalar_add(nonce, group.scalar_multiply(challenge, secret))


def require_form(proof: bytes) -> None:
    """Refuse bytes that cannot be a proof (reason FORM)."""
    require(len(proof) == PROOF_SIZE, Reason.FORM, f"an equality proof has {PROOF_SIZE} bytes")
    group.require_scalars(group.split(proof), "equality proof")


def require_tokens_form(payload: bytes) -> None:
    """Refuse bytes that cannot be tokens followed by their proof (reason FORM)."""
    group.require_points(group.split(payload[:-PROOF_SIZE]), "token")
    require_form(payload[-PROOF_SIZE:])


def verify(equality: Equality, proof: bytes) -> None:
    """Accept an equality or refuse it.

    The points of the equality must have been validated by the caller (deck points and card points
    were; tokens on receipt).

    Raises:
        ProofError: FORM if the proof is malformed, PROOF if it does not hold.
    """
    require_form(proof)
    challenge, response = group.split(proof)
    st = equality.digest()
    minus = group.scalar_subtract(group.ZERO, challenge)
    rho = [group.ONE, *_weights(st, len(equality.points))]
    factors = [group.scalar_multiply(each, weight) for each in (response, minus) for weight in rho]
    first = public_weighted_sum([response, minus], [group.GENERATOR, equality.key])
    second = public_weighted_sum(factors, [*equality.points, *equality.images])
    holds = challenge == scalar("dleq/c", st, first, second)
    require(holds, Reason.PROOF, "the equality proof does not hold")
