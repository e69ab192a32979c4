"""The proof that a deck was shuffled and nothing else (docs/protocol.md section 5).

Terelius and Wikstroem, "Proofs of Restricted Shuffles": a commitment to a permutation matrix, then a
commitment-consistent proof, in the layout of Haenni, Locher, Koenig and Dubuis. Proved: the sender
knows k and a permutation p with key = k*G and after[i] = k*before[p(i)]. Not proved: that p is random.
The proof is non-interactive; its challenge hashes the complete statement (strong Fiat-Shamir).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from koikoi_sdk.poker import group
from koikoi_sdk.poker.errors import Reason, require
from koikoi_sdk.poker.group import (
    GENERATOR,
    add,
    multiply,
    multiply_base,
    public_weighted_sum,
    scalar_add,
    scalar_multiply,
    scalar_subtract,
    weighted_sum,
)
from koikoi_sdk.poker.statement import Layer, Statement
from koikoi_sdk.poker.transcript import (
    CARDS,
    digest,
    generators,
    generators_sum,
    scalar,
    secret_scalar,
    u16,
)

PROOF_SIZE = group.SIZE * (4 * CARDS + 5)
"""Bytes of a proof: 6304."""


@dataclass(frozen=True)
class Proof:
    """Holds the parts of a proof, in the order in which they travel."""

    commitments: tuple[bytes, ...]
    chain: tuple[bytes, ...]
    challenge: bytes
    s1: bytes
    s2: bytes
    s3: bytes
    sk: bytes
    sh: tuple[bytes, ...]
    sp: tuple[bytes, ...]

    def encode(self) -> bytes:
        """Give the bytes that travel: C | Ch | e | s1 | s2 | s3 | sk | sh | s'."""
        middle = (self.challenge, self.s1, self.s2, self.s3, self.sk)
        return b"".join((*self.commitments, *self.chain, *middle, *self.sh, *self.sp))

    @classmethod
    def decode(cls, data: bytes) -> "Proof":
        """Parse received bytes; every point and scalar is checked.

        Raises:
            ProofError: FORM.
        """
        require(len(data) == PROOF_SIZE, Reason.FORM, f"a shuffle proof has {PROOF_SIZE} bytes")
        parts = group.split(data)
        group.require_points(parts[: 2 * CARDS], "commitment")
        group.require_scalars(parts[2 * CARDS :], "response")
        e, s1, s2, s3, sk = parts[2 * CARDS : 2 * CARDS + 5]
        tail = parts[2 * CARDS + 5 :]
        return cls(parts[:CARDS], parts[CARDS : 2 * CARDS], e, s1, s2, s3, sk, tail[:CARDS], tail[CARDS:])


@dataclass(frozen=True)
class Announcement:
    """Holds the prover's first message, which the verifier recomputes: one point per equation."""

    t1: bytes
    t2: bytes
    t3: bytes
    t4: bytes
    t6: bytes
    th: tuple[bytes, ...]

    def challenge(self, statement_hash: bytes, chain: Sequence[bytes]) -> bytes:
        """Give e."""
        points = (self.t1, self.t2, self.t3, self.t4, self.t6, b"".join(self.th))
        return scalar("shuffle/e", statement_hash, b"".join(chain), *points)


def hash_statement(context: bytes, statement: Statement, commitments: Sequence[bytes]) -> bytes:
    """Give st, the hash of everything that is claimed."""
    decks = (b"".join(statement.before), b"".join(statement.after))
    return digest("shuffle/statement", context, statement.key, *decks, b"".join(commitments))


def weights(statement_hash: bytes) -> tuple[bytes, ...]:
    """Give u_0 .. u_47, the random exponents of the Schwartz-Zippel argument."""
    return tuple(scalar("shuffle/u", statement_hash, u16(index)) for index in range(CARDS))


def _sum(scalars: Iterable[bytes]) -> bytes:
    return reduce(scalar_add, scalars)


def _dot(left: Iterable[bytes], right: Iterable[bytes]) -> bytes:
    return _sum(map(scalar_multiply, left, right))


def _link(value: bytes, weight: bytes, before: bytes) -> bytes:
    return add(multiply_base(value), multiply(weight, before))


