"""Calls the services behind the gateway over gRPC, with bytes in and bytes out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

import grpc
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from services.gateway.answers import own_status
from services.gateway.errors import BackendFailed, BackendUnavailable, CallTimedOut
from services.gateway.methods import Method
from services.kit import trace
from services.kit.grpc_server import open_channel

RETRY_AFTER_S = 1.0
MAX_ANSWER_SIZE = 1 << 20
MAX_CALLS = 128
"""At once to one service; the rest wait. A service resets the streams beyond its 256, those just ended included."""
STREAMS_A_CONNECTION = 128
"""Streams stay open, so they have connections of their own, as many as they need."""
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ANSWER_SIZE),
    ("grpc.lb_policy_name", "round_robin"),
)
_STREAM_OPTIONS = (
    *_OPTIONS,
    ("grpc.use_local_subchannel_pool", 1),  # else equal channels share one connection
    ("grpc.http2.bdp_probe", 0),  # the window stays at 64 KiB, which is what one slow reader may hold
)


class CallFailed(Exception):
    """A call that ended with an error; `status` is what the caller may see of it."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class Backends:
    """The gRPC channels of the services; they connect at the first call and again after a loss.

    Args:
        targets: Each service's address, by its name.
    """

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._channels = {name: open_channel(target, _OPTIONS) for name, target in targets.items()}
        self._places = {name: asyncio.Semaphore(MAX_CALLS) for name in targets}
        self._lines = {name: _StreamChannels(target) for name, target in targets.items()}

    async def close(self) -> None:
        """Close all connections; calls in progress fail."""
        for channel in self._channels.values():
            await channel.close()
        for line in self._lines.values():
            await line.close()

    async def call(self, method: Method, content: bytes, metadata: Mapping[str, str], limit_s: float) -> bytes:
        """Call a method with a binary message; gives the binary answer.

        Raises:
            CallFailed: With the service's own status, or the gateway's when none came from it.
        """
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channels[method.backend].unary_unary(method.path)
        deadline, place = time.monotonic() + limit_s, self._places[method.backend]
        try:
            await asyncio.wait_for(place.acquire(), limit_s)
        except TimeoutError:
            raise CallFailed(_unavailable(method)) from None
        try:
            left_s = max(deadline - time.monotonic(), 0.001)
            return bytes(await call(content, metadata=_with_trace(metadata), timeout=left_s))
        except grpc.aio.AioRpcError as error:
            raise CallFailed(_status(method, error)) from None
        finally:
            place.release()

    async def stream(
        self, method: Method, content: bytes, metadata: Mapping[str, str], limit_s: float | None
    ) -> AsyncIterator[bytes]:
        """Call a server-streaming method; gives its binary messages, each only when the last was taken.

        Closing the iterator cancels the call.

        Raises:
            CallFailed: As for `call`.
        """
        with self._lines[method.backend].take() as channel:
            open_call: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(method.path)
            call = open_call(content, metadata=_with_trace(metadata), timeout=limit_s)
            try:
                async for message in call:
                    yield bytes(message)
            except grpc.aio.AioRpcError as error:
                raise CallFailed(_status(method, error)) from None
            finally:
                call.cancel()


class _StreamChannels:
    """As many connections to one service as its open streams need."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._uses: dict[grpc.aio.Channel, int] = {}

    @contextmanager
    def take(self) -> Iterator[grpc.aio.Channel]:
        channel = next((one for one, count in self._uses.items() if count < STREAMS_A_CONNECTION), None)
        if channel is None:
            channel = open_channel(self._target, _STREAM_OPTIONS)
        self._uses[channel] = self._uses.get(channel, 0) + 1
        try:
            yield channel
        finally:
            self._uses[channel] -= 1

    async def close(self) -> None:
        for channel in self._uses:
            await channel.close()


def _with_trace(metadata: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return (*metadata.items(), ("traceparent", trace.current().header()))


def _unavailable(method: Method) -> Status:
    message = f"The {method.backend} service does not answer now; try again."
    return own_status(BackendUnavailable(message, retry_after_s=RETRY_AFTER_S))


def _status(method: Method, error: grpc.aio.AioRpcError) -> Status:
    """Give the service's status as it stands; what gRPC itself says is not for the public (it names hosts)."""
    try:
        status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it has all that is read
    except ValueError:  # the two statuses of the call contradict each other
        status = None
    if isinstance(status, Status):
        return status
    # Cancelled by the other side: a service that is stopping gives up what it has not answered. The client comes again.
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return _unavailable(method)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return own_status(CallTimedOut("The call took longer than allowed; it may have had an effect."))
    return own_status(BackendFailed(f"The {method.backend} service failed."))
