"""One move, looked at in each place it passes: the headings are those of docs/life-of-a-move.md."""

from __future__ import annotations

import ast
import asyncio
import re
import shutil
import tempfile
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.match import payload_of, sit_down
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import Resign
from koikoi_sdk.client.session import Session
from koikoi_sdk.client.transport import Connection, open_transport
from koikoi_sdk.rules import Play
from koikoi_sdk.table import Choice, Kind, Phase, Seat, Send, Unreadable, View
from koikoi_sdk.table.codec import NO_CAPTURE, Played
from koikoi_sdk.table.envelope import Signed, kind_of
from redis import Redis

from services.match.domain import relay
from services.match.domain.deadlines import Limits
from services.match.domain.envelope import Envelope
from services.match.domain.errors import RelayError
from services.match.domain.match import Match
from services.match.edge.codec import FRAME_MAX_BYTES, read_frame
from services.match.store.redis import bucket_of, channel_of, match_key
from services.match.store.state import load_match
from tools.bots import Bot, signed_in_bot
from tools.stack import Stack

pytestmark = pytest.mark.xdist_group("e2e")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "life-of-a-move.md"
HELD_BACK_S = 0.3


@dataclass
class Move:
    """What was seen of one move; `number` is its number. Empty until the move is made."""

    number: int = -1
    view: View | None = None
    choice: Play | None = None
    stored: Send | None = None
    frame: bytes = b""
    heard_too_early: bool = False
    accepted_before: float = 0
    accepted_after: float = 0
    before: dict[bytes, bytes] = field(default_factory=dict)
    after: dict[bytes, bytes] = field(default_factory=dict)
    published: bytes = b""
    match_id: str = ""
    acknowledged: list[int] = field(default_factory=list)
    delivered: list[tuple[int, bytes]] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    damaged: object = None
    message: Signed | None = None
    head: bytes = b""
    peer_view: View | None = None
    answer: Send | None = None

    @property
    def sealed(self) -> bytes:
        """The move as it travels."""
        assert self.stored is not None
        return self.stored.message.envelope


@dataclass
class Watch:
    """Stands at the doors of both devices and writes down what passes there about the first move."""

    stack: Stack
    redis: Redis
    move: Move = field(default_factory=Move)
    seats: dict[str, Seat] = field(default_factory=dict)
    outboxes: dict[str, Outbox] = field(default_factory=dict)
    bots: dict[str, Bot] = field(default_factory=dict)
    mover: str = ""

    def on_disk(self, name: str) -> Seat:
        """The seat as a new process would find it."""
        outbox = self.outboxes[name]
        return Seat.load(payload_of(outbox.contract), outbox.load(), self.bots[name].account.key)

    def state(self) -> dict[bytes, bytes]:
        """The match in Redis."""
        state: dict[bytes, bytes] = self.redis.hgetall(match_key(self.move.match_id))
        return state

    def accepted(self) -> float:
        """How many envelopes the relay says it accepted."""
        url = self.stack.plan.probe_url("match").replace("/readyz", "/metrics")
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = re.search(r'koikoi_match_envelopes_total\{outcome="accepted"\} (\S+)', answer.read().decode())
        assert found is not None
        return float(found[1])

    async def send_move(self, name: str, connection: Connection, frame: match.ClientFrame) -> None:
        """Look at the mover's disk and at Redis, and send while Redis takes no writes: nobody may hear of it then."""
        move = self.move
        step = self.on_disk(name).step
        assert isinstance(step, Send)
        self.mover, move.number, move.stored, move.frame = name, frame.envelope.counter, step, frame.SerializeToString()
        move.before, move.accepted_before = self.state(), self.accepted()
        pubsub = self.redis.pubsub()
        pubsub.ssubscribe(channel_of(bucket_of(move.match_id)))
        assert pubsub.get_message(timeout=10)
        self.redis.execute_command("CLIENT", "PAUSE", 60_000, "WRITE")
        try:
            await connection.send(frame)
            await asyncio.sleep(HELD_BACK_S)
            move.heard_too_early = bool(move.delivered or move.acknowledged) or self.state() != move.before
        finally:
            self.redis.execute_command("CLIENT", "UNPAUSE")
        while not move.published.startswith(move.match_id.encode()):
            message = await asyncio.to_thread(pubsub.get_message, timeout=10)
            assert message is not None, "nothing was published"
            move.published = message["data"]
        pubsub.close()

    def deliver(self, name: str, frame: match.ServerFrame) -> None:
        """Look at Redis, and open the envelope as the seat is about to."""
        move, seat, sealed = self.move, self.seats[name], frame.envelope.sealed
        move.delivered.append((frame.envelope.phase, sealed))
        move.after, move.accepted_after = self.state(), self.accepted()
        move.positions.append(seat.position)
        flipped = bytes([*sealed[:-1], sealed[-1] ^ 1])
        move.damaged = self.on_disk(name).receive(move.number, frame.envelope.phase, flipped)
        move.message, move.head = Signed.cut(seat._table.channel.decrypt(sealed)), seat._state.head
        assert kind_of(move.message.body + move.message.signature) is Kind.T1

    def answer(self, name: str) -> None:
        """Look at the receiver's disk before its answer leaves it."""
        seat = self.on_disk(name)
        assert isinstance(seat.step, Send)
        self.move.answer, self.move.peer_view = seat.step, seat.view()
        self.move.positions.append(seat.position)


