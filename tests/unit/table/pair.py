"""Two seats and a fake wire: what the tests of `table` and `client` play with."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from koikoi_sdk.poker import DeviceKey, deal_id
from koikoi_sdk.poker.transcript import permutation
from koikoi_sdk.rules.scoring import settle_exhausted
from koikoi_sdk.table import Choice, Choose, Finished, Kind, Outgoing, Rejected, Seat, Send, Step, Unreadable
from koikoi_sdk.table.codec import FORMS
from koikoi_sdk.table.envelope import Channel, Signed
from koikoi_sdk.table.state import Round

Pick = Callable[[Seat, tuple[Choice, ...]], Choice]
Layout = tuple[int, ...]
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
    """Random bytes that are a function of the seed and the use; `log` lists the uses, `fixed` overrides."""

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


def opened(seat: Seat, message: Outgoing) -> Signed:
    """The inside of a message that this seat sealed."""
    channel = seat._table.channel
    mirror = replace(channel, receiving=channel.sending)
    return Signed.cut(mirror.decrypt(message.envelope))


class Pair:
    """Two seats of one match and the one message in flight between them."""

    def __init__(
        self,
        contract: bytes | None = None,
        seed: object = 1,
        pick: Pick = first,
        devices: tuple[DeviceKey, DeviceKey] = DEVICES,
    ) -> None:
        self.contract = contract or contract_payload(devices=devices)
        self.devices = devices
        self.pick = pick
        self.randoms = [SeededRandom(f"{seed}/{i}") for i in (0, 1)]
        self.seats = [
            Seat.start(self.contract, device, random) for device, random in zip(devices, self.randoms, strict=True)
        ]
        self.log: list[Outgoing] = []
        self.kinds: list[Kind] = []

    @property
    def a(self) -> Seat:
        return self.seats[self.seats[0].contract.seat_a]

    @property
    def b(self) -> Seat:
        return self.seats[1 - self.seats[0].contract.seat_a]

    def other(self, seat: Seat) -> Seat:
        return self.seats[1 - seat.seat]

    @property
    def sender(self) -> Seat:
        """The seat whose message is in flight or whose player owes a choice."""
        owing = [seat for seat in self.seats if isinstance(seat.step, Choose)]
        sending = [seat for seat in self.seats if isinstance(seat.step, Send)]
        return owing[0] if owing else max(sending, key=lambda seat: seat.position)

    @property
    def flying(self) -> Outgoing:
        """The message in flight; the player chooses first if a choice is due."""
        seat = self.sender
        if isinstance(seat.step, Choose):
            seat.act(self.pick(seat, seat.step.options))
        step = seat.step
        assert isinstance(step, Send)
        return step.message

    @property
    def flying_kind(self) -> Kind:
        message = self.flying
        return Kind.HELLO if message.counter < 2 else Kind(opened(self.sender, message).body[0])

    def advance(self) -> Step:
        """Deliver the one message in flight."""
        message, kind, sender = self.flying, self.flying_kind, self.sender
        self.log.append(message)
        self.kinds.append(kind)
        return self.deliver(sender, message)

    def deliver(self, sender: Seat, message: Outgoing) -> Step:
        return self.other(sender).receive(message.counter, message.phase, message.envelope)

    def steps(self) -> Iterator[Step]:
        while True:
            step = self.advance()
            yield step
            if isinstance(step, Finished | Rejected | Unreadable):
                return

    def run(self) -> Step:
        """Play on until the match is over."""
        *_, step = self.steps()
        return step

    def run_to(self, kind: Kind, count: int = 1) -> Pair:
        """Play on until the count-th message of a kind is in flight."""
        while True:
            count -= self.flying_kind is kind
            if not count:
                return self
            step = self.advance()
            assert not isinstance(step, Finished | Rejected | Unreadable), step

    def reload(self, seat: Seat) -> Seat:
        """Restart a device: only what `dump` wrote survives."""
        index = seat.seat
        again = Seat.load(self.contract, seat.dump(), self.devices[index], self.randoms[index])
        self.seats[index] = again
        return again

    def copy(self) -> Pair:
        """Two restarted devices beside the running ones."""
        twin = object.__new__(Pair)
        twin.__dict__.update(self.__dict__)
        twin.seats, twin.randoms = list(self.seats), [SeededRandom(random.seed) for random in self.randoms]
        for mine, theirs in zip(twin.randoms, self.randoms, strict=True):
            mine.fixed = dict(theirs.fixed)
        twin.log, twin.kinds = list(self.log), list(self.kinds)
        for seat in self.seats:
            twin.reload(seat)
        return twin

    def skip(self, played: int, points: tuple[int, int] | None = None) -> Pair:
        """Pretend on both sides, while NEXT is in flight, that rounds were played."""
        assert self.flying_kind is Kind.NEXT
        for seat in self.seats:
            state = seat._state
            match = state.match
            assert match is not None
            before = points or match.points
            result = settle_exhausted(match.variant, before, (0, 0), match.dealer)
            state.match = replace(match, points=before, results=(result,) * played)
            state.results = (bytes([1, 255]) + bytes(8),) * played
            state.round = Round(played + 1, match.dealer)
        return self

    def stack(self, wish: Callable[[Layout], bool]) -> Pair:
        """Choose the seeds so that the deal about to begin has a wished layout (cards by position).

        Call it while the message is in flight on whose receipt the dealer sends S1, or while the S4
        of a void deal is.
        """
        sender, number = self.sender, self.flying.counter + 1
        state = sender._state
        assert state.round is not None and state.due is Kind.S1 and state.channel is not None
        dealer = state.round.dealer
        keys = sender.contract.keys
        did = deal_id(
            state.channel.session_id,
            round_number=state.round.number,
            attempt=state.round.attempts,
            dealer_key=keys[dealer],
            other_key=keys[1 - dealer],
            head=state.head,
        )
        first_seed, second_seed = find_seeds(did, wish)
        self.randoms[dealer].fixed["seed", number, 0] = first_seed
        self.randoms[1 - dealer].fixed["seed", number + 1, 0] = second_seed
        return self

    def forge(self, *args: Any, **changes: Any) -> Outgoing:
        """Re-make the message in flight, see `forge`."""
        return forge(self.sender, self.flying, *args, **changes)

    def cheat(self, alter: Callable[[bytes], bytes], kind: Kind | None = None) -> Step:
        """Deliver the forged message instead of the honest one."""
        return self.deliver(self.sender, self.forge(alter, kind))


def forge(
    sender: Seat,
    message: Outgoing,
    alter: Callable[[bytes], bytes] = lambda payload: payload,
    kind: Kind | None = None,
    head: bytes | None = None,
    counter: int | None = None,
    body: Callable[[bytes], bytes] = lambda body: body,
    device: DeviceKey | None = None,
    signature: Callable[[bytes], bytes] = lambda signature: signature,
) -> Outgoing:
    """Re-make a message as a modified client would, signed and sealed with its keys."""
    channel, original = sender._table.channel, opened(sender, message)
    made = channel.sign(
        device or sender._table.device,
        kind or Kind(original.body[0]),
        message.counter if counter is None else counter,
        head or original.head,
        alter(original.payload),
    )
    changed = body(made.body)
    if changed != made.body:
        made = sign_body(channel, device or sender._table.device, changed)
    made = Signed(made.body, signature(made.signature))
    phase = FORMS[kind].phase if kind else message.phase
    return Outgoing(message.counter, phase, channel.seal(made, b"n" * 24))


def put(payload: bytes, at: int, part: bytes) -> bytes:
    return payload[:at] + part + payload[at + len(part) :]


def swap(payload: bytes, at: int, other: int, size: int = 32) -> bytes:
    one, two = payload[at : at + size], payload[other : other + size]
    return put(put(payload, at, two), other, one)


def sign_body(channel: Channel, device: DeviceKey, body: bytes) -> Signed:
    fields = (channel.session_id, channel.own_key, channel.peer_key, body)
    return Signed(body, device.sign("msg", *fields))


@cache
def _permutations(did: bytes, count: int) -> list[Layout]:
    return [permutation(48, "deal/perm", i.to_bytes(32, "big"), did) for i in range(count)]


def find_seeds(did: bytes, wish: Callable[[Layout], bool], size: int = 600) -> tuple[bytes, bytes]:
    orders = _permutations(did, 2 * size)
    for i, pi in enumerate(orders[:size]):
        for j, sigma in enumerate(orders[size:], size):
            if wish(tuple(pi[place] for place in sigma)):
                return i.to_bytes(32, "big"), j.to_bytes(32, "big")
    raise AssertionError("no such layout was found")


def fresh(preset: str = "house", *, swapped: bool = False, seed: int = 1) -> Pair:
    """A match in which A deals first, with COIN_OPEN in flight; nothing was restarted."""
    devices = (DEVICES[1], DEVICES[0]) if swapped else DEVICES
    for attempt in range(seed * 100, seed * 100 + 100):
        pair = Pair(contract_payload(preset, devices=devices), attempt, devices=devices).run_to(Kind.COIN_OPEN)
        if pair.sender._state.due is Kind.NEXT:
            return pair
    raise AssertionError("A never deals")


@cache
def _started(preset: str, swapped: bool, seed: int) -> Pair:
    return fresh(preset, swapped=swapped, seed=seed).run_to(Kind.NEXT)


def started(preset: str = "house", *, swapped: bool = False, seed: int = 1, pick: Pick = first) -> Pair:
    """A match in which A deals first, with the NEXT of B in flight: nothing is dealt yet."""
    pair = _started(preset, swapped, seed).copy()
    pair.pick = pick
    return pair


@cache
def _reached(kind: Kind, count: int, preset: str) -> Pair:
    return started(preset).run_to(kind, count)


def reached(kind: Kind, count: int = 1, preset: str = "house") -> Pair:
    """A match with the count-th message of a kind in flight (made once, then restarted from its dump)."""
    return _reached(kind, count, preset).copy()


@cache
def _audit_ahead() -> Pair:
    return started().skip(5).stack(has_teshi).run_to(Kind.S4)


def audited(kind: Kind) -> Pair:
    """The last round, decided by the dealer's hand yaku so that its audit comes at once.

    The message of that kind is in flight; no device was restarted since the deal.
    """
    return _audit_ahead().copy().run_to(kind)


def months(cards: Layout) -> list[int]:
    counts = [0] * 12
    for card in cards:
        counts[card >> 2] += 1
    return counts


def has_four(cards: Layout) -> bool:
    return 4 in months(cards)


def is_kuttsuki(cards: Layout) -> bool:
    return months(cards).count(2) == 4


def is_plain(cards: tuple[int, ...]) -> bool:
    return not has_four(cards) and not is_kuttsuki(cards)


def has_teshi(cards: Layout) -> bool:
    """Only the dealer has a hand yaku, and the deal is valid."""
    return has_four(cards[:8]) and is_plain(cards[8:16]) and not has_four(cards[16:24])
