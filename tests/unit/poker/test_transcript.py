"""The tagged hash and what is derived from it."""

import hashlib
import json
from itertools import permutations
from pathlib import Path

from koikoi_sdk.poker import group
from koikoi_sdk.poker.layout import card_points
from koikoi_sdk.poker.transcript import (
    digest,
    first_non_zero,
    generators,
    generators_sum,
    hedge,
    permutation,
    point,
    proof_context,
    scalar,
    secret_scalar,
    u16,
)

SAMPLE = json.loads((Path(__file__).parents[2] / "vectors/poker/deal.json").read_text())
PROTOCOL = b"koikoi-mp/v1/ristretto255-sha512"


def spelled_out(*fields: bytes) -> bytes:
    return hashlib.sha512(b"".join(len(f).to_bytes(4, "big") + f for f in (PROTOCOL, *fields))).digest()


def test_the_tagged_hash_is_as_written_in_the_protocol() -> None:
    assert digest("label", b"one", b"") == spelled_out(b"label", b"one", b"")
    assert scalar("s", b"x") == (int.from_bytes(spelled_out(b"s", b"x"), "little") % group.ORDER).to_bytes(32, "little")
    assert point("p") == group.hash_to_point(spelled_out(b"p"))
    assert secret_scalar("k", b"x") == scalar("k", b"x", u16(0))


def test_fields_cannot_be_shifted_between_each_other_or_the_label() -> None:
    values = {digest("ab", b"c"), digest("a", b"bc"), digest("abc"), digest("ab", b"c", b""), digest("ab", b"", b"c")}
    assert len(values) == 5


def test_the_generators_are_those_of_the_vectors() -> None:
    h, hs = generators()
    assert h.hex() == SAMPLE["H"]
    assert hs[0].hex() == SAMPLE["H0"]
    assert len({h, *hs, group.GENERATOR}) == 50
    assert generators_sum() == group.add_all(hs)


def test_the_card_points_are_those_of_the_vectors() -> None:
    assert [encoded.hex() for encoded in card_points(bytes.fromhex(SAMPLE["did"]))] == SAMPLE["cards"]


def test_a_secret_scalar_is_never_zero() -> None:
    assert first_non_zero([group.ZERO, group.ZERO, group.ONE]) == group.ONE


def test_a_permutation_is_fisher_yates_with_rejection() -> None:
    stream = b"".join(digest("perm", b"seed", u16(block)) for block in range(20))
    items, at = list(range(48)), 0
    for last in range(47, 0, -1):
        while stream[at] >= 256 - 256 % (last + 1):
            at += 1
        drawn = stream[at] % (last + 1)
        items[last], items[drawn] = items[drawn], items[last]
        at += 1
    assert permutation(48, "perm", b"seed") == tuple(items)


def test_permutations_of_three_are_all_equally_likely() -> None:
    counts = dict.fromkeys(permutations(range(3)), 0)
    for seed in range(1200):
        counts[permutation(3, "fair", u16(seed))] += 1
    assert all(150 < count < 250 for count in counts.values()), counts
    assert permutation(1, "one") == (0,)


def test_randomness_and_contexts_depend_on_every_field() -> None:
    fields = (b"seed", b"did", "open", b"head", b"fresh")
    values = {hedge(*fields)}
    for index, other in enumerate((b"x", b"x", "token", b"x", b"x")):
        values.add(hedge(*fields[:index], other, *fields[index + 1 :]))
    assert len(values) == 6
    assert hedge(bytearray(b"seed"), *fields[1:]) == hedge(*fields)
    contexts = {
        proof_context(did, kind, role, head)
        for did in (b"a", b"b")
        for kind in ("token", "open", "shuffle")
        for role in (0, 1)
        for head in (b"h", b"i")
    }
    assert len(contexts) == 24
