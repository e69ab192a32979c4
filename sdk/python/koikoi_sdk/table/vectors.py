"""Whole matches as test vectors (docs/protocol.md sections 15 and 18, docs/interfaces.md).

A vector holds what a match is made from (contract, device seeds, random values, choices) and all that
follows: every message, the rounds' results, the signed statement. `record` plays both seats from the
former and gives the whole vector; `check_match` compares it with a given one, member by member.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, TypeVar

from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.poker.vectors import MalformedVectorError, Vector
from koikoi_sdk.rules import Play
from koikoi_sdk.table.codec import Kind
from koikoi_sdk.table.contract import Contract
from koikoi_sdk.table.envelope import Channel, Signed
from koikoi_sdk.table.errors import ContractError
from koikoi_sdk.table.hello import open_channel, parse_hello
from koikoi_sdk.table.playing import Choice
from koikoi_sdk.table.seat import Seat
from koikoi_sdk.table.state import Outgoing
from koikoi_sdk.table.statement import SignedResult
from koikoi_sdk.table.steps import Choose, Finished, Send

T = TypeVar("T")
RESIGN = "resign"
"""The choice that gives the match up in the place of a message."""


def record(vector: Vector) -> Vector:
    """Play the match of a vector, of which only the inputs are read, and give the vector in full.

    Raises:
        MalformedVectorError: The inputs are misshapen, or make no whole match of two honest seats.
    """
    replay = _Replay(vector)
    result = replay.play()
    return {
        "contract": replay.contract.payload.decode(),
        "devices": replay.seeds,
        "random": [source.used for source in replay.sources],
        "choices": replay.chosen,
        "session_id": result.statement.session_id.hex(),
        "keys": replay.keys(),
        "messages": list(replay.messages()),
        "rounds": [canonical.hex() for canonical in result.statement.rounds],
        "statement": result.statement.encode().hex(),
        "digest": result.digest.hex(),
        "signatures": [signature.hex() for signature in result.signatures],
    }


def check_match(vector: Vector) -> str:
    """Compare a match with what both seats of this implementation send; gives the failure, or "".

    Raises:
        MalformedVectorError: As for `record`.
    """
    messages = _read(vector, "messages", _list)
    made = record(vector)
    for number, (own, given) in enumerate(zip_longest(made["messages"], messages)):
        if own is None or given is None:
            return f"message {number} is {'one too many' if own is None else 'missing'}"
        wrong = _differences(own, given) if isinstance(given, dict) else ["shape"]
        if wrong:
            return f"message {number} ({own['kind']}) differs in {', '.join(wrong)}"
    wrong = _differences(made, vector)
    return f"differs in {', '.join(wrong)}" if wrong else ""


def describe_choice(choice: Choice) -> dict[str, object]:
    """Give a choice as a vector says it."""
    if isinstance(choice, Play):
        return {"card": choice.card, "capture": choice.target}
    return {"capture": choice.target, "decision": choice.decision}


class _Source:
    """A seat's random values by use. A value that is not given is noted as lacking."""

    def __init__(self, given: Mapping[str, bytes]) -> None:
        self.used: dict[str, str] = {}
        self.lacking = ""
        self._given = given

    def __call__(self, label: str, number: int, index: int, size: int) -> bytes:
        use = f"{label}/{number}/{index}"
        value = self._given.get(use, b"")
        if len(value) != size:
            self.lacking = self.lacking or use
            value = bytes(size)
        self.used[use] = value.hex()
        return value


