"""Two seats and a fake wire: what the tests of `table` and `client` play with."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator

from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.table import Choice, Choose, Finished, Outgoing, Rejected, Seat, Send, Step, Unreadable

Pick = Callable[[Seat, tuple[Choice, ...]], Choice]
DEVICES = (DeviceKey(b"s" * 32), DeviceKey(b"t" * 32))


def contract_payload(
    preset: str = "house",
    rounds: int | None = None,
    overrides: dict[str, object] | None = None,
    devices: tuple[DeviceKey, DeviceKey] = DEVICES,
) -> bytes:
    default = {"house": 6, "boardgameland": 3}.get(preset, 12)
    rules = {"overrides": overrides or {}, "preset": preset, "rounds": rounds or default, "version": 1}
    seats = [
        {"account": f"a{i}", "avatar": "", "key": encode_key(device.public), "name": f"p{i}"}
        for i, device in enumerate(devices)
    ]
    text = json.dumps(rules, sort_keys=True, separators=(",", ":"))
    members = {"iss": "lobby", "jti": "m", "iat": 1, "exp": 2, "ranked": False, "rules": text, "seats": seats}
    return json.dumps(members).encode()


def encode_key(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).rstrip(b"=").decode()


class SeededRandom:
    """Random bytes that are a function of the seed and the use; `log` lists the uses."""

    def __init__(self, seed: object) -> None:
        self.seed = seed
        self.log: list[tuple[str, int, int, int]] = []
        self.fixed: dict[tuple[str, int, int], bytes] = {}

    def __call__(self, label: str, number: int, index: int, size: int) -> bytes:
        self.log.append((label, number, index, size))
        data = hashlib.shake_256(f"{self.seed}/{label}/{number}/{index}".encode()).digest(size)
        return self.fixed.get((label, number, index), data)


def first(seat: Seat, options: tuple[Choice, ...]) -> Choice:
    return options[0]


def picker(seed: int) -> Pick:
    """Choose pseudo-randomly, as a function of seed and position."""

    def pick(seat: Seat, options: tuple[Choice, ...]) -> Choice:
        digest = hashlib.sha256(f"{seed}/{seat.seat}/{seat.position}".encode()).digest()
        return options[int.from_bytes(digest[:4], "big") % len(options)]

    return pick


class Pair:
    """Two seats of one match. `a` and `b` are by key order, not by seat number."""

    def __init__(self, contract: bytes | None = None, seed: object = 1, pick: Pick = first) -> None:
        self.contract = contract or contract_payload()
        self.seed = seed
        self.pick = pick
        self.randoms = [SeededRandom(f"{seed}/{i}") for i in (0, 1)]
        self.seats = [
            Seat.start(self.contract, device, random)
            for device, random in zip(DEVICES, self.randoms, strict=True)
        ]
        self.log: list[Outgoing] = []

    @property
    def a(self) -> Seat:
        return self.seats[self.seats[0].contract.seat_a]

    @property
    def b(self) -> Seat:
        return self.seats[1 - self.seats[0].contract.seat_a]

    def other(self, seat: Seat) -> Seat:
        return self.seats[1 - seat.seat]

    def sender(self) -> Seat:
        """The seat whose message is in flight or whose player owes a choice."""
        candidates = [seat for seat in self.seats if isinstance(seat.step, Send | Choose)]
        owing = [seat for seat in candidates if isinstance(seat.step, Choose)]
        return owing[0] if owing else max(candidates, key=lambda seat: seat.position)

    def advance(self) -> Step:
        """Let the player choose if a choice is due, then deliver the one message in flight."""
        seat = self.sender()
        if isinstance(seat.step, Choose):
            seat.act(self.pick(seat, seat.step.options))
        step = seat.step
        assert isinstance(step, Send)
        self.log.append(step.message)
        return self.deliver(seat, step.message)

    def deliver(self, sender: Seat, message: Outgoing) -> Step:
        return self.other(sender).receive(message.counter, message.phase, message.envelope)

    def steps(self) -> Iterator[Step]:
        while True:
            step = self.advance()
            yield step
            if isinstance(step, Finished | Rejected | Unreadable):
                return

    def run(self, until: Callable[[Pair], bool] | None = None) -> Step | None:
        """Play on until the match is over or the condition holds."""
        step: Step | None = None
        for step in self.steps():
            if until is not None and until(self):
                return step
        return step

    def reload(self, seat: Seat) -> Seat:
        """Restart a device: only what `dump` wrote survives."""
        index = seat.seat
        again = Seat.load(self.contract, seat.dump(), DEVICES[index], self.randoms[index])
        self.seats[index] = again
        return again
