"""The WebSocket door: one binary message per frame, subprotocol koikoi.match.v1, no compression (RFC 6455)."""

from __future__ import annotations

import contextlib
import re
from urllib.parse import urlsplit

import aiohttp
from google.protobuf.message import DecodeError
from koikoi.match.v1 import match_service_pb2 as match

from koikoi_sdk.client.errors import RelayClosed
from koikoi_sdk.client.trace import HEADER, new_traceparent

SUBPROTOCOL = "koikoi.match.v1"
MAX_FRAME_SIZE = 16 * 1024
CONNECT_TIMEOUT_S = 10.0
SILENCE_S = 40.0
"""Seconds without any bytes of the relay (it pings every 25 s) after which a connection counts as broken."""


class WebSocketTransport:
    """Dials ws(s)://host[:port]/m/{match_id}."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self.door = urlsplit(url).netloc.lower()

    async def connect(self, match_id: str) -> WebSocketConnection:
        """Connect for one match."""
        session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=CONNECT_TIMEOUT_S)
        )
        try:
            socket = await session.ws_connect(
                f"{self._url}/m/{match_id}",
                protocols=(SUBPROTOCOL,),
                headers={HEADER: new_traceparent()},
                max_msg_size=MAX_FRAME_SIZE,
                heartbeat=SILENCE_S,
                compress=0,
            )
        except (TimeoutError, OSError, aiohttp.ClientError) as error:
            await session.close()
            raise RelayClosed(0, f"cannot reach {self.door}: {type(error).__name__}") from error
        except BaseException:
            await session.close()
            raise
        if socket.protocol != SUBPROTOCOL:
            await socket.close()
            await session.close()
            raise RelayClosed(0, f"{self.door} does not speak {SUBPROTOCOL}")
        return WebSocketConnection(session, socket)


class WebSocketConnection:
    """One live WebSocket."""

    def __init__(self, session: aiohttp.ClientSession, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._session = session
        self._socket = socket

    async def send(self, frame: match.ClientFrame) -> None:
        """Send one frame as one binary message."""
        with contextlib.suppress(OSError, aiohttp.ClientError):
            await self._socket.send_bytes(frame.SerializeToString())

    async def receive(self) -> match.ServerFrame:
        """Give the next frame; anything that is none ends the connection."""
        try:
            message = await self._socket.receive()
        except (OSError, aiohttp.ClientError) as error:
            raise RelayClosed(0, type(error).__name__) from error
        if message.type is aiohttp.WSMsgType.BINARY:
            try:
                return match.ServerFrame.FromString(message.data)
            except DecodeError:
                raise RelayClosed(0, "the relay sent something that is no frame") from None
        if message.type is aiohttp.WSMsgType.CLOSE:
            raise read_close(message.data or 0, message.extra or "")
        raise RelayClosed(self._socket.close_code or 0)

    async def close(self) -> None:
        """Close the WebSocket and its session."""
        await self._socket.close()
        await self._session.close()


def read_close(code: int, text: str) -> RelayClosed:
    """Read the reason and the hint when to come back out of a close frame: `DRAINING retry_after_ms=250`."""
    reason, _, hint = text.partition(" ")
    delay = re.fullmatch(r"retry_after_ms=([0-9]{1,7})", hint)
    return RelayClosed(code, reason, int(delay[1]) / 1000 if delay else None)
