"""The two doors of the relay: the same frames over a WebSocket or a gRPC stream."""

from koikoi_sdk.client.transport.base import Connection, Transport, open_transport

__all__ = ["Connection", "Transport", "open_transport"]
