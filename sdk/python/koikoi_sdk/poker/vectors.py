"""Checks this implementation against vector files (docs/protocol.md section 15, `koikoi vectors`).

A file is JSON and holds one of:

* one deal: all that both devices must send, byte for byte, for fixed seeds and fresh bytes;
* `{"pos": [...], "neg": [...]}`: deals of which S1, S2, S3 must be reproduced, and shuffle proofs of
  wrong statements, under the three bytes `ctx`, that must be rejected;
* `{"cases": [...]}`: single messages, proofs and signatures with the one reason they must be
  rejected for (0: accepted); each has `name`, `kind` and `reason`. The kinds are below.

`main` takes checks for further kinds of files, each one vector: `table.vectors` has that of whole matches.
Each deal, pos, neg and case counts as one vector. A file that cannot be read, or a vector with a
missing or misshapen member, is a failure with one line, like any other.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from koikoi_sdk.poker import audit, keys, proofs, shuffle
from koikoi_sdk.poker.deal import Deal
from koikoi_sdk.poker.errors import ProofError, Reason
from koikoi_sdk.poker.group import split
from koikoi_sdk.poker.layout import DEALER, OTHER, deal_id
from koikoi_sdk.poker.state import DealState
from koikoi_sdk.poker.statement import Layer, Statement
from koikoi_sdk.poker.transcript import generators

Vector = dict[str, Any]
Check = Callable[[Vector], str]
"""Checks one vector; gives the failure, or "" if it holds. May raise MalformedVectorError."""
NONCE = b"n" * 32
"""The audit nonce of the deal vectors."""


class MalformedVectorError(ValueError):
    """Says what a vector file lacks."""


def _object(value: object) -> Vector:
    if not isinstance(value, dict):
        raise MalformedVectorError("not an object")
    return value


def _member(vector: Vector, name: str) -> object:
    if name not in vector:
        raise MalformedVectorError(f"member {name} is missing")
    return vector[name]


def _text(vector: Vector, name: str) -> str:
    value = _member(vector, name)
    if not isinstance(value, str):
        raise MalformedVectorError(f"member {name} is not a string")
    return value


def _decode(value: object, name: str) -> bytes:
    try:
        return bytes.fromhex(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise MalformedVectorError(f"member {name} is not hexadecimal") from None


def _bytes(vector: Vector, name: str, size: int | None = None) -> bytes:
    value = _decode(_member(vector, name), name)
    if size is not None and len(value) != size:
        raise MalformedVectorError(f"member {name} has {len(value)} bytes instead of {size}")
    return value


def _list(vector: Vector, name: str) -> list[Any]:
    value = _member(vector, name)
    if not isinstance(value, list):
        raise MalformedVectorError(f"member {name} is not a list")
    return value


def _number(vector: Vector, name: str, limit: int = 65_535) -> int:
    value = _member(vector, name)
    if type(value) is not int or not 0 <= value <= limit:
        raise MalformedVectorError(f"member {name} is not a whole number from 0 to {limit}")
    return value


def _heads(vector: Vector, name: str) -> list[bytes]:
    heads = [_decode(head, name) for head in _list(vector, name)]
    if len(heads) != 8:
        raise MalformedVectorError(f"member {name} does not hold 8 heads")
    return heads


class Script:
    """Plays one deal with fixed seeds and fresh bytes, and keeps all that the devices produce.

    After S1, S2, S3: the dealer plays position 0, the other gives the token of position 24, the
    dealer opens it, then the dealer's audit. heads[0] goes into the deal id, heads[1..6] belong to the
    messages in order, heads[7] to the audit.
    """

    def __init__(self, vector: Vector) -> None:
        """Take the inputs of a vector; the defaults are those of the published sample."""
        full = {"rnd": 1, "att": 0, "D": b"D".hex() * 32, "N": b"N".hex() * 32, **vector}
        full = {"f": b"f".hex() * 32, "g": b"g".hex() * 32, **full}
        self.heads = _heads(full, "h" if "h" in full else "heads")
        self.did = deal_id(
            _bytes(full, "mid"),
            round_number=_number(full, "rnd"),
            attempt=_number(full, "att"),
            dealer_key=_bytes(full, "pk0"),
            other_key=_bytes(full, "pk1"),
            head=self.heads[0],
        )
        self.dealer = Deal(DealState(DEALER, self.did, bytearray(_bytes(full, "D", 32))))
        self.other = Deal(DealState(OTHER, self.did, bytearray(_bytes(full, "N", 32))))
        self._dealer_seed = _bytes(full, "D")
        self._f, self._g = _bytes(full, "f"), _bytes(full, "g")

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """Play on, giving each message by name after its receiver accepted it."""
        d, n, h, f, g = self.dealer, self.other, self.heads, self._f, self._g
        steps: tuple[tuple[str, Callable[[], bytes], Callable[[bytes, bytes], object]], ...] = (
            ("s1", lambda: d.shuffle_first(h[1], f), n.accept_first),
            ("s2", lambda: n.shuffle_second(h[2], g, g), d.accept_second),
            ("s3", lambda: d.show_field(h[3], f, f), n.accept_field),
            ("play", lambda: d.play(0, h[4], f), n.accept_play),
            ("tok", lambda: n.give_token(h[5], g), d.accept_token),
            ("flip", lambda: d.flip(h[6], f), n.accept_flip),
        )
        for number, (name, build, accept) in enumerate(steps, start=1):
            payload = build()
            accept(payload, h[number])
            yield name, payload

    def audit(self) -> tuple[bytes, bytes]:
        """Give the dealer's commitment and its response, which the other accepts."""
        commitment = self.dealer.commit_audit(self.heads[7], self._f)
        response = commitment.respond(NONCE)
        self.other.challenge_audit(self.heads[7], commitment.value, NONCE)
        self.other.accept_audit(response)
        return commitment.value, response

    def results(self, wanted: set[str]) -> Iterator[tuple[str, bytes | list[bytes] | list[int]]]:
        """Give every value that a vector can state; the audit, the dear part, only if it is wanted."""
        h, hs = generators()
        layer = Layer.derive(self._dealer_seed, self.did)
        yield from (("did", self.did), ("cards", list(self.dealer.points)), ("H", h), ("H0", hs[0]))
        yield from (("kD", layer.secret), ("permD", list(layer.permutation)))
        yield from self.messages()
        yield from (("field", list(self.other.field)), ("hand0", list(self.dealer.hand)))
        yield "hand1", list(self.other.hand)
        if wanted & {"com", "resp"}:
            yield from zip(("com", "resp"), self.audit(), strict=True)


