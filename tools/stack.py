"""Everything on one machine: stores, local OpenID provider, services. What `make run`, `make demo` and e2e tests start.

    async with Stack(directory, ports=free_ports()) as stack:
        stack.plan.gateway_url
        stack.kill("match"); await stack.start("match")

Every process dies with this one, even on kill -9. Leaving the block stops them in the reverse order of their start.
"""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

import aiohttp

from services.kit.postgres import migrate
from tools.child import Child, last_lines, turn_over
from tools.embedded import SERVICES_WITH_SCHEMA, EmbeddedError, Lock, Postgres, Valkey
from tools.plan import SERVICES, Plan, make_plan

__all__ = ["Stack", "StackError"]

ROOT = Path(__file__).parents[1]
_READY_LIMIT_S = 60.0
_STOP_LIMIT_S = 20.0
_STORE_PAUSE_S = 5.0
_MACHINE = (
    "PATH",
    "LD_LIBRARY_PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "KOIKOI_LOG_LEVEL",
    "VIRTUAL_ENV",
    "COVERAGE_PROCESS_START",
)
_TRACES = ("KOIKOI_TRACE_", "OTEL_")
_THROW_AWAY = {"KOIKOI_LOBBY_COOL_DOWN_S": "0"}  # players of tests and demos leave matches on purpose
"""Settings of traces are the same for every process."""


class StackError(Exception):
    """A process does not start; the text is one sentence and the end of its log."""


