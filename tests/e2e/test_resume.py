"""Whatever is killed in the middle of a match: it goes on, and ends with one result that both signed."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi.match.v1 import match_service_pb2 as match
from koikoi.ranking.v1 import ranking_service_pb2 as ranking
from koikoi_sdk.client.account import Account
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.lobby import Lobby
from koikoi_sdk.client.match import hand_in, play_match, sit_down
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import Player, Resign, SimpleBot
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.table import View

from tests.e2e.recorder import Recorder
from tools.bots import Bot, signed_in_bot
from tools.stack import Stack

ROOT = Path(__file__).parents[2]
LIMIT_S = 150.0
pytestmark = pytest.mark.xdist_group("e2e")


@asynccontextmanager
async def two_bots(stack: Stack, directory: Path) -> AsyncIterator[tuple[Bot, Bot]]:
    async with (
        signed_in_bot(stack.plan, directory / "matsu", "Matsu") as host,
        signed_in_bot(stack.plan, directory / "kiri", "Kiri") as guest,
    ):
        yield host, guest


async def new_match(host: Bot, guest: Bot, rules: lobby.Rules) -> SignedContract:
    room = await host.lobby.create_room(rules, is_public=False, leave_other=True)
    contract = await guest.lobby.join_room(room.code, leave_other=True)
    assert (await host.lobby.wait_for_contract(room.code)).token == contract.token
    return contract


async def play(
    bot: Bot,
    contract: SignedContract,
    door: Recorder,
    player: Player,
    observe: Callable[[View], None] = lambda view: None,
) -> tuple[MatchEnd, ranking.MatchResult | None]:
    outbox = sit_down(bot.home, contract, bot.account.key)
    end = await play_match(outbox, bot.account.key, door, player, observe=observe)
    return end, await hand_in(outbox, bot.ranking)


class Killer:
    """Kills what is on its list, in seeded order and after seeded numbers of further steps, and starts it again."""

    def __init__(self, stack: Stack, names: list[str], *, seed: int) -> None:
        rng = random.Random(seed)
        rng.shuffle(names)
        self._plan = [(rng.randint(2, 7), name) for name in names]
        self._stack, self._steps, self._news = stack, 0, asyncio.Event()
        self.killed: list[str] = []

    def see(self, view: View) -> None:
        """Count a step of one seat."""
        self._steps += 1
        self._news.set()

    async def run(self) -> None:
        for gap, name in self._plan:
            step = self._steps + gap
            while self._steps < step:
                self._news.clear()
                await self._news.wait()
            self._stack.kill(name)
            self.killed.append(name)
            await self._stack.start(name)


async def test_relay_and_stores_killed_at_a_dozen_points(stack: Stack, tmp_path: Path) -> None:
    """One seat plays over each door; what each sent the other got, each number once; the result is rated."""
    killer = Killer(stack, ["match"] * 9 + ["valkey", "postgres", "valkey"], seed=20)
    async with two_bots(stack, tmp_path) as bots, asyncio.timeout(LIMIT_S):
        killing = asyncio.create_task(killer.run())
        await play_rated(stack, bots, killer)
        while not killing.done():  # the cards gave a short match
            await play_rated(stack, bots, killer)
        await killing
    assert len(killer.killed) == 12


async def play_rated(stack: Stack, bots: tuple[Bot, Bot], killer: Killer) -> None:
    doors = Recorder(stack.plan.websocket_url), Recorder(stack.plan.grpc_url)
    contract = await new_match(*bots, lobby.Rules(preset="house", rounds=6))
    (first, receipt), (second, other) = await asyncio.gather(
        play(bots[0], contract, doors[0], SimpleBot(1), killer.see),
        play(bots[1], contract, doors[1], SimpleBot(2)),
    )
    assert first.outcome == second.outcome == match.OUTCOME_FINISHED
    assert first.result == second.result
    assert receipt == other
    assert receipt is not None
    assert receipt.is_rated
    check_every_envelope_once(*doors)
    assert await recorded(stack, contract.match_id) == f"finished|{len(doors[0].sent) + len(doors[1].sent)}"


def check_every_envelope_once(*doors: Recorder) -> None:
    numbers = sorted(number for door in doors for number in door.sent)
    assert numbers == list(range(len(numbers)))
    for door, peer in (doors, doors[::-1]):
        assert all(len(versions) == 1 for versions in door.sent.values())
        assert door.sent == peer.received


async def recorded(stack: Stack, match_id: str) -> str:
    """The relay's own record, which may be written a moment after the end."""
    for _ in range(300):
        row = stack.postgres.execute(
            f"SELECT outcome, counter FROM match.ended_match WHERE match_id = '{match_id}'"
        ).strip()
        if row:
            return row
        await asyncio.sleep(0.1)
    raise AssertionError("the relay recorded nothing")