def _differs(expected: object, actual: bytes | list[bytes] | list[int]) -> bool:
    if isinstance(actual, bytes):
        return not isinstance(expected, str) or expected.lower() != actual.hex()
    if not isinstance(expected, list) or len(expected) != len(actual):
        return True
    plain = [item.hex() if isinstance(item, bytes) else item for item in actual]
    return [item.lower() if isinstance(item, str) else item for item in expected] != plain


def check_deal(vector: Vector) -> str:
    """Compare a deal with what this implementation sends; gives the failure, or "" if none.

    S1, S2 and S3 must be stated; every further value that is stated is compared too.
    """
    for name in ("s1", "s2", "s3"):
        _text(vector, name)
    results = Script(vector).results(set(vector))
    wrong = [name for name, value in results if name in vector and _differs(vector[name], value)]
    return f"differs in {', '.join(wrong)}" if wrong else ""


def check_wrong_shuffle(vector: Vector) -> str:
    """Try a shuffle proof that must be rejected."""
    reason = _reason_of(lambda: _shuffle({**vector, "ctx": b"ctx".hex()}))
    return "" if reason else "a proof of a wrong statement was accepted"


def _statement(vector: Vector) -> Statement:
    return Statement(_bytes(vector, "K"), split(_bytes(vector, "X")), split(_bytes(vector, "Y")))


def _shuffle(vector: Vector) -> None:
    context, proof = _bytes(vector, "ctx"), _bytes(vector, "proof")
    shuffle.verify(context, _statement(vector), proof)


def _equality(vector: Vector) -> None:
    points, images = split(_bytes(vector, "U")), split(_bytes(vector, "V"))
    if len(points) != len(images) or not points:
        raise MalformedVectorError("members U and V are not two lists of points of one length")
    context, label, key = (_bytes(vector, name) for name in ("ctx", "label", "K"))
    proofs.verify(proofs.Equality(context, label, key, points, images), _bytes(vector, "proof"))


