"""Hashing: the one tagged function from which every challenge, nonce and key of the protocol comes.

docs/protocol.md section 2. All fields are length-prefixed and every use has its own label, so no two
uses can collide. Nothing here is random: the same inputs always give the same bytes.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, count

from koikoi_sdk.poker import group

PROTOCOL = b"koikoi-mp/v1/ristretto255-sha512"
CARDS = 48


def length_prefixed(field: bytes) -> bytes:
    """Give lp(field): 4 bytes of length, then the field."""
    return len(field).to_bytes(4, "big") + field


_PREFIX = length_prefixed(PROTOCOL)


def digest(label: str, *fields: bytes) -> bytes:
    """Give T(label, fields...): 64 bytes of SHA-512."""
    prefixed = [length_prefixed(field) for field in (label.encode(), *fields)]
    return hashlib.sha512(_PREFIX + b"".join(prefixed)).digest()


def scalar(label: str, *fields: bytes) -> bytes:
    """Give Ts(label, fields...): the digest modulo the group's order."""
    return group.scalar_reduce(digest(label, *fields))


def point(label: str, *fields: bytes) -> bytes:
    """Give Tp(label, fields...): the digest mapped to the group."""
    return group.hash_to_point(digest(label, *fields))


def u16(number: int) -> bytes:
    """Encode a number below 65,536 in two bytes, big-endian."""
    return number.to_bytes(2, "big")


def byte(number: int) -> bytes:
    """Encode a number below 256 in one byte."""
    return number.to_bytes(1, "big")


def first_non_zero(scalars: Iterable[bytes]) -> bytes:
    """Give the first of the scalars that is not zero."""
    return next(candidate for candidate in scalars if candidate != group.ZERO)


def secret_scalar(label: str, *fields: bytes) -> bytes:
    """Derive a scalar that is never zero."""
    return first_non_zero(scalar(label, *fields, u16(attempt)) for attempt in count())


def _stream(label: str, *fields: bytes) -> Iterator[int]:
    return chain.from_iterable(digest(label, *fields, u16(block)) for block in count())


def permutation(size: int, label: str, *fields: bytes) -> tuple[int, ...]:
    """Derive a uniform permutation of 0 .. size-1 (size at most 256): Fisher-Yates, with rejection."""
    items, stream = list(range(size)), _stream(label, *fields)
    for last in range(size - 1, 0, -1):
        bound = last + 1
        limit = 256 - 256 % bound
        drawn = next(value for value in stream if value < limit) % bound
        items[last], items[drawn] = items[drawn], items[last]
    return tuple(items)


def hedge(seed: bytes | bytearray, did: bytes, kind: str, head: bytes, fresh: bytes) -> bytes:
    """Derive the 64 bytes of randomness of one proof (docs/protocol.md section 11).

    A broken generator behind `fresh` alone, or a repeated seed alone, does not repeat a nonce.
    """
    return digest("hedge", bytes(seed), did, kind.encode(), head, fresh)


def proof_context(did: bytes, kind: str, role: int, head: bytes) -> bytes:
    """Give ctx of sections 5 and 6: binds a proof to deal, kind, prover and transcript head."""
    return digest("proof", did, kind.encode(), byte(role), head)


@cache
def generators() -> tuple[bytes, tuple[bytes, ...]]:
    """Give H and H_0 .. H_47, hashed to the group so that nobody knows a relation between them."""
    return point("gen/H"), tuple(point("gen/Hi", u16(index)) for index in range(CARDS))


@cache
def generators_sum() -> bytes:
    """Give H_0 + ... + H_47."""
    return group.add_all(generators()[1])