@dataclass(frozen=True)
class WatchedDoor:
    """A device's way to the relay, under watch."""

    name: str
    watch: Watch
    url: str

    @property
    def door(self) -> str:
        return open_transport(self.url).door

    async def connect(self, match_id: str) -> Connection:
        return WatchedConnection(self.name, self.watch, await open_transport(self.url).connect(match_id))


@dataclass(frozen=True)
class WatchedConnection:
    name: str
    watch: Watch
    connection: Connection

    async def send(self, frame: match.ClientFrame) -> None:
        move, is_envelope = self.watch.move, frame.WhichOneof("frame") == "envelope"
        if is_envelope and frame.envelope.phase == Phase.PLAY and move.number < 0:
            await self.watch.send_move(self.name, self.connection, frame)
            return
        if is_envelope and move.number >= 0 and frame.envelope.counter == move.number + 1 and move.answer is None:
            self.watch.answer(self.name)
        await self.connection.send(frame)

    async def receive(self) -> match.ServerFrame:
        frame = await self.connection.receive()
        move = self.watch.move
        if move.number >= 0 and self.name == self.watch.mover and frame.acknowledged == move.number + 1:
            move.acknowledged.append(frame.acknowledged)
        if move.number >= 0 and frame.WhichOneof("frame") == "envelope" and frame.envelope.counter == move.number:
            self.watch.deliver(self.name, frame)
        return frame

    async def close(self) -> None:
        await self.connection.close()


@dataclass
class OneMove:
    """Makes the match's first play; with the next choice of either player the match is given up."""

    watch: Watch

    async def choose(self, view: View) -> Choice | Resign:
        option = view.options[0]
        if self.watch.move.choice is not None or not isinstance(option, Play):
            return Resign()
        self.watch.move.view, self.watch.move.choice = view, option
        return option


@pytest.fixture(scope="module")
def move(stack: Stack) -> Move:
    return asyncio.run(_make_a_move(stack))


async def _make_a_move(stack: Stack) -> Move:
    directory = Path(tempfile.mkdtemp(prefix="koikoi-move-"))
    try:
        with Redis.from_url(stack.valkey.url) as redis:
            watch = Watch(stack, redis)
            async with (
                signed_in_bot(stack.plan, directory / "tsuru", "Mai") as host,
                signed_in_bot(stack.plan, directory / "kame", "Ran") as guest,
            ):
                room = await host.lobby.create_room(
                    lobby.Rules(preset="house", rounds=6), is_public=False, leave_other=True
                )
                contract = await guest.lobby.join_room(room.code, leave_other=True)
                watch.move.match_id = contract.match_id
                await asyncio.gather(*(_play(bot, contract, watch) for bot in (host, guest)))
    finally:
        shutil.rmtree(directory)
    assert watch.move.choice is not None, "six rounds without a play"
    return watch.move


async def _play(bot: Bot, contract: SignedContract, watch: Watch) -> None:
    key = bot.account.key
    outbox = sit_down(bot.home, contract, key)
    seat = Seat.load(contract.payload, outbox.load(), key)
    watch.seats[bot.name], watch.outboxes[bot.name], watch.bots[bot.name] = seat, outbox, bot
    with outbox.lock():
        door = WatchedDoor(bot.name, watch, watch.stack.plan.websocket_url)
        await Session(outbox, seat, key, door).play(OneMove(watch))


def test_1_the_seat_decides(move: Move) -> None:
    """`table/seat.py` decides, encodes, signs, numbers and seals"""
    assert move.view is not None and move.choice in move.view.options
    assert move.stored is not None
    message = move.stored.message
    assert (message.counter, message.phase, len(message.envelope)) == (move.number, Phase.PLAY, 653)


def test_2_the_outbox_is_written(move: Move) -> None:
    """`client/session.py` writes the outbox"""
    sent = match.ClientFrame.FromString(move.frame).envelope
    assert (sent.counter, sent.sealed) == (move.number, move.sealed)  # was on disk before it was sent


