"""A door that notes every envelope that passes, in both directions."""

from __future__ import annotations

from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.client.transport import Connection, Transport, open_transport


class Recorder:
    """Stands in front of a real door; `sent` and `received` keep all bytes seen under each number."""

    def __init__(self, url: str) -> None:
        self._inner: Transport = open_transport(url)
        self.door = self._inner.door
        self.connects = 0
        self.sent: dict[int, set[bytes]] = {}
        self.received: dict[int, set[bytes]] = {}

    async def connect(self, match_id: str) -> Connection:
        self.connects += 1
        return _Connection(await self._inner.connect(match_id), self)


class _Connection:
    def __init__(self, inner: Connection, recorder: Recorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def send(self, frame: match.ClientFrame) -> None:
        if frame.HasField("envelope"):
            self._recorder.sent.setdefault(frame.envelope.counter, set()).add(frame.envelope.sealed)
        await self._inner.send(frame)

    async def receive(self) -> match.ServerFrame:
        frame = await self._inner.receive()
        if frame.HasField("envelope"):
            self._recorder.received.setdefault(frame.envelope.counter, set()).add(frame.envelope.sealed)
        return frame

    async def close(self) -> None:
        await self._inner.close()
