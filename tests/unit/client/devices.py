"""Two devices with real disks at a fake relay, and a way to let one of them crash at any point and come back."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Hashable
from pathlib import Path

from koikoi_sdk.client.backoff import Backoff
from koikoi_sdk.client.errors import RelayClosed
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import Resign
from koikoi_sdk.client.session import MatchEnd, Session
from koikoi_sdk.table import Choice, Seat, View

from services.match.domain import relay
from services.match.domain.envelope import Envelope
from tests.unit.client.relay import LIMITS, FakeRelay, FakeTransport
from tests.unit.table.pair import DEVICES, Pair, SeededRandom

POINTS = ("half saved", "after save", "before send", "after send", "received")
Resigns = Callable[[View], bool]


class Crash(BaseException):
    """The process is killed."""


class Hasty(Backoff):
    """Comes back at once."""

    def next_delay_s(self, retry_after_s: float | None = None) -> float:
        self.failures += 1
        assert self.failures < 50, "comes back again and again"
        return 0.0


class Player:
    """Chooses as a function of what it sees, so that a restarted one chooses the same."""

    def __init__(self, resigns: Resigns = lambda view: False) -> None:
        self._resigns = resigns

    async def choose(self, view: View) -> Choice | Resign:
        if self._resigns(view):
            return Resign()
        assert view.round is not None
        digest = hashlib.sha256(f"{view.seat}/{view.round.number}/{view.round.turn}/{len(view.options)}".encode())
        return view.options[digest.digest()[0] % len(view.options)]


class Restarted(SeededRandom):
    """Draws the same bytes after a restart, except for nonces of envelopes: sealing anything twice shows."""

    life = 0

    def __call__(self, label: str, number: int, index: int, size: int) -> bytes:
        data = super().__call__(label, number, index, size)
        return hashlib.shake_256(data + bytes([self.life])).digest(size) if label == "aead" else data


class CrashingOutbox(Outbox):
    """Dies around its writes."""

    at: Callable[[str], None] = staticmethod(lambda point: None)

    def save(self, state: bytes) -> None:
        try:
            self.at("half saved")
        except Crash:
            (self.directory / ".state.half").write_bytes(b"half of a st")
            raise
        super().save(state)
        self.at("after save")


class Device:
    """One seat: its disk, and process after process that plays from it."""

    def __init__(self, table: Tables, index: int, state: bytes | None = None) -> None:
        self.table, self.index = table, index
        self.random = Restarted(f"1/{index}")
        self.outbox = CrashingOutbox(
            Outbox.create(table.directory / str(index), "m", table.token, state or self._start()).directory
        )
        self.transport = FakeTransport(table.relay)
        self.transport.before_send = lambda frame: self._at("before send", frame.WhichOneof("frame"))
        self.transport.after_send = lambda frame: self._at("after send", frame.WhichOneof("frame"))
        self.transport.before_receive = lambda frame: self._at("received", frame.WhichOneof("frame"))
        self.outbox.at = self._at
        self.seat: Seat | None = None
        self.crashes: list[Hashable] = []
        self.may_crash: Callable[[str], bool] = lambda point: False
        self._seen: set[Hashable] = set()

    def _start(self) -> bytes:
        return Seat.start(self.table.payload, DEVICES[self.index], self.random).dump()

    def _at(self, point: str, what: str | None = "") -> None:
        """Die here, the first time this seat comes by in this state."""
        assert self.seat is not None
        place = (point, what, self.seat.position, type(self.seat.step).__name__)
        if place not in self._seen and self.may_crash(point):
            self._seen.add(place)
            self.crashes.append(place)
            raise Crash

    async def play(self, player: Player) -> MatchEnd:
        """Play to the end, however often this device is killed."""
        while True:
            try:
                with self.outbox.lock():
                    return await self._session().play(player)
            except Crash:
                self.random.life += 1
                await asyncio.sleep(0)

    def _session(self) -> Session:
        device = DEVICES[self.index]
        self.seat = Seat.load(self.table.payload, self.outbox.load(), device, self.random)
        return Session(self.outbox, self.seat, device, self.transport, lament=self._lament, backoff=Hasty())

    def _lament(self, closed: RelayClosed) -> None:
        assert closed.is_retryable


class Tables:
    """One match: contract, relay, and two devices with disks of their own."""

    def __init__(self, directory: Path, payload: bytes, pair: Pair | None = None) -> None:
        self.directory, self.payload = directory, payload
        self.token = "h." + base64.urlsafe_b64encode(payload).rstrip(b"=").decode() + ".s"
        self.relay = FakeRelay(payload)
        for index in (0, 1):
            (directory / str(index)).mkdir(parents=True)
        states = [seat.dump() for seat in pair.seats] if pair else [None, None]
        self.devices = [Device(self, index, state) for index, state in enumerate(states)]
        if pair is not None:
            self._replay(pair)
            for device, random in zip(self.devices, pair.randoms, strict=True):
                device.random.seed, device.random.fixed = random.seed, dict(random.fixed)

    def _replay(self, pair: Pair) -> None:
        """Bring the relay to where a pair of seats is."""
        for seat in (0, 1):
            self.relay.match = relay.join(self.relay.match, seat, (f"past{seat}", "p"), 0, 0, b"", LIMITS)
        for message in pair.log:
            seat, envelope = (
                self.relay.match.owner(message.counter),
                Envelope(message.counter, int(message.phase), message.envelope),
            )
            self.relay.match = relay.accept(self.relay.match, seat, f"past{seat}", envelope, 0, LIMITS)

    async def play(self, *players: Player) -> list[MatchEnd]:
        players = players or (Player(), Player())
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(device.play(player)) for device, player in zip(self.devices, players, strict=True)
            ]
        return [task.result() for task in tasks]
