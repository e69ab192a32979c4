"""Writes the vector files of this folder anew: `python -m tests.vectors.poker.generate`.

Everything is fixed, so the files change only when the protocol does. `deal.json` is the published
sample of docs/protocol.md section 15 and is not written here.
"""

import json
from pathlib import Path
from typing import Any

from koikoi_sdk.poker import audit, group, keys, proofs
from koikoi_sdk.poker.proofs import Equality
from koikoi_sdk.poker.statement import Layer, Statement
from koikoi_sdk.poker.transcript import digest
from koikoi_sdk.poker.vectors import Script

from tests.unit.poker import cheats, forgeries, test_keys
from tests.unit.poker.cheats import DECK, encode_statement

FOLDER = Path(__file__).parent


def positive(number: int) -> dict[str, Any]:
    """A deal with inputs that follow from a number."""

    def fixed(name: str) -> str:
        return digest("vector/input", name.encode(), bytes([number]))[:32].hex()

    vector: dict[str, Any] = {name: fixed(name) for name in ("mid", "pk0", "pk1", "D", "N", "f", "g")}
    vector |= {"rnd": number * 37 + 1, "att": number % 5, "h": [fixed(f"h{index}") for index in range(8)]}
    script = Script(vector)
    vector |= {name: payload.hex() for name, payload in script.messages()}
    vector |= {"field": list(script.other.field), "hand0": list(script.dealer.hand), "hand1": list(script.other.hand)}
    return vector


def shuffles() -> dict[str, Any]:
    lies = {name: prover() for name, (prover, _) in cheats.LIES.items()} | {"duplicated": cheats.duplicated()}
    negative = [
        {"name": name, **encode_statement(lie.statement), "proof": lie.proof.encode().hex()}
        for name, lie in lies.items()
    ]
    return {"pos": [positive(number) for number in range(3)], "neg": negative}


def equalities() -> list[dict[str, Any]]:
    secret, points = cheats.encode(cheats.SECRET), list(DECK[:4])
    images = [group.multiply(secret, each) for each in points]
    honest = Equality(b"ctx", b"\0\1\2\3", cheats.KEY, points, images)
    proof = proofs.prove(honest, secret, b"z" * 64)
    error = DECK[9]
    cancelled = [group.add(points[0], error), group.subtract(points[1], error), *points[2:]]
    lie = Equality(b"ctx", b"\0\1\2\3", cheats.KEY, cancelled, images)

    def case(name: str, claim: Equality, of: bytes, reason: int) -> dict[str, Any]:
        lists = {"U": b"".join(claim.points).hex(), "V": b"".join(claim.images).hex()}
        names = {"ctx": claim.context.hex(), "label": claim.label.hex(), "K": claim.key.hex()}
        return {"name": name, "kind": "equality", **names, **lists, "proof": of.hex(), "reason": reason}

    return [
        case("equality as proved", honest, proof, 0),
        case("cancelling errors", lie, proofs.prove(lie, secret, b"z" * 64), 4),
        case("other label", Equality(b"ctx", b"\0\1\2\4", cheats.KEY, points, images), proof, 4),
        case("other context", Equality(b"other", b"\0\1\2\3", cheats.KEY, points, images), proof, 4),
        case("swapped order", Equality(b"ctx", b"\0\1\2\3", cheats.KEY, points[::-1], images), proof, 4),
        case("s + L", honest, forgeries.plus_order(proof, 32), 1),
        case("truncated", honest, proof[:-1], 1),
    ]


def audits() -> list[dict[str, Any]]:
    layer = Layer.derive(b"s" * 32, b"did")
    honest, context = layer.shuffle(DECK), audit.audit_context(b"did", 0, b"head")
    commitment, nonce = audit.Commitment(context, honest, layer, b"m" * 64), b"n" * 32
    response = commitment.respond(nonce)
    bits = audit.challenge_bits(context, commitment.value, nonce)
    at = 32 * bits.index(1)
    doubled = group.add(honest.after[0], honest.after[0])
    doctored = Statement(honest.key, DECK, (doubled, *honest.after[1:]))

    def case(name: str, statement: Statement, answer: bytes, reason: int) -> dict[str, Any]:
        rest = {"actx": context.hex(), "com": commitment.value.hex(), "nonce": nonce.hex(), "response": answer.hex()}
        return {"name": name, "kind": "audit", **encode_statement(statement), **rest, "reason": reason}

    return [
        case("audit as answered", honest, response, 0),
        case("doctored deck", doctored, response, 9),
        case("w is zero", honest, forgeries.patch(response, at, bytes(32)), 9),
        case("w + L", honest, forgeries.plus_order(response, at), 1),
        case("rho is no permutation", honest, forgeries.patch(response, at + 32, bytes(48)), 9),
        case("truncated", honest, response[:-1], 1),
        case("extended", honest, response + b"\0", 1),
    ]


def signatures() -> list[dict[str, Any]]:
    key = test_keys.KEY
    good = key.sign("msg", b"x")
    larger = forgeries.plus_order(good, 32)
    small = bytes.fromhex(test_keys.SMALL_ORDER[0])

    def case(name: str, public: bytes, sig: bytes, reason: int) -> dict[str, Any]:
        fixed = {"kind": "signature", "label": "msg", "fields": [b"x".hex()]}
        return {"name": name, **fixed, "pk": public.hex(), "sig": sig.hex(), "reason": reason}

    return [
        case("signature as made", key.public, good, 0),
        case("torsion in R", key.public, test_keys.sign_with(test_keys.TORSION), 2),
        case("S + L", key.public, larger, 2),
        case("small-order key", small, small + bytes(32), 2),
        case("non-canonical key", bytes.fromhex(test_keys.NOT_CANONICAL[1]), small + bytes(32), 2),
        case("other key", keys.DeviceKey(b"o" * 32).public, good, 2),
    ]


def main() -> None:
    files = {
        "shuffles.json": shuffles(),
        "receive.json": {"cases": forgeries.cases()},
        "proofs.json": {"cases": [*equalities(), *audits(), *signatures()]},
    }
    for name, content in files.items():
        (FOLDER / name).write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
