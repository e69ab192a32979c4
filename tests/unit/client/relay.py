"""A relay in memory that follows the real one: `services.match`'s own rules and its own way of telling a device."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
from collections import deque
from collections.abc import Callable
from typing import Any

from koikoi.match.v1 import match_service_pb2 as wire
from koikoi_sdk.client.errors import RelayClosed

from services.kit.signatures import tagged, verify
from services.match.delivery import Session as Delivery
from services.match.domain import recovery, relay
from services.match.domain.deadlines import Limits
from services.match.domain.envelope import Envelope
from services.match.domain.errors import FrameInvalid, JoinSignatureInvalid, RelayError, ResultProofInvalid
from services.match.domain.match import Match
from services.match.domain.outcomes import Outcome
from services.match.edge.codec import read_frame, write_challenge, write_frame
from services.match.ports import Close, Incoming, Join, Outgoing, Refusal, Status, Stored, Welcome

LIMITS = Limits()
DOOR = "relay.test"
MATCH_LIMIT_MS = 7_200_000


class FakeRelay:
    """One match in one process. Time stands still, so no deadline ever passes."""

    def __init__(self, payload: bytes) -> None:
        seats = json.loads(payload)["seats"]
        self.contract_hash = hashlib.sha256(payload).digest()
        self.keys = [base64.urlsafe_b64decode(seat["key"] + "=") for seat in seats]
        self.match: Match = relay.create(self.first_seat, 0, MATCH_LIMIT_MS, b"epoch--0", LIMITS)
        self.connections: list[FakeConnection] = []
        self.claims: list[tuple[int, Close]] = []

    @property
    def first_seat(self) -> int:
        return 0 if self.keys[0] < self.keys[1] else 1

    def change(self, after: Match) -> None:
        self.match = after
        for connection in list(self.connections):
            connection.show()

    def lose_everything(self) -> None:
        """All of the store is gone: the devices' positions must repair it."""
        self.drop_all()
        self.match = recovery.blank(self.first_seat, 0, MATCH_LIMIT_MS, secrets.token_bytes(8), LIMITS)

    def drop_all(self) -> None:
        for connection in list(self.connections):
            connection.drop()

    def claim(self, seat: int, speaker: str, close: Close) -> Match:
        self.claims.append((seat, close))
        if close.outcome is Outcome.RESIGNED:
            return relay.resign(self.match, seat, speaker, 0, LIMITS)
        if close.outcome is Outcome.DISPUTED:
            return relay.dispute(self.match, seat, speaker, close.dispute_reason, 0)
        if close.outcome is not Outcome.FINISHED:
            raise FrameInvalid("not a claim")
        signed = zip(self.keys, close.result_signatures, strict=True)
        if not all(verify(key, signature, close.result_digest) for key, signature in signed):
            raise ResultProofInvalid("the shown result does not verify")
        return relay.finish(self.match, seat, speaker, 0, is_proved=True)


class FakeTransport:
    """Dials the relay for one seat; the hooks see every frame."""

    def __init__(self, relay: FakeRelay, door: str = DOOR) -> None:
        self.relay, self.door = relay, door
        self.connects = 0
        self.before_send: Callable[[wire.ClientFrame], None] = lambda frame: None
        self.after_send: Callable[[wire.ClientFrame], None] = lambda frame: None
        self.before_receive: Callable[[wire.ServerFrame], None] = lambda frame: None

    async def connect(self, match_id: str) -> FakeConnection:
        self.connects += 1
        return FakeConnection(self)


class FakeConnection:
    """The client's end of one connection, and what the relay does with what comes out of it."""

    def __init__(self, transport: FakeTransport) -> None:
        self._transport, self._relay = transport, transport.relay
        self._challenge = secrets.token_bytes(32)
        self._unread: deque[wire.ServerFrame | RelayClosed] = deque()
        self._news = asyncio.Event()
        self._delivery: Delivery | None = None
        self.put(wire.ServerFrame.FromString(write_challenge(self._challenge)))

    async def send(self, frame: wire.ClientFrame) -> None:
        await asyncio.sleep(0)
        self._transport.before_send(frame)
        try:
            self._take(read_frame(frame.SerializeToString(), is_first=self._delivery is None))
        except RelayError as error:
            if error.close_code or self._delivery is None:
                self.end(error)
            else:
                self._delivery.send(Refusal(error, self._relay.match.counter))
        self._transport.after_send(frame)

    async def receive(self) -> wire.ServerFrame:
        while not self._unread:
            self._news.clear()
            await self._news.wait()
        frame = self._unread[0]
        if isinstance(frame, RelayClosed):
            raise frame
        self._transport.before_receive(frame)
        self._unread.popleft()
        return frame

    async def close(self) -> None:
        self.drop()

    def _take(self, frame: Incoming) -> None:
        delivery = self._delivery
        if isinstance(frame, Join):
            self._join(frame)
        elif delivery is None or self not in self._relay.connections:
            pass  # the connection has ended: what is sent is lost
        elif isinstance(frame, Envelope):
            match, seat = self._relay.match, delivery.seat
            after = relay.accept(match, seat, delivery.connection, frame, 0, LIMITS)
            delivery.acknowledge(frame.counter)
            self._relay.change(after)
        elif isinstance(frame, Close):
            self._relay.change(self._relay.claim(delivery.seat, delivery.connection, frame))

    def _join(self, join: Join) -> None:
        door = self._transport.door.encode()
        signed = tagged("relay-connect", self._challenge, door, self._relay.contract_hash, bytes([join.seat]))
        if not verify(self._relay.keys[join.seat], join.signature, signed):
            raise JoinSignatureInvalid("the join signature does not verify")
        name = secrets.token_hex(8)
        self._delivery = Delivery(join.seat, name, _Outlet(self), join.epoch, join.position, LIMITS, _greet, lambda: 0)
        after = relay.join(self._relay.match, join.seat, (name, "p"), join.position, 0, secrets.token_bytes(8), LIMITS)
        self._delivery.joins = after.seats[join.seat].joins
        self._relay.connections.append(self)
        self._relay.change(after)

    def show(self) -> None:
        assert self._delivery is not None
        contract: Any = None
        self._delivery.show(Stored(b"", contract, self._relay.match))

    def drop(self) -> None:
        """The connection breaks."""
        if self in self._relay.connections:
            self._relay.connections.remove(self)
            assert self._delivery is not None
            self._delivery.end()
            self._relay.change(relay.depart(self._relay.match, self._delivery.seat, self._delivery.connection, 0))
        self.put(RelayClosed(0))

    def end(self, error: RelayError) -> None:
        """The relay closes the connection."""
        if self in self._relay.connections:
            self._relay.connections.remove(self)
        self.put(RelayClosed(error.close_code, error.reason, error.retry_after_s))

    def put(self, frame: wire.ServerFrame | RelayClosed) -> None:
        self._unread.append(frame)
        self._news.set()


class _Outlet:
    """The relay's end of one connection."""

    def __init__(self, connection: FakeConnection) -> None:
        self._connection = connection

    def send(self, acknowledged: int | None, frame: Outgoing | None) -> None:
        self._connection.put(wire.ServerFrame.FromString(write_frame(acknowledged, frame)))

    def close(self, error: RelayError) -> None:
        self._connection.end(error)


def _greet(match: Match, is_known: bool, status: Status) -> Welcome:
    return Welcome(match.epoch, match.counter, is_known, match.is_recovering, status, "", ())
