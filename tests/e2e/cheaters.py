"""A modified client that deviates at one point, and the match in which it meets an honest, unmodified one.

The honest side is the SDK as it is; what is modified is the other seat (`Cheater`), and what both draw (`Dice`), so
that the deal holds what the lie needs. Everything between them is real: relay, stores, lobby, ranking.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from koikoi.lobby.v1 import lobby_service_pb2 as lobby_pb
from koikoi.match.v1 import match_service_pb2 as match_pb
from koikoi_sdk.client.account import Account
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.errors import RemoteProtocolError
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.lobby import Lobby
from koikoi_sdk.client.match import play_match, sit_down
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import Player, Resign
from koikoi_sdk.client.receipts import ReceiptVerifier
from koikoi_sdk.client.session import MatchEnd, Session
from koikoi_sdk.client.transport import Connection, Transport, open_transport
from koikoi_sdk.poker import DeviceKey, coin, deal_id, digest
from koikoi_sdk.poker.transcript import permutation
from koikoi_sdk.table import Choice, Contract, Kind, Outgoing, Random, Reason, Seat, Step, View, Wait, parse_contract
from koikoi_sdk.table.errors import TransportError
from koikoi_sdk.table.state import State

from tests.unit.table.pair import Layout, has_four, is_plain, opened
from tools.plan import Plan

__all__ = [
    "Affair", "Cheater", "Crooked", "Deviate", "Dice", "First", "Lie", "Opponents", "Resigning", "Tap",
    "is_plain_deal", "play", "refusal_of",
]  # fmt: skip

Wish = Callable[[Layout], bool]
Deviate = Callable[["Cheater", "Crooked", Outgoing], Outgoing]
HOUSE = ("house", 6)
_TRIES = 250


def is_plain_deal(cards: Layout) -> bool:
    """Nothing is claimed and nothing dealt again, so that play begins."""
    return is_plain(cards[:8]) and is_plain(cards[8:16]) and not has_four(cards[16:24])


class First:
    """Takes the first option there is."""

    async def choose(self, view: View) -> Choice | Resign:
        return view.options[0]


class Resigning(First):
    """Gives the match up at its first choice from a turn on."""

    def __init__(self, turn: int = 1) -> None:
        self._turn = turn

    async def choose(self, view: View) -> Choice | Resign:
        assert view.round is not None
        return Resign() if view.round.turn >= self._turn else await super().choose(view)


@dataclass(frozen=True)
class Lie:
    """One deviation, and how it is met.

    `deviate` re-makes the `count`-th message of `kind` that the cheater sends, among those for which `when` holds.
    `reason` is what the honest side says: to its player with evidence, or UNREADABLE without. `is_dealer` and `is_a`
    say which part the cheater has, `wish` what is dealt.
    """

    name: str
    kind: Kind
    deviate: Deviate
    reason: Reason
    is_dealer: bool = True
    is_a: bool | None = None
    count: int = 1
    when: Callable[[bytes], bool] = lambda payload: True
    wish: Wish = is_plain_deal
    cheater: Callable[[], Player] = First
    honest: Callable[[], Player] = First
    before: Callable[[Cheater], None] = lambda seat: None
    rules: tuple[str, int] = HOUSE


class Dice:
    """What both devices draw in one match: a function of the use, but the dealer and the deal are as wished."""

    def __init__(self, contract: Contract, dealer: int, wish: Wish) -> None:
        self.seat: Seat | None = None  # the cheater's: whenever the dealer draws, both seats have the same head
        self.drawn: dict[tuple[int, str, int, int], bytes] = {}
        self._contract, self._dealer, self._wish = contract, dealer, wish
        self._answers: dict[int, bytes] = {}

    def of(self, seat: int) -> Callable[[str, int, int, int], bytes]:
        return partial(self._draw, seat)

    def _draw(self, seat: int, label: str, number: int, index: int, size: int) -> bytes:
        value = hashlib.shake_256(f"{seat}/{label}/{number}/{index}".encode()).digest(size)
        if label == "hello" and seat != self._contract.seat_a:
            value = self._share()
        elif label == "seed":
            value = self._answers.pop(number, b"") or self._seeds(number)
        self.drawn[seat, label, number, index] = value
        return value

    def _share(self) -> bytes:
        """B's share of the coin, with which the wished seat deals."""
        contract, a = self._contract, self._contract.seat_a
        keys = contract.keys[a], contract.keys[1 - a]
        first = self.drawn[a, "hello", 0, 0]
        commitment = coin.commit(contract.hash, *keys, first)
        for number in itertools.count():
            share = number.to_bytes(32, "big")
            session = digest("match", contract.hash, contract.rules_hash, *keys, commitment, share)[:32]
            if coin.toss(session, first, share) == (self._dealer != a):
                return share
        raise AssertionError("one of two sides comes up")

    def _seeds(self, number: int) -> bytes:
        """The dealer's seed; the other one is kept for the answer to S1."""
        assert self.seat is not None
        state = self.seat._state
        assert state.round is not None and state.channel is not None and state.counter == number
        dealer = state.round.dealer
        did = deal_id(
            state.channel.session_id,
            round_number=state.round.number,
            attempt=state.round.attempts,
            dealer_key=self._contract.keys[dealer],
            other_key=self._contract.keys[1 - dealer],
            head=state.head,
        )
        orders: dict[bytes, Layout] = {}
        for pair in itertools.product(range(_TRIES), range(_TRIES, 2 * _TRIES)):
            pi, sigma = (_order(orders, did, seed.to_bytes(32, "big")) for seed in pair)
            if self._wish(tuple(pi[place] for place in sigma)):
                self._answers[number + 1] = pair[1].to_bytes(32, "big")
                return pair[0].to_bytes(32, "big")
        raise AssertionError("no such deal was found")


