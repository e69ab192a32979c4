"""Cheating provers: complete, self-consistent shuffle proofs of wrong statements.

Each does everything as the protocol says except for one lie, chosen so that exactly one of the six
equations of docs/protocol.md section 5 does not hold. Scalars are plain integers here: this is the
attacker's code, an independent second implementation of the prover.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from koikoi_sdk.poker.group import ORDER, add, add_all, multiply, multiply_base
from koikoi_sdk.poker.shuffle import Announcement, Proof, hash_statement, weights
from koikoi_sdk.poker.statement import Statement
from koikoi_sdk.poker.transcript import CARDS, generators, point

CONTEXT = b"ctx"
Matrix = Sequence[dict[int, int]]


def encode(number: int) -> bytes:
    return (number % ORDER).to_bytes(32, "little")


def decode(scalar: bytes) -> int:
    return int.from_bytes(scalar, "little")


def number(name: str, index: int = 0) -> int:
    """A fixed non-zero scalar for a name."""
    return int.from_bytes(hashlib.sha512(f"{name}/{index}".encode()).digest(), "little") % (ORDER - 1) + 1


def half(value: int) -> int:
    return value * pow(2, -1, ORDER) % ORDER


def times(scalar: int, of: bytes) -> bytes:
    return multiply(encode(scalar), of)


def combine(scalars: Sequence[int], points: Sequence[bytes]) -> bytes:
    return add_all(times(scalar, of) for scalar, of in zip(scalars, points, strict=True))


def permutation_matrix(order: Sequence[int]) -> list[dict[int, int]]:
    return [{card: 1} for card in order]


def apply(matrix: Matrix, vector: Sequence[int]) -> list[int]:
    return [sum(factor * vector[column] for column, factor in row.items()) % ORDER for row in matrix]


@dataclass
class Lie:
    """A statement, the witness used to prove it, and the announcement the prover really made."""

    statement: Statement
    proof: Proof
    announcement: Announcement


def commit(matrix: Matrix, r: Sequence[int]) -> list[bytes]:
    columns = [multiply_base(encode(value)) for value in r]
    for row, h in zip(matrix, generators()[1], strict=True):
        for column, factor in row.items():
            columns[column] = add(columns[column], times(factor, h))
    return columns


def build_chain(rh: Sequence[int], claimed: Sequence[int]) -> tuple[list[bytes], int]:
    chain, last, opening = [], generators()[0], 0
    for value, weight in zip(rh, claimed, strict=True):
        last = add(multiply_base(encode(value)), times(weight, last))
        chain.append(last)
        opening = (value + weight * opening) % ORDER
    return chain, opening


def product(values: Sequence[int]) -> int:
    result = 1
    for value in values:
        result = result * value % ORDER
    return result


def prove(
    statement: Statement,
    secret: int,
    matrix: Matrix,
    *,
    claim: Callable[[list[int]], list[int]] | None = None,
    forge_end: bool = False,
    context: bytes = CONTEXT,
) -> Lie:
    """Follow the protocol with any matrix, any claimed u' and, if asked, a chain with a forged end."""
    h, hs = generators()
    r, rh, wh, wp = ([number(name, index) for index in range(CARDS)] for name in ("r", "rh", "wh", "wp"))
    w1, w2, w3, wk = (number(name) for name in ("w1", "w2", "w3", "wk"))
    commitments = commit(matrix, r)
    st = hash_statement(context, statement, commitments)
    u = [decode(weight) for weight in weights(st)]
    claimed = claim(u) if claim else apply(matrix, u)
    chain, opening = build_chain(rh, claimed)
    if forge_end:
        chain[-1] = add(multiply_base(encode(opening)), times(product(u), h))
    base = lambda value: multiply_base(encode(value))  # noqa: E731
    announcement = Announcement(
        t1=base(w1),
        t2=base(w2),
        t3=add(base(w3), combine(wp, hs)),
        t4=add(combine(wp, statement.after), times(-wk, combine(u, statement.before))),
        t6=base(wk),
        th=tuple(add(base(a), times(b, c)) for a, b, c in zip(wh, wp, (h, *chain[:-1]), strict=True)),
    )
    e = decode(announcement.challenge(st, chain))
    rt = sum(a * b for a, b in zip(u, r, strict=True))
    proof = Proof(
        tuple(commitments),
        tuple(chain),
        encode(e),
        encode(w1 + e * sum(r)),
        encode(w2 + e * opening),
        encode(w3 + e * rt),
        encode(wk + e * secret),
        tuple(encode(a + e * b) for a, b in zip(wh, rh, strict=True)),
        tuple(encode(a + e * b) for a, b in zip(wp, claimed, strict=True)),
    )
    return Lie(statement, proof, announcement)


