"""Runs one service process: settings, signals, an orderly end.

SIGTERM or SIGINT: readiness fails, the drains run (tell streams "come back"), then everything that `build` opened is
closed in reverse, within the grace time. A second signal ends the process at once.
"""

import asyncio
import os
import resource
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import uvloop

from services.kit import log, trace
from services.kit.health import Health
from services.kit.settings import SettingsError

__all__ = ["App", "end_task", "run", "start_task"]

_OPEN_FILES = 65_536


@dataclass
class App:
    """A running service.

    Args:
        name: For example `match`.
        health: What probes are told.
        ports: The bound ports by use: `grpc`, `metrics`, `websocket`, `http`.
        drains: Run in order when the process was told to end, before anything is closed.
        grace_s: How long drains and closing may take in all.
    """

    name: str
    health: Health
    ports: dict[str, int] = field(default_factory=dict)
    drains: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    grace_s: float = 15.0

    async def begin_drain(self) -> None:
        """Fail readiness, then tell everybody who is connected to go elsewhere."""
        self.health.draining = True
        for drain in self.drains:
            await drain()


def start_task(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Do background work until the stack is left. Work is meant to outlive its faults; a death is logged."""
    task = asyncio.get_running_loop().create_task(work)
    task.add_done_callback(_note_death)
    stack.push_async_callback(end_task, task)


async def end_task(task: "asyncio.Task[Any]") -> None:
    """Cancel a task until it is over, for a library may swallow one cancellation; how it ended does not count."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.5)
    if not task.cancelled():
        task.exception()


def _note_death(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.get().error("task.died", error=type(error).__name__, trace=traceback.format_tb(error.__traceback__))


Build = Callable[[Mapping[str, str]], AbstractAsyncContextManager[App]]
Command = Callable[[Mapping[str, str]], Awaitable[None]]


def run(name: str, build: Build, commands: Mapping[str, Command] | None = None) -> None:
    """Run a service until a signal, or one of its commands (`python -m services.match migrate`).

    Exits with 2 and one sentence on stderr when a setting is bad, with 1 when closing took longer than the grace time.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold keys
    _allow_connections()
    try:
        log.configure(name)
        with trace.exporting(name):
            in_time = uvloop.run(_work(name, build, commands or {}))
    except SettingsError as error:
        sys.exit(_say(str(error), 2))
    except OSError as error:
        sys.exit(_say(f"{name} cannot start: {error}", 1))
    if not in_time:
        sys.exit(_say(f"{name} did not close within the grace time.", 1))


async def _work(name: str, build: Build, commands: Mapping[str, Command]) -> bool:
    if len(sys.argv) == 1:
        return await _serve(build)
    if len(sys.argv) == 2 and sys.argv[1] in commands:
        await commands[sys.argv[1]](os.environ)
        return True
    raise SettingsError(f"usage: python -m services.{name} [{' | '.join(commands)}]")


async def _serve(build: Build) -> bool:
    """Serve until a signal; says whether closing was done within the grace time."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    context = build(os.environ)
    app = await context.__aenter__()  # not `async with`: leaving has a time limit
    log.get().info(f"{app.name}.started", ports=app.ports)
    await stop.wait()
    log.get().info(f"{app.name}.draining")
    try:
        async with asyncio.timeout(app.grace_s):
            await app.begin_drain()
            await context.__aexit__(None, None, None)
    except TimeoutError:
        return False
    log.get().info(f"{app.name}.stopped")
    return True


def _allow_connections() -> None:
    """Use the open files that the system permits; the usual 1024 are a thousand idle connections of one stranger."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _say(sentence: str, status: int) -> int:
    print(sentence, file=sys.stderr)
    return status