def _order(known: dict[bytes, Layout], did: bytes, seed: bytes) -> Layout:
    if seed not in known:
        known[seed] = permutation(48, "deal/perm", seed, did)
    return known[seed]


class Cheater(Seat):
    """A seat like any other, but for one lie."""

    def __init__(self, contract: Contract, device: DeviceKey, random: Random, state: State) -> None:
        super().__init__(contract, device, random, state)
        self.lie: Lie | None = None
        self.told: Outgoing | None = None
        self.said: defaultdict[Kind, list[bytes]] = defaultdict(list)
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.is_mute = False
        self._seen = 0

    @property
    def step(self) -> Step:
        return Wait() if self.is_mute else super().step

    @property
    def ready(self) -> Outgoing:
        """The message that is about to be sent."""
        assert self._state.outbox is not None
        return self._state.outbox

    def receive(self, counter: int, phase: int, envelope: bytes) -> Step:
        self.received.append(envelope)
        return super().receive(counter, phase, envelope)

    def _send(self, kind: Kind, payload: bytes) -> Step:
        super()._send(kind, payload)
        lie = self.lie
        if lie is not None and kind is lie.kind and lie.when(payload):
            self._seen += 1
            if self._seen == lie.count:
                self.tell()
        self.said[kind].append(payload)
        self.sent.append(self.ready.envelope)
        return self.step

    def tell(self) -> None:
        """Replace the message that is ready; what it says counts for this seat too."""
        assert self.lie is not None
        self.told = self._state.outbox = self.lie.deviate(self, self.ready)
        with contextlib.suppress(TransportError, AssertionError):  # it does not open, or there is no channel yet
            self._state.head = opened(self, self.told).next_head()

    def _proceed(self) -> Step:
        if self.lie is not None:
            self.lie.before(self)
        return super()._proceed()

    def close(self) -> None:
        """Keep every secret."""


@dataclass
class Tap:
    """Lets everything through and notes it: frames in the order in which this device had them."""

    door_behind: Transport
    frames: list[tuple[str, match_pb.ClientFrame | match_pb.ServerFrame]] = field(default_factory=list)

    @property
    def door(self) -> str:
        return self.door_behind.door

    async def connect(self, match_id: str) -> Connection:
        return _TappedConnection(await self.door_behind.connect(match_id), self)

    def envelopes(self, way: str) -> list[tuple[int, int, bytes]]:
        """Number, phase and bytes of all envelopes that went this way, each once."""
        sent = [
            frame.envelope for side, frame in self.frames if side == way and frame.WhichOneof("frame") == "envelope"
        ]
        return list(dict.fromkeys((envelope.counter, envelope.phase, envelope.sealed) for envelope in sent))

    def after_last_envelope(self) -> Iterator[match_pb.ClientFrame]:
        """What was sent after the last envelope had come for the first time."""
        last = self.envelopes("in")[-1][0]
        first = next(i for i, (way, frame) in enumerate(self.frames) if way == "in" and _number(frame) == last)
        return (frame for way, frame in self.frames[first:] if way == "out" and isinstance(frame, match_pb.ClientFrame))


def _number(frame: match_pb.ClientFrame | match_pb.ServerFrame) -> int | None:
    return frame.envelope.counter if frame.WhichOneof("frame") == "envelope" else None


