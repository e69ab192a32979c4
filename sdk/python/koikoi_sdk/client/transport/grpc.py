"""The gRPC door: MatchService.Relay, a stream of frames in each direction."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc_status import rpc_status
from koikoi.match.v1 import match_service_pb2 as match
from koikoi.match.v1 import match_service_pb2_grpc as stubs

from koikoi_sdk.client.errors import RelayClosed
from koikoi_sdk.client.trace import HEADER, new_traceparent

if TYPE_CHECKING:
    Call = grpc.aio.StreamStreamCall[match.ClientFrame, match.ServerFrame]

MATCH_ID_KEY = "koikoi-match-id"
LONGEST_HINT_S = 10_000
"""Seconds; a relay that asks to come back later than this is not listened to (the WebSocket door cannot say more)."""
OPTIONS = (
    ("grpc.keepalive_time_ms", 25_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.max_receive_message_length", 16 * 1024),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),  # like the other door: a proxy of the environment would swallow loopback calls too
)


class GrpcTransport:
    """Dials host[:port] with or without TLS."""

    def __init__(self, target: str, *, is_secure: bool) -> None:
        self.door = target.lower()
        self._target = target
        self._is_secure = is_secure

    async def connect(self, match_id: str) -> GrpcConnection:
        """Connect for one match."""
        if self._is_secure:
            channel = grpc.aio.secure_channel(self._target, grpc.ssl_channel_credentials(), options=OPTIONS)
        else:
            channel = grpc.aio.insecure_channel(self._target, options=OPTIONS)
        call = stubs.MatchServiceStub(channel).Relay(metadata=((MATCH_ID_KEY, match_id), (HEADER, new_traceparent())))
        return GrpcConnection(channel, call)


class GrpcConnection:
    """One live stream; the first `receive` shows whether the relay can be reached."""

    def __init__(self, channel: grpc.aio.Channel, call: Call) -> None:
        self._channel = channel
        self._call = call

    async def send(self, frame: match.ClientFrame) -> None:
        """Write one frame to the stream."""
        with contextlib.suppress(grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
            await self._call.write(frame)

    async def receive(self) -> match.ServerFrame:
        """Read the next frame of the stream."""
        try:
            frame = await self._call.read()
        except grpc.aio.AioRpcError as error:
            raise read_status(error) from error
        if isinstance(frame, match.ServerFrame):
            return frame
        raise RelayClosed(0)

    async def close(self) -> None:
        """Cancel the stream and close its channel."""
        self._call.cancel()
        await self._channel.close()


def read_status(error: grpc.aio.AioRpcError) -> RelayClosed:
    """Read the close code and reason out of a gRPC status (docs/errors.md); what cannot be read counts as not said."""
    close_code, reason, retry_after_s = 0, error.code().name, None
    with contextlib.suppress(ValueError, DecodeError):
        status = rpc_status.from_call(error)  # type: ignore[arg-type]
        for detail in status.details if status is not None else ():
            info, retry = ErrorInfo(), RetryInfo()
            if detail.Unpack(info):
                reason = info.reason
                text = info.metadata.get("close_code", "")
                close_code = int(text) if re.fullmatch("[0-9]{4}", text) else 0
            elif detail.Unpack(retry):
                delay_s = retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
                retry_after_s = delay_s if 0 <= delay_s < LONGEST_HINT_S else None
    return RelayClosed(close_code, reason, retry_after_s)