def prove(context: bytes, statement: Statement, layer: Layer, randomness: bytes) -> bytes:
    """Prove a true statement made by `layer`; 6304 bytes, a function of the arguments alone.

    `randomness` is the 64-byte hedged value of section 11, kind `shuffle`, drawn for this proof only:
    two different proofs with one value would disclose the key. A false statement gives a proof that
    does not verify.
    """
    indices, hs = [u16(index) for index in range(CARDS)], generators()[1]
    r = [secret_scalar("nonce/r", randomness, context, index) for index in indices]
    rh = [secret_scalar("nonce/rh", randomness, context, index) for index in indices]
    commitments = _commit(layer.permutation, r)
    st = hash_statement(context, statement, commitments)
    u = weights(st)
    shuffled = [u[card] for card in layer.permutation]
    before, chain, end = _chain(rh, shuffled)

    bound = (randomness, st, b"".join(chain))
    w1, w2, w3, wk = (secret_scalar(f"nonce/{name}", *bound, u16(0)) for name in ("w1", "w2", "w3", "wk"))
    wh = [secret_scalar("nonce/wh", *bound, index) for index in indices]
    wp = [secret_scalar("nonce/wp", *bound, index) for index in indices]
    announcement = Announcement(
        multiply_base(w1),
        multiply_base(w2),
        add(multiply_base(w3), weighted_sum(wp, hs)),
        _consistency(statement, layer, wp, wk, u),
        multiply_base(wk),
        tuple(map(_link, wh, wp, before)),
    )
    e = announcement.challenge(st, chain)

    def answer(nonce: bytes, secret: bytes) -> bytes:
        return scalar_add(nonce, scalar_multiply(e, secret))

    return Proof(
        commitments,
        chain,
        e,
        answer(w1, _sum(r)),
        answer(w2, end),
        answer(w3, _dot(u, r)),
        answer(wk, layer.secret),
        tuple(map(answer, wh, rh)),
        tuple(map(answer, wp, shuffled)),
    ).encode()


def _commit(order: Sequence[int], r: Sequence[bytes]) -> tuple[bytes, ...]:
    """Give C_j = r_j*G + H_i for j = p(i): commitments to the columns of the permutation matrix."""
    hs = generators()[1]
    columns = {card: add(multiply_base(r[card]), hs[place]) for place, card in enumerate(order)}
    return tuple(columns[card] for card in range(CARDS))


def _chain(rh: Sequence[bytes], shuffled: Sequence[bytes]) -> tuple[tuple[bytes, ...], tuple[bytes, ...], bytes]:
    """Give (Ch_-1 .. Ch_46, Ch_0 .. Ch_47, Rh_47): commitments to the partial products of u'."""
    points, end = [generators()[0]], group.ZERO
    for value, weight in zip(rh, shuffled, strict=True):
        points.append(_link(value, weight, points[-1]))
        end = scalar_add(value, scalar_multiply(weight, end))
    return tuple(points[:-1]), tuple(points[1:]), end


def _consistency(statement: Statement, layer: Layer, wp: Sequence[bytes], wk: bytes, u: Sequence[bytes]) -> bytes:
    """Give T4 = sum w'_i*Y_i - wk*(sum u_j*X_j) with half the multiplications.

    Y_i = k*X_p(i) is known to the prover, so everything is collected over X: the factor of X_j,
    j = p(i), is k*w'_i - wk*u_j.
    """
    factors = (
        scalar_subtract(scalar_multiply(layer.secret, wp[place]), scalar_multiply(wk, u[card]))
        for place, card in enumerate(layer.permutation)
    )
    return weighted_sum(factors, (statement.before[card] for card in layer.permutation))


def verify(context: bytes, statement: Statement, proof: bytes) -> None:
    """Accept a shuffle or refuse it; does the same work for good and bad proofs.

    All checks of section 10 that concern the statement itself are included (encodings, 48 different
    points, key not the base point); that the key is not the receiver's own is the caller's check.

    Raises:
        ProofError: FORM for lengths and encodings, else PROOF.
    """
    require(len(proof) == PROOF_SIZE, Reason.FORM, f"a shuffle proof has {PROOF_SIZE} bytes")
    statement.require_form()
    parsed = Proof.decode(proof)
    statement.require_plausible()
    st = hash_statement(context, statement, parsed.commitments)
    announcement = recompute(statement, parsed, weights(st))
    holds = parsed.challenge == announcement.challenge(st, parsed.chain)
    require(holds, Reason.PROOF, "the shuffle proof does not hold")


def recompute(statement: Statement, proof: Proof, u: Sequence[bytes]) -> Announcement:
    """Give the announcement that the responses imply: the six equations of section 5."""
    h, hs = generators()
    minus_e, minus_sk = (scalar_subtract(group.ZERO, each) for each in (proof.challenge, proof.sk))
    rows = group.subtract(group.add_all(proof.commitments), generators_sum())
    end = scalar_multiply(proof.challenge, reduce(scalar_multiply, u))
    matrix, deck = ([scalar_multiply(factor, weight) for weight in u] for factor in (minus_e, minus_sk))
    links = zip(proof.sh, proof.sp, (h, *proof.chain), proof.chain, strict=False)
    return Announcement(
        t1=public_weighted_sum((proof.s1, minus_e), (GENERATOR, rows)),
        t2=public_weighted_sum((proof.s2, minus_e, end), (GENERATOR, proof.chain[-1], h)),
        t3=public_weighted_sum((proof.s3, *proof.sp, *matrix), (GENERATOR, *hs, *proof.commitments)),
        t4=public_weighted_sum((*proof.sp, *deck), (*statement.after, *statement.before)),
        t6=public_weighted_sum((proof.sk, minus_e), (GENERATOR, statement.key)),
        th=tuple(public_weighted_sum((sh, sp, minus_e), (GENERATOR, last, this)) for sh, sp, last, this in links),
    )
