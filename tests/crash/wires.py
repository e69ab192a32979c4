"""A gateway client and a door that tell the striker what passes, and note what was acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from koikoi.match.v1 import match_service_pb2 as match
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.transport import Connection, Transport, open_transport

from tests.crash.scenario import Phase
from tests.crash.strokes import Striker

_CALLS = {
    "BeginSignIn": Phase.SIGN_IN,
    "SignIn": Phase.SIGN_IN,
    "CreateRoom": Phase.ROOM,
    "JoinRoom": Phase.JOIN,
    "SubmitResult": Phase.SUBMIT,
}
_ENVELOPES = {0: Phase.HELLO, 1: Phase.COIN, 3: Phase.S3, 4: Phase.PLAY, 5: Phase.AUDIT, 6: Phase.SIGNING}
_SHUFFLE, _LARGE = 2, 9000


class Gateway(ConnectClient):
    """The SDK's client; every exchange passes the striker before and after."""

    def __init__(self, url: str, striker: Striker) -> None:
        super().__init__(url)
        self._striker = striker

    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> tuple[str, bytes]:
        phase = _CALLS.get(path.rpartition("/")[2])
        if phase:
            await self._striker.pass_point(phase, "before")
        answer = await super()._exchange(method, path, headers, content)
        if phase:
            await self._striker.pass_point(phase, "after")
        return answer


@dataclass
class Journal:
    """What one device said and heard in one match, over all its lives; `acknowledged` is the highest number heard."""

    sent: dict[int, set[bytes]] = field(default_factory=dict)
    received: dict[int, set[bytes]] = field(default_factory=dict)
    acknowledged: int = 0
    told: set[tuple[int, int | None]] = field(default_factory=set)


class Door:
    """A door of the relay for one device."""

    def __init__(self, url: str, journal: Journal, striker: Striker) -> None:
        self._inner: Transport = open_transport(url)
        self._journal, self._striker = journal, striker
        self.door = self._inner.door

    async def connect(self, match_id: str) -> Connection:
        return _Connection(await self._inner.connect(match_id), self._journal, self._striker)


class _Connection:
    def __init__(self, inner: Connection, journal: Journal, striker: Striker) -> None:
        self._inner, self._journal, self._striker = inner, journal, striker

    async def send(self, frame: match.ClientFrame) -> None:
        phase = _phase_of(frame, self._journal)
        if phase is None:
            await self._inner.send(frame)
            return
        if frame.HasField("envelope"):
            self._journal.sent.setdefault(frame.envelope.counter, set()).add(frame.envelope.sealed)
        await self._striker.pass_point(phase, "before")
        await self._inner.send(frame)
        await self._striker.pass_point(phase, "after")

    async def receive(self) -> match.ServerFrame:
        frame = await self._inner.receive()
        if frame.HasField("acknowledged"):
            self._journal.acknowledged = max(self._journal.acknowledged, frame.acknowledged)
        if frame.HasField("ended"):
            seat = frame.ended.seat if frame.ended.HasField("seat") else None
            self._journal.told.add((frame.ended.outcome, seat))
        if frame.HasField("envelope"):
            self._journal.received.setdefault(frame.envelope.counter, set()).add(frame.envelope.sealed)
        if (phase := _phase_of(frame, self._journal)) is not None:
            await self._striker.pass_point(phase, "after")
        return frame

    async def close(self) -> None:
        await self._inner.close()


def _phase_of(frame: match.ClientFrame | match.ServerFrame, journal: Journal) -> Phase | None:
    kind = frame.WhichOneof("frame")
    if kind in ("close", "ended"):
        return Phase.CLOSE
    if kind != "envelope":
        return None
    envelope = frame.envelope
    if envelope.phase != _SHUFFLE:
        return _ENVELOPES[envelope.phase]
    before = journal.sent.get(envelope.counter - 1) or journal.received.get(envelope.counter - 1) or set()
    is_answer = len(envelope.sealed) > _LARGE and any(len(sealed) > _LARGE for sealed in before)
    return Phase.S2 if is_answer else Phase.S1
