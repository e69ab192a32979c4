"""A client that speaks frames and seals nothing: random bytes of the right sizes. Both doors, one interface."""

import asyncio
import hashlib
import json
import secrets
import time
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from typing import Any

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from koikoi.match.v1 import match_service_pb2 as pb
from nacl.signing import SigningKey
from picows import WSFrame, WSListener, WSMsgType, WSTransport, ws_connect

from services.kit.signatures import tagged
from tests.harness import Issuer

RULES = '{"overrides":{},"preset":"house","rounds":6,"version":1}'


def uuid7() -> str:
    value = bytearray(int(time.time() * 1000).to_bytes(6, "big") + secrets.token_bytes(10))
    value[6] = value[6] & 0x0F | 0x70
    value[8] = value[8] & 0x3F | 0x80
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


@dataclass
class Game:
    """A contract and both device keys. `order[0]` is the seat of device A."""

    compact: str
    payload: bytes
    keys: tuple[SigningKey, SigningKey]
    match_id: str

    @property
    def contract_hash(self) -> bytes:
        return hashlib.sha256(self.payload).digest()

    @property
    def order(self) -> tuple[int, int]:
        return (0, 1) if bytes(self.keys[0].verify_key) < bytes(self.keys[1].verify_key) else (1, 0)

    def owner(self, number: int) -> int:
        return self.order[number % 2]


def make_game(
    lobby: Issuer, *, age_s: int = 0, claims: dict[str, Any] | None = None, typ: str = "koikoi-contract+jws"
) -> Game:
    keys = (SigningKey.generate(), SigningKey.generate())
    now = int(lobby.clock.now()) - age_s
    members = {
        "iss": lobby.issuer,
        "jti": uuid7(),
        "iat": now,
        "exp": now + 3 * 3600,
        "ranked": True,
        "rules": RULES,
        "seats": [
            {
                "account": f"account-{i}-{secrets.token_hex(4)}",
                "avatar": "crane",
                "key": urlsafe_b64encode(bytes(keys[i].verify_key)).rstrip(b"=").decode(),
                "name": f"Player {i}",
            }
            for i in (0, 1)
        ],
    }
    members.update(claims or {})
    payload = json.dumps(members, separators=(",", ":")).encode()
    return Game(lobby.keys.sign(payload, typ), payload, keys, str(members["jti"]))


@dataclass(frozen=True)
class Closed:
    """How a connection ended: close code and reason."""

    code: int
    reason: str


@dataclass
class RawClient:
    """One connection. `events` gets ServerFrame messages, then one Closed."""

    events: "asyncio.Queue[pb.ServerFrame | Closed]" = field(default_factory=asyncio.Queue)
    seen: list[Any] = field(default_factory=list)
    acknowledged: int | None = None

    async def send_bytes(self, data: bytes) -> None:
        raise NotImplementedError

    async def hang_up(self) -> None:
        raise NotImplementedError

    async def send(self, **frame: Any) -> None:
        await self.send_bytes(pb.ClientFrame(**frame).SerializeToString())

    async def next(self, timeout: float = 5.0) -> "pb.ServerFrame | Closed":
        async with asyncio.timeout(timeout):
            frame = await self.events.get()
        self.seen.append(frame)
        if isinstance(frame, pb.ServerFrame) and frame.HasField("acknowledged"):
            self.acknowledged = frame.acknowledged
        return frame

    async def expect(self, kind: str, timeout: float = 5.0) -> Any:
        """Return the next frame of a kind, passing over statuses and bare acknowledgements; anything else fails."""
        while True:
            frame = await self.next(timeout)
            if isinstance(frame, Closed):
                assert kind == "closed", f"wanted {kind}, got {frame}"
                return frame
            got = frame.WhichOneof("frame")
            if got == kind:
                return getattr(frame, kind)
            assert got in (None, "status"), f"wanted {kind}, got {got}: {frame}"

    async def expect_acknowledged(self, number: int, timeout: float = 5.0) -> None:
        while self.acknowledged != number:
            frame = await self.next(timeout)
            assert not isinstance(frame, Closed), frame
            assert frame.WhichOneof("frame") in (None, "status", "envelope"), frame

    async def expect_status(self, timeout: float = 5.0, **wanted: Any) -> Any:
        """Wait for a status with these values."""
        while True:
            frame = await self.next(timeout)
            assert not isinstance(frame, Closed), frame
            if frame.WhichOneof("frame") == "status":
                status = frame.status
                found = {
                    "owing": status.owing_seat if status.HasField("owing_seat") else None,
                    "connected": list(status.is_connected),
                }
                if all(found[name] == value for name, value in wanted.items()):
                    return status

    async def join(
        self, game: Game, seat: int, door: str, *, position: int = 0, epoch: bytes = b"", **changes: Any
    ) -> Any:
        """Answer the challenge; returns it."""
        challenge = (await self.expect("challenge")).challenge
        await self.send(join=signed_join(game, seat, door, challenge, position=position, epoch=epoch, **changes))
        return challenge


