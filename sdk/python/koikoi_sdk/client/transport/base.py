"""What the session needs of a door: connect, send a frame, receive a frame, close.

A connection knows nothing of matches: the session joins, counts and signs (client/session.py).
"""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlsplit

from koikoi.match.v1 import match_service_pb2 as match

from koikoi_sdk.client.errors import LocalProtocolError


class Connection(Protocol):
    """One live connection to the relay."""

    async def send(self, frame: match.ClientFrame) -> None:
        """Send one frame. One that cannot be sent is lost: `receive` tells that the connection has ended, and why."""

    async def receive(self) -> match.ServerFrame:
        """Give the next frame.

        Raises:
            RelayClosed: The connection has ended; the error says whether to come back.
        """

    async def close(self) -> None:
        """End the connection; safe to call twice."""


class Transport(Protocol):
    """One door of the relay, before connecting."""

    @property
    def door(self) -> str:
        """Give the name that is dialed, lower-case host[:port]; it goes into the join signature."""

    async def connect(self, match_id: str) -> Connection:
        """Connect for one match; the server's first frame is its challenge.

        Raises:
            RelayClosed: The relay cannot be reached or refused.
        """


def open_transport(url: str) -> Transport:
    """Give the door for a URL: ws:// or wss:// (WebSocket), grpc:// or grpcs:// (gRPC; the s means TLS).

    Raises:
        LocalProtocolError: The URL is none of these.
    """
    parts = urlsplit(url)
    if not parts.hostname:
        raise LocalProtocolError(f"{url!r} names no host; use for example ws://127.0.0.1:8090")
    if parts.scheme in {"ws", "wss"}:
        from koikoi_sdk.client.transport.websocket import WebSocketTransport

        return WebSocketTransport(url)
    if parts.scheme in {"grpc", "grpcs"}:
        from koikoi_sdk.client.transport.grpc import GrpcTransport

        return GrpcTransport(parts.netloc, is_secure=parts.scheme == "grpcs")
    raise LocalProtocolError(f"{url!r} is no door of the relay: use ws://, wss://, grpc:// or grpcs://")
