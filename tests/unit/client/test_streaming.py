"""Streams of a gateway: whole, broken off, ended with an error, or of another protocol."""

from __future__ import annotations

import json
import struct
from contextlib import aclosing

import pytest
from aiohttp import web
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi_sdk.client.connect import MAX_ANSWER_SIZE, ConnectClient
from koikoi_sdk.client.errors import ServerError, Unreachable
from koikoi_sdk.client.streaming import TYPE

from tests.unit.client.test_connect import Handler, gateway

METHOD = "koikoi.lobby.v1.LobbyService/WatchRoom"
PING = lobby.WatchRoomResponse(ping=lobby.Ping()).SerializeToString()


def frame(content: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(content)) + content


def streaming(body: bytes, *, status: int = 200, content_type: str = TYPE) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        response.content_type = content_type
        await response.prepare(request)
        for start in range(0, len(body), 3):  # never where a message ends
            await response.write(body[start : start + 3])
        return response

    return handle


async def read(client: ConnectClient) -> list[lobby.WatchRoomResponse]:
    messages = client.stream(METHOD, lobby.WatchRoomRequest(code="222222"), lobby.WatchRoomResponse)
    async with aclosing(messages) as opened:  # type: ignore[type-var]
        return [message async for message in opened]


async def test_messages_come_in_order_until_the_end() -> None:
    seen: list[tuple[web.Request, bytes]] = []
    reply = streaming(frame(PING) * 3 + frame(b"{}", 2))

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append((request, await request.read()))
        return await reply(request)

    async with gateway(handle) as client:
        client.access_token = lambda: "token"
        assert [message.HasField("ping") for message in await read(client)] == [True] * 3
    ((request, body),) = seen
    assert request.headers["Content-Type"] == TYPE
    assert request.headers["Authorization"] == "Bearer token"
    assert request.headers["Koikoi-Client-Version"].startswith("koikoi-sdk/")
    assert "Connect-Timeout-Ms" not in request.headers
    assert lobby.WatchRoomRequest.FromString(body[5:]).code == "222222"


async def test_an_error_at_the_end_is_typed() -> None:
    end = json.dumps({"error": {"code": "unavailable", "message": "Going away."}}).encode()
    async with gateway(streaming(frame(PING) + frame(end, 2))) as client:
        with pytest.raises(ServerError, match="Going away") as caught:
            await read(client)
        assert (caught.value.code, type(caught.value)) == ("unavailable", ServerError)


async def test_an_error_before_the_stream_is_typed() -> None:
    body = json.dumps({"code": "resource_exhausted", "message": "Full."}).encode()
    async with gateway(streaming(body, status=429, content_type="application/json")) as client:
        with pytest.raises(ServerError, match="Full") as caught:
            await read(client)
        assert caught.value.code == "resource_exhausted"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        frame(PING),
        frame(PING)[:-1],
        frame(PING) + b"\0\0",
        frame(PING, 1) + frame(b"{}", 2),
        frame(b"\xff\xff") + frame(b"{}", 2),
        frame(b"no JSON", 2),
        frame(b"[]", 2),
        frame(b"7", 2),
        struct.pack(">BI", 0, MAX_ANSWER_SIZE + 1),
    ],
)
async def test_what_is_no_whole_stream_may_be_tried_again(body: bytes) -> None:
    async with gateway(streaming(body)) as client:
        with pytest.raises(Unreachable):
            await read(client)


async def test_another_protocol_is_no_stream() -> None:
    async with gateway(streaming(b"<html>", content_type="text/html")) as client:
        with pytest.raises(Unreachable):
            await read(client)
    async with ConnectClient("http://127.0.0.1:1") as client:
        with pytest.raises(Unreachable):
            await read(client)
