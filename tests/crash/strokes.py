"""Lets the strokes of a scenario fall, and starts again what they killed."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Protocol

from tests.crash.scenario import Fault, Phase, Stroke
from tools.stack import Stack

_PROCESSES = {
    Fault.MATCH: "match",
    Fault.LOBBY: "lobby",
    Fault.AUTH: "auth",
    Fault.RANKING: "ranking",
    Fault.GATEWAY: "gateway",
    Fault.POSTGRES: "postgres",
}
CLIENTS = {Fault.CLIENT_A: "host", Fault.CLIENT_B: "guest"}


class Mortal(Protocol):
    """A device that can be killed and comes back by itself."""

    def die(self, pause_s: float) -> None: ...

    async def is_alive_again(self) -> None: ...


class Striker:
    """Is told every point that a device passes; strikes where the scenario says so, one thing at a time."""

    def __init__(self, stack: Stack, strokes: list[Stroke]) -> None:
        self._stack, self._pending = stack, list(strokes)
        self._passed: Counter[tuple[Phase, str]] = Counter()
        self._sizes: list[int] = []
        self._mending: asyncio.Task[None] | None = None
        self._began = time.monotonic()
        self.fallen: list[Stroke] = []
        self.clients: dict[str, Mortal] = {}

    @property
    def is_done(self) -> bool:
        return not self._pending

    @property
    def awaits_play(self) -> bool:
        """Tell whether a stroke waits for what a resignation would leave out."""
        ends = (Phase.SIGNING, Phase.CLOSE, Phase.SUBMIT)
        return any(stroke.phase not in ends for stroke in self._pending)

    @property
    def _is_mending(self) -> bool:
        return self._mending is not None and not self._mending.done()

    async def settle(self) -> None:
        """Wait until everything runs again."""
        while self._mending is not None and not self._mending.done():
            await asyncio.shield(self._mending)

    async def pass_point(self, phase: Phase, stage: str) -> None:
        """Note a point: `before` a call or envelope leaves, `after` it left or its answer came."""
        self._passed[phase, stage] += 1
        self._note_size()
        while (stroke := self._due(phase, stage)) is not None and self._is_mending:  # one thing at a time
            await self.settle()
        if stroke is not None:
            self._pending.remove(stroke)
            self.fallen.append(stroke)
            print(f"{time.monotonic() - self._began:6.2f} s: {stroke.fault.value}, {stroke.stage} {phase.value}")
            if stroke.stage == "during":
                self._mending = asyncio.create_task(self._strike_later(stroke))
            else:
                self._strike(stroke)
        await asyncio.sleep(0)  # a device that was struck does no more

    def _due(self, phase: Phase, stage: str) -> Stroke | None:
        for stroke in self._pending:
            wanted = "before" if stroke.stage == "during" else stroke.stage
            if stroke.phase is phase and wanted == stage and self._passed[phase, stage] >= stroke.moment:
                return stroke
        return None

    async def _strike_later(self, stroke: Stroke) -> None:
        await asyncio.sleep(stroke.delay_s)
        self._strike(stroke)

    def _strike(self, stroke: Stroke) -> None:
        """Kill at once; what comes after the kill takes its time."""
        if stroke.fault in CLIENTS:
            client = self.clients[CLIENTS[stroke.fault]]
            client.die(stroke.pause_s)
            self._mending = asyncio.create_task(client.is_alive_again())
            return
        name = _PROCESSES.get(stroke.fault, "valkey")
        if stroke.is_graceful and name not in ("valkey", "postgres"):
            self._mending = asyncio.create_task(self._restart(name, stroke.pause_s))
            return
        self._stack.kill(name)
        if stroke.fault is Fault.REDIS_FALLS_BACK:
            self._fall_back(stroke.lag)
        elif stroke.fault is Fault.REDIS_FORGETS:
            shutil.rmtree(self._valkey)
            self._sizes.clear()
        self._mending = asyncio.create_task(self._start(name, stroke.pause_s))

    async def _restart(self, name: str, pause_s: float) -> None:
        await self._stack.stop(name)
        await self._start(name, pause_s)

    async def _start(self, name: str, pause_s: float) -> None:
        await asyncio.sleep(pause_s)
        await self._stack.start(name)

    @property
    def _valkey(self) -> Path:
        return self._stack.directory / "valkey"

    def _tail(self) -> Path | None:
        """Give the append-only file that is being written."""
        return max(self._valkey.glob("appendonlydir/*.incr.aof"), default=None)

    def _note_size(self) -> None:
        if (tail := self._tail()) is not None and (size := tail.stat().st_size) not in self._sizes[-1:]:
            self._sizes.append(size)

    def _fall_back(self, lag: int) -> None:
        """Make the store what an older copy of it holds: its append-only file as long as it was `lag` points ago."""
        tail = self._tail()
        assert tail is not None, "the store keeps no append-only file"
        self._sizes = self._sizes[: -lag - 1] or self._sizes[:1]
        with tail.open("r+b") as file:
            file.truncate(self._sizes[-1])