class Stack:
    """The running system.

    Args:
        directory: Data, keys, sockets and logs; used again after a restart. One stack per directory at a time.
        ports: By setting name, see plan.PORTS; the ports of `make run` when None.
        environ: Where `KOIKOI_*` settings of the user come from.
        settings: More settings for processes, by name (`KOIKOI_MATCH_...`).
        durable: False for tests: stores keep nothing over a power cut, and nobody has to cool down.
        say: Gets a line about each step.
    """

    def __init__(
        self,
        directory: Path,
        *,
        ports: Mapping[str, int] | None = None,
        environ: Mapping[str, str] = os.environ,
        settings: Mapping[str, str] | None = None,
        durable: bool = True,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.directory = _own_directory(directory)
        self.logs = self.directory / "log"
        self.postgres = Postgres(self.directory, durable=durable)
        self.valkey = Valkey(self.directory, durable=durable)
        self._environ = {**environ, **({} if durable else _THROW_AWAY), **(settings or {})}
        self._ports, self._say = ports, say
        self._plan: Plan | None = None
        self._children: dict[str, Child] = {}
        self._wanted: set[str] = set()
        self._watcher: asyncio.Task[None] | None = None
        self._lock: Lock | None = None
        self._next_store_try = 0.0

    @property
    def plan(self) -> Plan:
        """Where everything listens."""
        if self._plan is None:
            self._lock = self._lock or Lock(self.directory)
            self._plan = make_plan(
                self.directory, self._environ, ports=self._ports, token_secret=_kept_secret(self.directory)
            )
        return self._plan

    async def __aenter__(self) -> Self:
        """Start everything and wait until it is ready."""
        plan = self.plan
        try:
            self._start_stores()
            await self._migrate()
            for name in ("provider", *SERVICES):
                self._launch(name)
            self._say("waiting for " + ", ".join(SERVICES))
            await asyncio.gather(self._wait_provider(plan.provider_url), *(self.wait_ready(name) for name in SERVICES))
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_exc: object) -> None:
        """Stop everything."""
        await self.close()

    async def close(self) -> None:
        """Stop everything in the reverse order of its start; safe to repeat."""
        if self._watcher is not None:
            self._watcher.cancel()
        self._wanted.clear()
        for group in (("gateway",), ("ranking", "match", "lobby", "auth"), ("provider",)):
            await asyncio.gather(*(self._end(name, signal.SIGTERM) for name in group))
        self.valkey.stop()
        self.postgres.stop()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def start(self, name: str) -> None:
        """Start a process that was stopped or killed, and wait until it is ready."""
        if name == "postgres":
            self.postgres.start()
        elif name == "valkey":
            self.valkey.start()
        else:
            self._launch(name)
            await (self._wait_provider(self.plan.provider_url) if name == "provider" else self.wait_ready(name))

    async def stop(self, name: str) -> None:
        """Stop one process in good order."""
        self._wanted.discard(name)
        if name in ("postgres", "valkey"):
            (self.postgres if name == "postgres" else self.valkey).stop()
        else:
            await self._end(name, signal.SIGTERM)

    def kill(self, name: str) -> None:
        """End one process with kill -9 (Postgres: an immediate shutdown)."""
        self._wanted.discard(name)
        if name in ("postgres", "valkey"):
            (self.postgres if name == "postgres" else self.valkey).kill()
        else:
            self._children[name].kill()

    def pid(self, name: str) -> int:
        """Return the process id of a running process."""
        if name in ("postgres", "valkey"):
            return (self.postgres if name == "postgres" else self.valkey).child.pid
        return self._children[name].pid

    def log(self, name: str) -> Path:
        """Return the file that holds what a process wrote."""
        return self.logs / f"{name}.log"

    def watch(self) -> None:
        """From now on restart what ends by itself, with back-off, and say so; keep logs from growing for ever."""
        self._watcher = asyncio.create_task(self._watch())

    async def wait_ready(self, service: str) -> None:
        """Wait until a service says it is ready.

        Raises:
            StackError: It ended, or is not ready within a minute.
        """
        await self._poll(service, self.plan.probe_url(service))

    async def _wait_provider(self, url: str) -> None:
        await self._poll("provider", f"{url}/.well-known/openid-configuration")

    async def _poll(self, name: str, url: str) -> None:
        deadline = time.monotonic() + _READY_LIMIT_S
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
            while time.monotonic() < deadline:
                if not self._children[name].is_running:
                    raise StackError(f"{name} does not start: {last_lines(self.log(name))}")
                try:
                    async with session.get(url) as response:
                        if response.status == 200:
                            return
                except (aiohttp.ClientError, TimeoutError):
                    pass
                await asyncio.sleep(0.05)
        raise StackError(f"{name} is not ready after {_READY_LIMIT_S:.0f} s: {last_lines(self.log(name))}")

    def _start_stores(self) -> None:
        if set(self.plan.database_urls) >= set(SERVICES_WITH_SCHEMA):
            self._say("Postgres: yours")
        else:
            self._say("starting Postgres")
            self.postgres.start()
        if set(self.plan.redis_urls) >= set(SERVICES_WITH_SCHEMA):
            self._say("Redis: yours")
        else:
            self._say("starting Valkey")
            self.valkey.start()

    async def _migrate(self) -> None:
        self._say("migrating")
        for service in SERVICES_WITH_SCHEMA:
            directory = ROOT / "services" / service / "store" / "sql"
            if directory.is_dir():
                url = self.plan.database_urls.get(service) or self.postgres.url(f"{service}_owner")
                try:
                    applied = await migrate(url, service, directory)
                except OSError as error:
                    raise StackError(str(error)) from None
                for name in applied:
                    self._say(f"  {service}: {name}")

    def _launch(self, name: str) -> None:
        module = "tools.oidc_provider" if name == "provider" else f"services.{name}"
        environ = {key: value for key, value in self._environ.items() if key in _MACHINE or key.startswith(_TRACES)}
        if name in SERVICES_WITH_SCHEMA:
            prefix = f"KOIKOI_{name.upper()}"
            if name not in self.plan.database_urls:
                environ[f"{prefix}_DATABASE_URL"] = self.postgres.url(name)
            environ[f"{prefix}_REDIS_URL"] = self.valkey.url
        environ |= self.plan.settings[name]
        program: list[str | Path] = [sys.executable, "-m", module]
        self._children[name] = Child(name, program, log=self.log(name), environ=environ, directory=ROOT)
        self._wanted.add(name)

    async def _end(self, name: str, number: signal.Signals) -> None:
        child = self._children.get(name)
        if child is None or not child.is_running:
            return
        child.process.send_signal(number)
        deadline = time.monotonic() + _STOP_LIMIT_S
        while child.is_running and time.monotonic() < deadline:  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(0.02)
        child.kill()

    def _restart_stores(self) -> None:
        for name, store in (("postgres", self.postgres), ("valkey", self.valkey)):
            if store.has_ended and time.monotonic() >= self._next_store_try:
                self._say(f"{name} ended by itself; starting it again. See {store.log}")
                try:
                    store.start()
                except (EmbeddedError, OSError) as error:  # a full disk, say: it may have room again later
                    self._next_store_try = time.monotonic() + _STORE_PAUSE_S
                    self._say(str(error))

    async def _watch(self) -> None:
        failures = dict.fromkeys((*SERVICES, "provider"), 0)
        next_try = dict.fromkeys(failures, 0.0)
        while True:
            await asyncio.sleep(0.25)
            now = time.monotonic()
            self._restart_stores()
            for log in self.logs.glob("*.log"):
                turn_over(log)
            for name in sorted(self._wanted):
                if self._children[name].is_running:
                    if now > next_try[name] + 60:
                        failures[name] = 0
                elif next_try[name] <= now:
                    delay_s = min(30.0, 0.5 * 2 ** failures[name])
                    failures[name] += 1
                    next_try[name] = now + delay_s
                    status = self._children[name].process.returncode
                    self._say(f"{name} ended by itself (status {status}); started again. See {self.log(name)}")
                    self._launch(name)


def _own_directory(directory: Path) -> Path:
    """Make the directory, for nobody but us whatever the umask: keys, logs and sockets lie in it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StackError(f"The directory {directory} cannot be made: {error.strerror}.") from None
    if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
        raise StackError(f"The directory {directory} cannot be written to.")
    return directory.resolve()


def _kept_secret(directory: Path) -> str:
    """Return auth's development secret; kept, so that sessions survive a restart. Production refuses its beginning."""
    file = directory / "keys" / "token-secret"
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = file.with_suffix(".draft")
        draft.touch(mode=0o600)
        draft.write_text(f"development-{secrets.token_hex(32)}")
        draft.rename(file)
    return file.read_text()