class ResignsAtOnce:
    async def choose(self, view: View) -> Resign:
        return Resign()


async def test_sign_in_and_rooms_survive_their_services(stack: Stack, tmp_path: Path) -> None:
    """A room opened before a crash of auth and lobby is joined after it, with sessions renewed by the new auth."""
    async with two_bots(stack, tmp_path) as (host, guest), asyncio.timeout(LIMIT_S):
        room = await host.lobby.create_room(
            lobby.Rules(preset="house", rounds=6), is_public=False, password="tsuki", leave_other=True
        )
        waiting = asyncio.create_task(host.lobby.wait_for_contract(room.code))
        for name in ("auth", "lobby", "gateway", "ranking"):
            stack.kill(name)
        await asyncio.gather(*(stack.start(name) for name in ("auth", "lobby", "gateway", "ranking")))

        async with ConnectClient(stack.plan.gateway_url) as client:
            old = guest.home.load("session")
            later = Account(client, Home(tmp_path / "kiri"), clock=lambda: time.time() + 850)
            contract = await Lobby(client, later).join_room(room.code, password="tsuki", leave_other=True)
            new = guest.home.load("session")
        assert old is not None
        assert new is not None
        assert new["refresh_token"] != old["refresh_token"]
        assert (await waiting).token == contract.token

        doors = Recorder(stack.plan.websocket_url), Recorder(stack.plan.grpc_url)
        (end, receipt), (other, _) = await asyncio.gather(
            play(host, contract, doors[0], ResignsAtOnce()), play(guest, contract, doors[1], ResignsAtOnce())
        )
        assert end.outcome == other.outcome == match.OUTCOME_RESIGNED
        assert receipt is not None
        assert await recorded(stack, contract.match_id) == f"resigned|{len(doors[0].sent) + len(doors[1].sent)}"


def start_client(stack: Stack, home: Path, log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    environ = {
        **os.environ,
        "KOIKOI_GATEWAY": stack.plan.gateway_url,
        "KOIKOI_HOME": str(home),
        "KOIKOI_RELAY": stack.plan.websocket_url if home.name == "matsu" else stack.plan.grpc_url,
    }
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "koikoi_sdk.cli", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environ,
            cwd=ROOT,
        )


async def wait_for(what: Callable[[], object], process: subprocess.Popen[bytes] | None = None) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not what():
            assert process is None or process.poll() is None, "the client has ended"
            await asyncio.sleep(0.01)


async def test_clients_killed_are_resumed_to_the_end(stack: Stack, tmp_path: Path) -> None:
    """`koikoi bot` is killed with -9 after seeded numbers of writes; `koikoi resume --bot` goes on from the disk."""
    rng = random.Random(7)
    homes = tmp_path / "matsu", tmp_path / "kiri"
    logs = tmp_path / "host.log", tmp_path / "guest.log"
    # Accounts of their own: those of the tests before may still be taken for busy with a match on another device.
    async with signed_in_bot(stack.plan, homes[0], "Sugi"), signed_in_bot(stack.plan, homes[1], "Hinoki"):
        pass
    clients = [
        start_client(stack, homes[0], logs[0], "bot", "--preset", "boardgameland", "--rounds", "3", "--unlisted")
    ]
    try:
        await wait_for(lambda: b"koikoi join" in logs[0].read_bytes(), clients[0])
        code = re.search(r"koikoi join (\w+)", logs[0].read_text())
        assert code is not None
        clients.append(start_client(stack, homes[1], logs[1], "bot", "--join", code[1]))
        # In all at most 37: three rounds need at least 69, so the match cannot end before the last kill.
        for victim, writes in [(0, 2), (1, rng.randint(3, 10)), (0, rng.randint(5, 15)), (1, rng.randint(3, 10))]:
            await watch_writes(homes[victim], writes, clients[victim])
            clients[victim].send_signal(signal.SIGKILL)
            clients[victim].wait()
            clients[victim] = start_client(stack, homes[victim], logs[victim], "resume", "--bot")
        await wait_for(lambda: all(client.poll() is not None for client in clients))
    finally:
        for client in clients:
            client.kill()
            client.wait()
    for client, log, home in zip(clients, logs, homes, strict=True):
        text = log.read_text()
        assert client.returncode == 0, text
        assert "outcome: finished" in text
        assert "recorded after 3 rounds" in text
        assert not Outbox.stored(home / "matches")
    results = {re.findall(r"recorded after .*", log.read_text())[-1] for log in logs}
    assert len(results) == 1


async def watch_writes(home: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a client has replaced its state on disk so many times."""
    await wait_for(lambda: (home / "matches").is_dir() and Outbox.stored(home / "matches"), process)
    state, seen = Outbox.stored(home / "matches")[0].directory / "state", set[int]()

    def has_written() -> bool:
        seen.add(state.stat().st_mtime_ns)
        return len(seen) > count

    await wait_for(has_written, process)