def test_3_the_door_carries(move: Move) -> None:
    """`client/transport/websocket.py` carries it"""
    frame = match.ClientFrame.FromString(move.frame)
    assert frame.WhichOneof("frame") == "envelope"
    assert len(move.frame) - len(move.sealed) < 24  # nothing else travels with it


def test_4_the_edge_reads(move: Move) -> None:
    """`match/edge/websocket.py` reads it"""
    assert len(move.frame) <= FRAME_MAX_BYTES
    assert read_frame(move.frame, is_first=False) == Envelope(move.number, Phase.PLAY, move.sealed)


def test_5_the_service_does(move: Move) -> None:
    """`match/service.py` does what it asks"""
    assert move.accepted_after == move.accepted_before + 1


def test_6_the_relay_accepts(move: Move) -> None:
    """`match/domain/relay.py` accepts or refuses"""
    before, after = _match(move.before), _match(move.after)
    assert move.view is not None
    seat = move.view.seat
    assert (before.owing, before.counter) == (seat, move.number)
    envelope, speaker = Envelope(move.number, Phase.PLAY, move.sealed), before.seats[seat].connection
    decided = relay.accept(before, seat, speaker, envelope, after.owed_since_ms, Limits())
    for name in ("counter", "sealed", "phase", "before", "rolling", "owing", "clock", "epoch"):
        assert getattr(decided, name) == getattr(after, name), name
    with pytest.raises(RelayError):
        relay.accept(before, 1 - seat, before.seats[1 - seat].connection, envelope, 0, Limits())


def test_7_the_store_keeps(move: Move) -> None:
    """`match/store/redis.py` and `commit_match.lua` store and publish"""
    assert not move.heard_too_early
    assert move.after[b"sealed"] == move.sealed  # when the other seat heard of it
    assert _match(move.after).counter == move.number + 1
    assert move.published == move.match_id.encode() + move.after[b"revision"]


def test_8_the_other_edge_delivers(move: Move) -> None:
    """The other seat's edge delivers it"""
    assert move.delivered == [(Phase.PLAY, move.sealed)]
    assert set(move.acknowledged) == {move.number + 1}


def test_9_the_session_opens(move: Move) -> None:
    """Its `client/session.py` opens it"""
    assert isinstance(move.damaged, Unreadable)
    assert move.message is not None and move.choice is not None
    played, target = Played.cut(move.message.payload), move.choice.target
    assert played.opening[1] == move.choice.card
    assert played.capture == (NO_CAPTURE if target is None else target)


def test_10_the_seat_checks(move: Move) -> None:
    """Its `table/seat.py` checks the rules and the proofs"""
    assert move.message is not None and move.choice is not None and move.answer is not None
    assert move.message.counter == move.number and move.message.head == move.head
    assert move.positions == [move.number, move.number + 2]
    assert move.answer.message.counter == move.number + 1
    assert move.view is not None and move.view.round is not None
    assert move.peer_view is not None and move.peer_view.round is not None
    old, new, mover = move.view.round, move.peer_view.round, move.view.seat
    assert move.choice.card not in old.field
    assert move.choice.card in new.field | new.captures[mover]
    assert new.hand_counts[mover] == old.hand_counts[mover] - 1


# The page itself.


def test_the_page_has_these_headings() -> None:
    tests = [value for name, value in globals().items() if re.match(r"test_\d+_", name)]
    expected = [f"{number}. {test.__doc__}" for number, test in enumerate(tests, start=1)]
    assert re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE) == expected


def test_the_page_passes_the_files_of_the_style_guide_in_their_order() -> None:
    guide = (
        (ROOT / "docs" / "style.md").read_text().partition("**Life of a move**")[2].partition("**Change a rule**")[0]
    )
    files = re.findall(r"`([\w/]+\.(?:py|lua))`", guide.partition("):")[2])
    headings = " ".join(re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE))
    found = re.findall(r"`([\w/]+\.(?:py|lua))`", headings)
    assert [file for file in found if file in files][: len(files)] == files


def test_every_file_and_function_on_the_page_exists() -> None:
    for section in PAGE.read_text().split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        links = re.findall(r"\[`([\w/.]+)`\]\(\.\./([\w/.]+)\)", text)
        files = {label: ROOT / path for label, path in links}
        assert all(path.is_file() and str(path).endswith(label) for label, path in files.items()), title
        assert all(name in files for name in re.findall(r"`([\w/]+/[\w/]+\.py)`", text)), title
        defined = {name for path in files.values() if path.suffix == ".py" for name in _functions(path)}
        named = set(re.findall(r"`(\w+)\(\)`", text))
        assert named and named <= defined, f"{title}: {named - defined}"


def _functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def _match(fields: dict[bytes, bytes]) -> Match:
    return load_match(fields[b"state"], fields[b"sealed"], int(fields[b"credit"]))