def _audit(vector: Vector) -> None:
    context, com, nonce, response = (_bytes(vector, name) for name in ("actx", "com", "nonce", "response"))
    audit.verify(context, _statement(vector), com, nonce, response)


def _signature(vector: Vector) -> None:
    label, fields = _text(vector, "label"), [_decode(item, "fields") for item in _list(vector, "fields")]
    if label not in keys.LABELS:
        raise MalformedVectorError("member label is none of the five labels")
    if not keys.verify(_bytes(vector, "pk"), _bytes(vector, "sig"), label, *fields):  # type: ignore[arg-type]
        raise ProofError(Reason.SIGNATURE, "the signature does not verify")


def _receive(vector: Vector) -> None:
    """Play honestly up to a message, then hand the receiver another payload in its place."""
    script, payload = Script(_object(_member(vector, "deal"))), _bytes(vector, "payload")
    number = _number(vector, "message", limit=5)
    played = script.messages()
    for _ in range(number):
        next(played)
    d, n = script.dealer, script.other
    receivers = (n.accept_first, d.accept_second, n.accept_field, n.accept_play, d.accept_token, n.accept_flip)
    receivers[number](payload, script.heads[number + 1])


KINDS: dict[str, Callable[[Vector], None]] = {
    "audit": _audit,  # actx K X Y com nonce response
    "equality": _equality,  # ctx label K U V proof
    "receive": _receive,  # deal (the inputs of a pos) message (0 S1 .. 5 T3) payload
    "shuffle": _shuffle,  # ctx K X Y proof
    "signature": _signature,  # pk label fields sig
}


def _reason_of(check: Callable[[], None]) -> int:
    try:
        check()
    except ProofError as error:
        return error.reason
    return 0


def check_case(vector: Vector) -> str:
    """Try a case and compare the reason with the stated one; gives the failure, or ""."""
    kind, expected = _text(vector, "kind"), _number(vector, "reason")
    if kind not in KINDS:
        raise MalformedVectorError("member kind is unknown")
    reason = _reason_of(lambda: KINDS[kind](vector))
    return "" if reason == expected else f"{_text(vector, 'name')}: reason {reason} instead of {expected}"


GROUPS: dict[str, Check] = {
    "pos": check_deal,
    "neg": check_wrong_shuffle,
    "cases": check_case,
}


NO_OTHERS: Mapping[str, Check] = MappingProxyType({})


def _vectors(data: object, others: Mapping[str, Check]) -> Iterator[tuple[str, object, Check]]:
    data = _object(data)
    groups = {name: check for name, check in GROUPS.items() if name in data}
    if not groups:
        yield "", data, next((check for name, check in others.items() if name in data), check_deal)
    elif not any(_list(data, name) for name in groups):
        raise MalformedVectorError("the file holds no vector")
    for name, check in groups.items():
        for index, vector in enumerate(data[name]):
            yield f"{name}[{index}]: ", vector, check


def check_file(path: str, others: Mapping[str, Check] = NO_OTHERS) -> Iterator[str]:
    """Check a file; gives one failure text for each vector, "" for one that holds."""
    try:
        vectors = list(_vectors(json.loads(Path(path).read_bytes()), others))
    except (OSError, ValueError, RecursionError) as error:
        yield f"{path}: {_explain(error)}"
        return
    for place, vector, check in vectors:
        try:
            failure = check(_object(vector))
        except (MalformedVectorError, ProofError) as error:
            failure = str(error)
        yield failure and f"{path}: {place}{failure}"


def _explain(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or "the file cannot be read"
    return str(error) if isinstance(error, MalformedVectorError) else "the file is not JSON"


def main(paths: Sequence[str], others: Mapping[str, Check] = NO_OTHERS) -> int:
    """Check files, print one line per failure and a summary.

    `others` are checks for files that are one vector of another kind, by a member that only those have.
    Gives the exit status: 0 if all hold, 1 if any failed, 2 without a file.
    """
    if not paths:
        print("usage: koikoi vectors FILE...")
        return 2
    passed = failed = 0
    for path in paths:
        for failure in check_file(path, others):
            if failure:
                failed += 1
                print(failure)
            else:
                passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