class _TappedConnection:
    def __init__(self, behind: Connection, tap: Tap) -> None:
        self._behind, self._tap = behind, tap

    async def send(self, frame: match_pb.ClientFrame) -> None:
        self._tap.frames.append(("out", frame))
        await self._behind.send(frame)

    async def receive(self) -> match_pb.ServerFrame:
        frame = await self._behind.receive()
        self._tap.frames.append(("in", frame))
        return frame

    async def close(self) -> None:
        await self._behind.close()


@dataclass
class Crooked:
    """A relay in league: what it delivers to this device is changed; each frame may become none or several."""

    change: Callable[[match_pb.ServerFrame], list[match_pb.ServerFrame]]
    _behind: Transport | None = None

    def before(self, behind: Transport) -> Transport:
        self._behind = behind
        return self

    @property
    def door(self) -> str:
        assert self._behind is not None
        return self._behind.door

    async def connect(self, match_id: str) -> Connection:
        assert self._behind is not None
        return _CrookedConnection(await self._behind.connect(match_id), self.change)


class _CrookedConnection:
    def __init__(
        self, behind: Connection, change: Callable[[match_pb.ServerFrame], list[match_pb.ServerFrame]]
    ) -> None:
        self._behind, self._change = behind, change
        self._waiting: deque[match_pb.ServerFrame] = deque()

    async def receive(self) -> match_pb.ServerFrame:
        while not self._waiting:
            self._waiting.extend(self._change(await self._behind.receive()))
        return self._waiting.popleft()

    async def send(self, frame: match_pb.ClientFrame) -> None:
        await self._behind.send(frame)

    async def close(self) -> None:
        await self._behind.close()


@dataclass
class Affair:
    """What came of a match between a cheater and an honest device."""

    contract: SignedContract
    cheater: Cheater
    cheater_key: DeviceKey
    cheater_end: MatchEnd | BaseException
    honest_end: MatchEnd | BaseException
    honest_outbox: Outbox
    tap: Tap
    dice: Dice


@dataclass(frozen=True)
class Opponents:
    """Two signed-in devices, by their homes; the first has the smaller key."""

    plan: Plan
    homes: tuple[Path, Path]

    async def agree(self, host: int, rules: tuple[str, int] = HOUSE) -> SignedContract:
        """Open a room and take its second seat, through the gateway; returns the contract that the lobby signed."""
        async with ConnectClient(self.plan.gateway_url) as ours, ConnectClient(self.plan.gateway_url) as theirs:
            hosting = Lobby(ours, Account(ours, Home(self.homes[host])))
            preset, rounds = rules
            room = await hosting.create_room(
                lobby_pb.Rules(preset=preset, rounds=rounds), is_public=False, leave_other=True
            )
            return await Lobby(theirs, Account(theirs, Home(self.homes[1 - host]))).join_room(
                room.code, leave_other=True
            )

    def device(self, number: int) -> DeviceKey:
        return Home(self.homes[number]).device_key()


async def play(
    opponents: Opponents,
    lie: Lie,
    doors: tuple[str, str],
    *,
    host: int = 0,
    behind: Callable[[Transport], Transport] = lambda transport: transport,
) -> Affair:
    """Let a cheater play against an honest device; `doors` are the cheater's and the honest one's."""
    signed = await opponents.agree(host, lie.rules)
    contract = parse_contract(signed.payload)
    number = 0 if lie.is_a is None else 1 - lie.is_a
    device, other = opponents.device(number), opponents.device(1 - number)
    own = contract.seat_of(device.public)
    dice = Dice(contract, own if lie.is_dealer else 1 - own, lie.wish)
    cheater = dice.seat = Cheater.start(signed.payload, device, dice.of(own))
    cheater.lie = lie
    if lie.kind is Kind.HELLO:
        cheater.tell()
    outbox = Outbox.create(Home(opponents.homes[number]).matches, signed.match_id, signed.token, cheater.dump())
    home = Home(opponents.homes[1 - number])
    honest_outbox = sit_down(home, signed, other, random=dice.of(1 - own))
    tap = Tap(behind(open_transport(doors[1])))
    with outbox.lock():
        async with ConnectClient(opponents.plan.gateway_url) as client:
            receipts = ReceiptVerifier(client, Account(client, home).issuer)
            cheating = Session(outbox, cheater, device, open_transport(doors[0])).play(lie.cheater())
            honest = play_match(honest_outbox, other, tap, lie.honest(), receipts=receipts, random=dice.of(1 - own))
            async with asyncio.timeout(120):
                ends = await asyncio.gather(cheating, honest, return_exceptions=True)
    return Affair(signed, cheater, device, *ends, honest_outbox, tap, dice)


def refusal_of(affair: Affair) -> RemoteProtocolError:
    """What the honest device told its player."""
    assert isinstance(affair.honest_end, RemoteProtocolError), affair.honest_end
    return affair.honest_end