DECK = tuple(point("cheat/deck", bytes([card])) for card in range(CARDS))
SECRET = number("secret")
KEY = multiply_base(encode(SECRET))
ORDERED = [(card * 5 + 3) % CARDS for card in range(CARDS)]


def shuffled(order: Sequence[int] = ORDERED, secret: int = SECRET) -> list[bytes]:
    return [times(secret, DECK[card]) for card in order]


def _state(after: Sequence[bytes], key: bytes = KEY) -> Statement:
    return Statement(key, DECK, tuple(after))


def honest() -> Lie:
    return prove(_state(shuffled()), SECRET, permutation_matrix(ORDERED))


def scaled_pair() -> Lie:
    """One card halved, one doubled; the matrix has the same factors, so its product is right."""
    matrix, after = permutation_matrix(ORDERED), shuffled()
    matrix[0], matrix[1] = {ORDERED[0]: 2}, {ORDERED[1]: half(1)}
    after[0], after[1] = times(half(1), after[0]), times(2, after[1])
    return prove(_state(after), SECRET, matrix)


def _mixed() -> tuple[list[dict[int, int]], list[bytes]]:
    """Two cards mixed linearly: rows (2, -1) and (-1, 2) sum to 1; the deck carries the inverse."""
    matrix, after = permutation_matrix(ORDERED), shuffled()
    a, b = ORDERED[0], ORDERED[1]
    matrix[0], matrix[1] = {a: 2, b: -1}, {a: -1, b: 2}
    third = pow(3, -1, ORDER)
    after[0], after[1] = (
        combine([2 * third, third], after[:2]),
        combine([third, 2 * third], after[:2]),
    )
    return matrix, after


def linear_mix() -> Lie:
    matrix, after = _mixed()
    return prove(_state(after), SECRET, matrix)


def linear_mix_with_forged_chain_end() -> Lie:
    matrix, after = _mixed()
    return prove(_state(after), SECRET, matrix, forge_end=True)


def other_permutation_committed() -> Lie:
    """A permutation is committed, but u' is chosen freely afterwards, to fit two scaled cards."""
    after = shuffled()
    after[0], after[1] = times(half(1), after[0]), times(2, after[1])

    def claim(u: list[int]) -> list[int]:
        claimed = [u[card] for card in ORDERED]
        claimed[0], claimed[1] = claimed[0] * 2 % ORDER, half(claimed[1])
        return claimed

    return prove(_state(after), SECRET, permutation_matrix(ORDERED[::-1]), claim=claim)


def substituted() -> Lie:
    """A foreign point in place of a card."""
    after = shuffled()
    after[7] = point("cheat/foreign")
    return prove(_state(after), SECRET, permutation_matrix(ORDERED))


def duplicated() -> Lie:
    """One card twice, another missing; both copies are the very same point."""
    after = shuffled()
    after[7] = after[8]
    return prove(_state(after), SECRET, permutation_matrix(ORDERED))


def two_exponents() -> Lie:
    """Half of the deck under another secret, so that it can be told apart."""
    after = shuffled()
    after[24:] = shuffled(secret=SECRET + 1)[24:]
    return prove(_state(after), SECRET, permutation_matrix(ORDERED))


def wrong_key() -> Lie:
    """The deck is shuffled correctly, but under another secret than that of the public key."""
    key = multiply_base(encode(SECRET + 1))
    return prove(_state(shuffled(), key), SECRET, permutation_matrix(ORDERED))


LIES: dict[str, tuple[Callable[[], Lie], str]] = {
    "scaled pair": (scaled_pair, "t1"),
    "linear mix": (linear_mix, "t2"),
    "other permutation committed": (other_permutation_committed, "t3"),
    "substituted": (substituted, "t4"),
    "two exponents": (two_exponents, "t4"),
    "wrong key": (wrong_key, "t6"),
    "mix with forged chain end": (linear_mix_with_forged_chain_end, "th"),
}
"""By name: the prover and the only equation that stops it."""


def encode_statement(statement: Statement) -> dict[str, str]:
    return {
        "K": statement.key.hex(),
        "X": b"".join(statement.before).hex(),
        "Y": b"".join(statement.after).hex(),
    }
