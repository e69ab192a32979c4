"""Both doors seen from the client: close codes, things that are no frames, servers of another kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import grpc
import pytest
from aiohttp import WSCloseCode, web
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from koikoi.match.v1 import match_service_pb2 as match
from koikoi.match.v1 import match_service_pb2_grpc as stubs
from koikoi_sdk.client.errors import LocalProtocolError, RelayClosed
from koikoi_sdk.client.transport import Connection, open_transport
from koikoi_sdk.client.transport.websocket import read_close

FRAME = match.ServerFrame(challenge=match.Challenge(challenge=b"c" * 32))
Serve = Callable[[web.WebSocketResponse], Awaitable[object]]


@pytest.mark.parametrize(
    ("url", "door"),
    [
        ("ws://Relay.Test:8090", "relay.test:8090"),
        ("wss://relay.test/", "relay.test"),
        ("grpc://RELAY.test:50053", "relay.test:50053"),
        ("grpcs://relay.test", "relay.test"),
    ],
)
def test_door_name(url: str, door: str) -> None:
    assert open_transport(url).door == door


@pytest.mark.parametrize("url", ["", "relay", "127.0.0.1:8090", "http://relay.test", "ws://", "grpc:///x"])
def test_address_that_is_no_door(url: str) -> None:
    with pytest.raises(LocalProtocolError):
        open_transport(url)


@asynccontextmanager
async def websocket(serve: Serve, protocols: tuple[str, ...] = ("koikoi.match.v1",)) -> AsyncIterator[Connection]:
    async def handle(request: web.Request) -> web.WebSocketResponse:
        assert request.path == "/m/m1"
        socket = web.WebSocketResponse(protocols=protocols, compress=False)
        await socket.prepare(request)
        await serve(socket)
        return socket

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        connection = await open_transport(f"ws://127.0.0.1:{runner.addresses[0][1]}").connect("m1")
        yield connection
        await connection.close()
        await connection.close()
    finally:
        await runner.cleanup()


async def test_frames_pass() -> None:
    received: list[bytes] = []

    async def serve(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(FRAME.SerializeToString())
        received.append(await socket.receive_bytes())

    async with websocket(serve) as connection:
        assert await connection.receive() == FRAME
        await connection.send(match.ClientFrame(receipt_request=match.ReceiptRequest()))
        with pytest.raises(RelayClosed):
            await connection.receive()
    assert received == [match.ClientFrame(receipt_request=match.ReceiptRequest()).SerializeToString()]


@pytest.mark.parametrize(
    ("code", "text", "reason", "retry_after_s", "is_retryable"),
    [
        (4003, b"DRAINING retry_after_ms=250", "DRAINING", 0.25, True),
        (4004, b"STORE_UNAVAILABLE", "STORE_UNAVAILABLE", None, True),
        (4500, b"MATCH_CLOSED", "MATCH_CLOSED", None, False),
        (4505, b"SUPERSEDED", "SUPERSEDED", None, False),
        (WSCloseCode.GOING_AWAY, b"", "", None, True),
        (WSCloseCode.INTERNAL_ERROR, b"INTERNAL 12", "INTERNAL", None, True),
    ],
)
async def test_close_codes(
    code: int, text: bytes, reason: str, retry_after_s: float | None, is_retryable: bool
) -> None:
    async def serve(socket: web.WebSocketResponse) -> None:
        await socket.send_bytes(FRAME.SerializeToString())
        await socket.close(code=code, message=text)

    async with websocket(serve) as connection:
        await asyncio.sleep(0.05)
        await connection.send(match.ClientFrame(close=match.Close()))  # is lost, and hides nothing
        assert await connection.receive() == FRAME
        with pytest.raises(RelayClosed) as closed:
            await connection.receive()
    assert (closed.value.close_code, closed.value.reason) == (code, reason)
    assert (closed.value.retry_after_s, closed.value.is_retryable) == (retry_after_s, is_retryable)


@pytest.mark.parametrize(
    ("text", "delay_s"),
    [("", None), ("X", None), ("X retry_after_ms=", None), ("X retry_after_ms=-5", None),
     ("X retry_after_ms=1e9", None), ("X retry_after_ms=99999999", None), ("X retry_after_ms=1500", 1.5),
     ("X something else", None)],
)  # fmt: skip
def test_hints_in_close_reasons(text: str, delay_s: float | None) -> None:
    assert read_close(4003, text).retry_after_s == delay_s


@pytest.mark.parametrize(
    "serve",
    [
        lambda socket: socket.send_bytes(b"\xff\xff"),
        lambda socket: socket.send_str("hello"),
        lambda socket: socket.send_bytes(bytes(17 * 1024)),
        lambda socket: asyncio.sleep(0, socket._req.transport.abort()),
    ],
    ids=["no frame", "text", "too large", "cut off"],
)
async def test_what_is_no_frame_ends_the_connection(serve: Serve) -> None:
    async with websocket(serve) as connection:
        with pytest.raises(RelayClosed) as closed:
            await connection.receive()
        assert closed.value.is_retryable


async def test_server_that_does_not_speak_the_protocol() -> None:
    async def serve(socket: web.WebSocketResponse) -> None:
        await socket.receive()

    with pytest.raises(RelayClosed, match=r"does not speak koikoi\.match\.v1") as closed:
        async with websocket(serve, protocols=("chat",)):
            pass
    assert closed.value.is_retryable


@pytest.mark.parametrize("scheme", ["ws", "grpc"])
async def test_relay_that_cannot_be_reached(scheme: str, unused_tcp_port: int) -> None:
    with pytest.raises(RelayClosed) as closed:
        connection = await open_transport(f"{scheme}://127.0.0.1:{unused_tcp_port}").connect("m1")
        try:
            await connection.receive()
        finally:
            await connection.close()
    assert closed.value.is_retryable


@pytest.fixture
def unused_tcp_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Servicer(stubs.MatchServiceServicer):
    def __init__(self, *details: object) -> None:
        self._details = details
        self.metadata: list[tuple[str, str]] = []

    async def Relay(self, requests: object, context: grpc.aio.ServicerContext) -> AsyncIterator[match.ServerFrame]:
        self.metadata = [(str(key), str(value)) for key, value in context.invocation_metadata() or ()]
        yield FRAME
        if self._details:
            status = Status(code=grpc.StatusCode.ABORTED.value[0], message="m")
            for detail in self._details:
                packed = detail if isinstance(detail, Any) else Any()
                if packed is not detail:
                    packed.Pack(detail)
                status.details.append(packed)
            await context.abort_with_status(rpc_status.to_status(status))


@asynccontextmanager
async def grpc_door(servicer: stubs.MatchServiceServicer) -> AsyncIterator[Connection]:
    server = grpc.aio.server()
    stubs.add_MatchServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        connection = await open_transport(f"grpc://127.0.0.1:{port}").connect("m1")
        yield connection
        await connection.close()
        await connection.close()
    finally:
        await server.stop(0)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ((), (0, "", None, True)),
        ((ErrorInfo(reason="SUPERSEDED", metadata={"close_code": "4505"}),), (4505, "SUPERSEDED", None, False)),
        (
            (
                ErrorInfo(reason="DRAINING", metadata={"close_code": "4003"}),
                RetryInfo(retry_delay=Duration(nanos=250_000_000)),
            ),
            (4003, "DRAINING", 0.25, True),
        ),
        ((ErrorInfo(reason="ODD", metadata={"close_code": "x"}),), (0, "ODD", None, True)),
        ((ErrorInfo(reason="ODD", metadata={"close_code": "9" * 5000}),), (0, "ODD", None, True)),
        ((RetryInfo(retry_delay=Duration(seconds=1)),), (0, "ABORTED", 1.0, True)),
        ((RetryInfo(retry_delay=Duration(seconds=1 << 62)),), (0, "ABORTED", None, True)),
        ((RetryInfo(retry_delay=Duration(seconds=-1)),), (0, "ABORTED", None, True)),
        ((Any(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff"),), (0, "ABORTED", None, True)),
    ],
)
async def test_grpc_statuses(details: tuple[object, ...], expected: tuple[object, ...]) -> None:
    servicer = Servicer(*details)
    async with grpc_door(servicer) as connection:
        assert await connection.receive() == FRAME
        with pytest.raises(RelayClosed) as closed:
            await connection.receive()
        await connection.send(match.ClientFrame(close=match.Close()))  # is lost, and hides nothing
    found = closed.value
    assert (found.close_code, found.reason, found.retry_after_s, found.is_retryable) == expected
    assert ("koikoi-match-id", "m1") in servicer.metadata


async def test_a_grpc_status_that_is_none() -> None:
    class Broken(stubs.MatchServiceServicer):
        async def Relay(self, requests: object, context: grpc.aio.ServicerContext) -> None:
            context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff"),))
            await context.abort(grpc.StatusCode.UNAVAILABLE, "")

    async with grpc_door(Broken()) as connection:
        with pytest.raises(RelayClosed, match="UNAVAILABLE"):
            await connection.receive()


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    async with (
        grpc_door(Servicer()) as connection,
        websocket(lambda socket: socket.send_bytes(FRAME.SerializeToString())) as other,
    ):
        assert await asyncio.wait_for(connection.receive(), 5) == FRAME
        assert await asyncio.wait_for(other.receive(), 5) == FRAME