def signed_join(
    game: Game,
    seat: int,
    door: str,
    challenge: bytes,
    *,
    position: int = 0,
    epoch: bytes = b"",
    key: SigningKey | None = None,
    signed_door: str | None = None,
    contract: str | None = None,
) -> pb.Join:
    value = tagged("relay-connect", challenge, (signed_door or door).encode(), game.contract_hash, bytes([seat]))
    return pb.Join(
        contract=game.compact if contract is None else contract,
        seat=seat,
        signature=(key or game.keys[seat]).sign(value).signature,
        door=door,
        epoch=epoch,
        position=position,
        client_version="raw 1",
    )


class WebSocketClient(RawClient):
    transport: WSTransport

    async def send_bytes(self, data: bytes) -> None:
        self.transport.send(WSMsgType.BINARY, data)

    async def hang_up(self) -> None:
        self.transport.disconnect()
        await self.transport.wait_disconnected()


class _Listener(WSListener):
    def __init__(self, client: WebSocketClient) -> None:
        super().__init__()
        self.client, self.closed = client, False

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        if frame.msg_type == WSMsgType.BINARY:
            self.client.events.put_nowait(pb.ServerFrame.FromString(frame.get_payload_as_bytes()))
        elif frame.msg_type == WSMsgType.CLOSE:
            message = frame.get_payload_as_bytes()
            self._end(int.from_bytes(message[:2], "big"), message[2:].decode())
            transport.disconnect()

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        self._end(1006, "")

    def _end(self, code: int, reason: str) -> None:
        if not self.closed:
            self.closed = True
            self.client.events.put_nowait(Closed(code, reason))


class GrpcClient(RawClient):
    channel: grpc.aio.Channel
    call: Any
    reader: "asyncio.Task[None]"

    async def send_bytes(self, data: bytes) -> None:
        await self.call.write(data)

    async def hang_up(self) -> None:
        self.call.cancel()
        await self.channel.close()

    async def read(self) -> None:
        try:
            while (data := await self.call.read()) is not grpc.aio.EOF:
                self.events.put_nowait(pb.ServerFrame.FromString(data))
            closed = Closed(0, await self.call.details()) if await self.call.code() else Closed(0, "")
            raised = grpc.aio.AioRpcError(
                await self.call.code(), await self.call.initial_metadata(), await self.call.trailing_metadata()
            )
            if await self.call.code() is not grpc.StatusCode.OK:
                raise raised
        except grpc.aio.AioRpcError as error:
            closed = closed_by(error)
        except asyncio.CancelledError:
            closed = Closed(1006, "")
        self.events.put_nowait(closed)


def closed_by(error: grpc.aio.AioRpcError) -> Closed:
    status = rpc_status.from_call(error)
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return Closed(int(info.metadata.get("close_code", "0")), info.reason)
    return Closed(1006, str(error.code()))


async def dial_websocket(port: int, match_id: str) -> WebSocketClient:
    client = WebSocketClient()
    client.transport, _ = await ws_connect(
        lambda: _Listener(client),
        f"ws://127.0.0.1:{port}/m/{match_id}",
        extra_headers={"Sec-WebSocket-Protocol": "koikoi.match.v1"},
    )
    return client


async def dial_grpc(port: int, match_id: str) -> GrpcClient:
    client = GrpcClient()
    client.channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
    client.call = client.channel.stream_stream("/koikoi.match.v1.MatchService/Relay")(
        metadata=[("koikoi-match-id", match_id)]
    )
    client.reader = asyncio.get_running_loop().create_task(client.read())
    return client


def hello() -> bytes:
    return secrets.token_bytes(131)


def sealed(size: int = 653) -> bytes:
    return secrets.token_bytes(size)


def envelope(number: int, phase: int, data: bytes) -> dict[str, Any]:
    return {"envelope": {"counter": number, "phase": phase, "sealed": data}}


__all__ = ["Closed", "Game", "RawClient", "dial_grpc", "dial_websocket", "make_game", "replace"]
