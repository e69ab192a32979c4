"""Calls to a gateway that answers wrongly, late, too much or not at all."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from koikoi.auth.v1 import auth_service_pb2 as auth
from koikoi_sdk.client import connect
from koikoi_sdk.client.backoff import Backoff
from koikoi_sdk.client.connect import ConnectClient, read_error
from koikoi_sdk.client.errors import ServerError, Unreachable

METHOD = "koikoi.auth.v1.AuthService/BeginSignIn"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def gateway(handler: Handler, *, tries: int = 3, timeout_s: float = 15.0) -> AsyncIterator[ConnectClient]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        async with ConnectClient(f"http://127.0.0.1:{port}/", tries=tries, timeout_s=timeout_s) as client:
            yield client
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """No test waits; the hints of the server are noted."""
    hints: list[float | None] = []

    def next_delay_s(self: Backoff, retry_after_s: float | None = None) -> float:
        self.failures += 1
        hints.append(retry_after_s)
        return 0.0

    monkeypatch.setattr(Backoff, "next_delay_s", next_delay_s)
    return hints


async def begin(client: ConnectClient) -> auth.BeginSignInResponse:
    return await client.call(METHOD, auth.BeginSignInRequest(), auth.BeginSignInResponse)


def answering(body: bytes, status: int = 200, content_type: str = "application/proto") -> Handler:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=body, status=status, content_type=content_type)

    return handle


async def test_call_carries_the_protocol_and_the_token() -> None:
    seen: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(request)
        answer = auth.BeginSignInResponse(nonce="n")
        return web.Response(body=answer.SerializeToString(), content_type="application/proto")

    async with gateway(handle) as client:
        client.access_token = lambda: "token"
        assert (await begin(client)).nonce == "n"
    assert seen[0].path == f"/{METHOD}"
    assert seen[0].headers["Connect-Protocol-Version"] == "1"
    assert seen[0].headers["Connect-Timeout-Ms"] == "15000"
    assert seen[0].headers["Authorization"] == "Bearer token"


async def test_long_answer_in_pieces_is_read_whole() -> None:
    answer = auth.BeginSignInResponse(nonce="n" * 300_000).SerializeToString()

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/proto"})
        await response.prepare(request)
        for start in range(0, len(answer), 10_000):
            await response.write(answer[start : start + 10_000])
        return response

    async with gateway(handle) as client:
        assert len((await begin(client)).nonce) == 300_000


@pytest.mark.parametrize(
    "handler",
    [
        answering(b"<html>", content_type="text/html"),
        answering(b"", content_type="text/html"),
        answering(b"{}", content_type="application/json"),
        answering(b"\xff\xff\xff"),
        answering(bytes(connect.MAX_ANSWER_SIZE + 1)),
    ],
)
async def test_what_is_no_answer(handler: Handler) -> None:
    async with gateway(handler) as client:
        with pytest.raises(Unreachable):
            await begin(client)


async def test_redirects_are_not_followed() -> None:
    async def handle(request: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:9/")

    async with gateway(handle) as client:
        with pytest.raises(ServerError, match="HTTP status 302") as error:
            await begin(client)
    assert error.value.code == "unknown"


async def test_silent_gateway() -> None:
    async def handle(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with gateway(handle) as client:
        with pytest.raises(Unreachable, match="cannot reach"):
            await begin(client)


async def test_unavailable_is_tried_again_with_the_hint(waits: list[float | None]) -> None:
    retry = RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000))
    bodies = [connect_error("unavailable", retry), connect_error("unavailable", retry)]

    async def handle(request: web.Request) -> web.Response:
        if bodies:
            return web.Response(body=bodies.pop(), status=503, content_type="application/json")
        return web.Response(body=b"", content_type="application/proto")

    async with gateway(handle) as client:
        await begin(client)
    assert waits == [1.5, 1.5]


@pytest.mark.parametrize(("code", "delay_s"), [("resource_exhausted", 1), ("internal", 0), ("unavailable", 3600)])
async def test_what_is_told_at_once(code: str, delay_s: int, waits: list[float | None]) -> None:
    body = connect_error(code, RetryInfo(retry_delay=Duration(seconds=delay_s)))
    async with gateway(answering(body, 503, "application/json")) as client:
        with pytest.raises(ServerError) as error:
            await begin(client)
    assert error.value.code == code
    assert error.value.retry_after_s == delay_s
    assert waits == []


async def test_tries_are_counted(waits: list[float | None]) -> None:
    async with gateway(answering(connect_error("unavailable"), 503, "application/json"), tries=5) as client:
        with pytest.raises(ServerError):
            await begin(client)
    assert len(waits) == 4


async def test_text() -> None:
    async with gateway(answering("キー".encode())) as client:
        assert await client.get_text("/jwks.json") == "キー"
    async with gateway(answering(b"\xff")) as client:
        with pytest.raises(Unreachable):
            await client.get_text("/jwks.json")
    async with gateway(answering(b"no", 404)) as client:
        with pytest.raises(ServerError, match="404"):
            await client.get_text("/jwks.json")


def connect_error(code: str, *details: object) -> bytes:
    packed = [
        {"type": type(detail).DESCRIPTOR.full_name, "value": _encode(detail.SerializeToString())}  # type: ignore[attr-defined]
        for detail in details
    ]
    return json.dumps({"code": code, "message": "m", "details": packed}).encode()


def _encode(value: bytes) -> str:
    return base64.b64encode(value).rstrip(b"=").decode()


def test_typed_error_is_rebuilt() -> None:
    info = ErrorInfo(reason="ROOM_FULL", domain="lobby.koikoi", metadata={"limit": "2"})
    request = BadRequest(field_violations=[BadRequest.FieldViolation(field="code")])
    error = read_error(
        409, connect_error("failed_precondition", info, request, RetryInfo(retry_delay=Duration(seconds=2)))
    )
    assert (error.code, error.reason, error.metadata, error.retry_after_s) == (
        "failed_precondition", "ROOM_FULL", {"limit": "2", "field": "code"}, 2.0
    )  # fmt: skip
    assert str(error) == "m (ROOM_FULL)"


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"null", b"[]", b"5", b'"text"', b"{}", b'{"message": "m"}', b"\xff\xfe", b"[" * 100_000,
        b"<html>502</html>",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("status", "code"), [(502, "unavailable"), (429, "unavailable"), (500, "unknown")])
def test_malformed_error(body: bytes, status: int, code: str) -> None:
    error = read_error(status, body)
    assert error.code == code
    assert str(status) in str(error)


@pytest.mark.parametrize(
    "detail",
    [
        5, None, "text", [], {}, {"type": "google.rpc.ErrorInfo"}, {"type": "google.rpc.ErrorInfo", "value": "!"},
        {"type": "google.rpc.ErrorInfo", "value": "////"}, {"type": 5, "value": 5}, {"type": "x", "value": "é"},
        {"type": "google.rpc.RetryInfo", "value": "/w"},
    ],
)  # fmt: skip
def test_malformed_detail_takes_nothing_from_the_others(detail: object) -> None:
    good = {"type": "google.rpc.ErrorInfo", "value": _encode(ErrorInfo(reason="R").SerializeToString())}
    body = json.dumps({"code": "aborted", "message": "m", "details": [detail, good]}).encode()
    assert (read_error(409, body).code, read_error(409, body).reason) == ("aborted", "R")


@pytest.mark.parametrize("details", [None, 5, "text", {"type": "x"}])
def test_details_that_are_no_list(details: object) -> None:
    assert read_error(400, json.dumps({"code": "aborted", "details": details}).encode()).code == "aborted"