class _Replay:
    """Both seats of one match and every message between them."""

    def __init__(self, vector: Vector) -> None:
        contract = _read(vector, "contract", str.encode)
        seeds = _read(vector, "devices", _seeds)
        self.seeds = [seed.hex() for seed in seeds]
        self.sources = [_Source(values) for values in _read(vector, "random", _values)]
        self.chosen: dict[str, object] = {}
        self._choices = _read(vector, "choices", _object)
        self._log: list[Outgoing] = []
        try:
            self._seats = [
                Seat.start(contract, DeviceKey(seed), source) for seed, source in zip(seeds, self.sources, strict=True)
            ]
        except ContractError as error:
            raise MalformedVectorError(f"members contract and devices: {error}") from None
        if [seat.seat for seat in self._seats] != [0, 1]:
            raise MalformedVectorError("member devices is not in the order of the seats")

    @property
    def contract(self) -> Contract:
        return self._seats[0].contract

    def play(self) -> SignedResult:
        seat = self._seats[self.contract.seat_a]
        step = seat.step
        while not isinstance(step, Finished):
            number = len(self._log)
            if isinstance(step, Choose):
                step = seat.act(self._choose(number, step.options))
            self._require_random()
            if not isinstance(step, Send):
                raise MalformedVectorError(f"message {number - 1} is one that its receiver refuses")
            if seat.has_resigned:
                self.chosen[str(number)] = RESIGN
            self._log.append(step.message)
            seat = self._seats[1 - seat.seat]
            if self._choices.get(str(number + 1)) == RESIGN:
                seat.resign()
            step = seat.receive(*_wire(step.message))
        return step.result

    def keys(self) -> list[str]:
        """Give the keys of the envelopes, by direction: A to B, then B to A."""
        channel = self._channels()[self.contract.seat_a]
        return [channel.sending.hex(), channel.receiving.hex()]

    def messages(self) -> Iterator[Vector]:
        """Describe every message; the two HELLO travel unsealed and have no inside."""
        channels = self._channels()
        for number, message in enumerate(self._log):
            seat = self._sender(number)
            kind, inside = Kind.HELLO, {}
            if number >= 2:
                signed = Signed.cut(channels[seat].reopen(message.envelope))
                kind = Kind(signed.body[0])
                inside = {"head": signed.head.hex(), "payload": signed.payload.hex()}
                inside["signature"] = signed.signature.hex()
            outside = {"phase": int(message.phase), "envelope": message.envelope.hex()}
            yield {"n": number, "seat": seat, "kind": kind.name, **outside, **inside}

    def _sender(self, number: int) -> int:
        a = self.contract.seat_a
        return 1 - a if number % 2 else a

    def _channels(self) -> list[Channel]:
        """Open the session as each seat did, by seat."""
        contract = self.contract
        first, second = (parse_hello(contract, self._sender(n), self._log[n].envelope) for n in (0, 1))
        secrets = {self._sender(n): self.sources[self._sender(n)].used[f"x25519/{n}/0"] for n in (0, 1)}
        opened = (open_channel(contract, seat, bytes.fromhex(secrets[seat]), (first, second)) for seat in (0, 1))
        return [channel for channel, _ in opened]

    def _choose(self, number: int, options: tuple[Choice, ...]) -> Choice:
        given = self._choices.get(str(number))
        for option in options:
            described = describe_choice(option)
            if described == given:
                self.chosen[str(number)] = described
                return option
        raise MalformedVectorError(f"member choices has no legal choice for message {number}")

    def _require_random(self) -> None:
        for seat, source in enumerate(self.sources):
            if source.lacking:
                raise MalformedVectorError(f"member random has no fitting value {source.lacking} for seat {seat}")


def _wire(message: Outgoing) -> tuple[int, int, bytes]:
    return message.counter, message.phase, message.envelope


def _differences(made: Vector, given: Vector) -> list[str]:
    """Name the members in which two objects differ, those of `made` first."""
    names = [*made, *(name for name in given if name not in made)]
    return [name for name in names if name not in made or name not in given or not _is_same(made[name], given[name])]


def _is_same(made: object, given: object) -> bool:
    """Compare as JSON, in which true, 1 and 1.0 are three things."""
    return made == given and json.dumps(made, sort_keys=True) == json.dumps(given, sort_keys=True)


def _read(vector: Vector, name: str, read: Callable[[Any], T]) -> T:
    try:
        return read(vector[name])
    except (AttributeError, LookupError, TypeError, ValueError):
        raise MalformedVectorError(f"member {name} is missing or misshapen") from None


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _object(value: Any) -> Vector:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _seeds(value: Any) -> tuple[bytes, bytes]:
    first, second = (bytes.fromhex(seed) for seed in _list(value))
    if {len(first), len(second)} != {32}:
        raise ValueError
    return first, second


def _values(value: Any) -> tuple[dict[str, bytes], dict[str, bytes]]:
    first, second = ({use: bytes.fromhex(text) for use, text in _object(one).items()} for one in _list(value))
    return first, second
