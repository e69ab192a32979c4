"""The gateway in this process before backends that answer as a test tells them to."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import grpc
import pytest

from services.gateway.app import build
from services.gateway.methods import Method, public_methods
from services.kit.app import App
from services.kit.grpc_server import client_address, start_server
from services.kit.health import Health
from services.kit.metrics import Metrics
from services.kit.settings import LOOPBACK
from tests.harness import FakeClock
from tests.harness.stack import running_stack
from tests.integration.gateway import echo
from tools.stack import Stack

BACKENDS = ("auth", "lobby", "match", "ranking")
METHODS = public_methods() | public_methods({"match": echo.FILE})
"""The real ones, and a service of our own behind match's address that streams whatever the real ones do."""


@dataclass
class Call:
    """One call that reached a backend."""

    path: str
    content: bytes
    metadata: dict[str, str]
    address: str
    time_remaining: float


@dataclass
class Script:
    """What backends do: `answers` and `streams` by path, else an empty message or stream."""

    answers: dict[str, Callable[[Any], Awaitable[bytes]]] = field(default_factory=dict)
    streams: dict[str, Callable[[Any], AsyncIterator[bytes]]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)

    def handler(self, method: Method) -> grpc.RpcMethodHandler:
        def note(content, context):
            metadata = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
            self.calls.append(Call(method.path, content, metadata, client_address(), context.time_remaining()))
            return self.calls[-1]

        async def answer(content, context):
            call = note(content, context)
            return await self.answers[method.path](call) if method.path in self.answers else b""

        async def stream(content, context):
            call = note(content, context)
            if method.path in self.streams:
                async for message in self.streams[method.path](call):
                    yield message

        if method.is_streaming:
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(answer)


@asynccontextmanager
async def serve_backend(name: str, script: Script, address: str = "127.0.0.1:0") -> AsyncIterator[int]:
    """Serve every public method of one service through kit's own server, so errors are the real ones."""
    handlers: dict[str, dict[str, Any]] = {}
    names = []
    for path, method in METHODS.items():
        if method.backend == name:
            service = path.split("/")[1]
            handlers.setdefault(service, {})[method.name] = script.handler(method)
            names.append(method.name)

    def register(server: grpc.aio.Server) -> None:
        generic = [grpc.method_handlers_generic_handler(service, methods) for service, methods in handlers.items()]
        server.add_generic_rpc_handlers(tuple(generic))

    async with start_server(
        address=address,
        services=[register],
        health=Health(),
        metrics=Metrics(name),
        verifier=None,
        anonymous=names,
        trusted_proxies=LOOPBACK,
        grace_s=0.1,
    ) as port:
        yield port


@dataclass
class Bench:
    """A running gateway, and what a test needs around it."""

    app: App
    session: aiohttp.ClientSession
    script: Script
    clock: FakeClock
    ports: dict[str, int]
    stops: dict[str, AsyncExitStack]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.app.ports['http']}"

    async def stop(self, backend: str) -> None:
        await self.stops[backend].aclose()

    async def restart(self, backend: str) -> None:
        address = f"127.0.0.1:{self.ports[backend]}"
        await self.stops[backend].enter_async_context(serve_backend(backend, self.script, address))

    async def post(self, path: str, body: Any = b"{}", **headers: str) -> "Answer":
        """Post a body; header names are written with underscores."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"Content-Type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        return await self.send("POST", path, data=data, headers=named)

    async def send(self, verb: str, path: str, **how: Any) -> "Answer":
        async with self.session.request(verb, self.url + path, allow_redirects=False, **how) as response:
            return Answer(response.status, dict(response.headers), await response.read())

    async def metrics(self) -> str:
        """Give what Prometheus scrapes."""
        async with self.session.get(f"http://127.0.0.1:{self.app.ports['metrics']}/metrics") as response:
            return await response.text()

    async def wait_for_streams(self, count: int) -> None:
        """Wait until so many streams are open."""
        async with asyncio.timeout(5):
            while f"\nkoikoi_gateway_open_streams {count}.0\n" not in await self.metrics():
                await asyncio.sleep(0.01)

    async def raw(self, data: bytes, *, leaves: bool = True) -> bytes:
        """Write bytes to the door, by default say no more, and read until it closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.app.ports["http"])
        writer.write(data)
        await writer.drain()
        if leaves:
            writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return answer


@dataclass
class Answer:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["Content-Type"].startswith("application/json"), self.body
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return self.json["code"]

    def detail(self, kind: str) -> Any:
        """Give the readable form of a detail, without the trace's id, which is never the same."""
        found = next(detail["debug"] for detail in self.json["details"] if detail["type"] == f"google.rpc.{kind}")
        found.get("metadata", {}).pop("trace_id", None)
        return found


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with bench_with() as made:
        yield made


@asynccontextmanager
async def bench_with(**settings: str) -> AsyncIterator[Bench]:
    script, clock, ports, stops = Script(), FakeClock(), {}, {}
    async with AsyncExitStack() as stack:
        for name in BACKENDS:
            stops[name] = await stack.enter_async_context(AsyncExitStack())
            ports[name] = await stops[name].enter_async_context(serve_backend(name, script))
        environ = {f"KOIKOI_GATEWAY_{name.upper()}_TARGET": f"127.0.0.1:{port}" for name, port in ports.items()}
        environ |= {"KOIKOI_GATEWAY_HTTP_ADDRESS": "127.0.0.1:0", "KOIKOI_GATEWAY_METRICS_ADDRESS": "127.0.0.1:0"}
        environ |= {f"KOIKOI_GATEWAY_{name.upper()}": value for name, value in settings.items()}
        app = await stack.enter_async_context(build(environ, clock=clock, methods=METHODS))
        session = await stack.enter_async_context(
            aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))
        )
        yield Bench(app, session, script, clock, ports, stops)


@pytest.fixture(scope="session")
def running() -> Iterator[Stack]:
    """All services as their own processes, with real stores and the local OpenID provider."""
    with running_stack() as stack:
        yield stack
