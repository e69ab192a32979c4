"""Calls the services behind the gateway over gRPC, with bytes in and bytes out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import grpc
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from services.gateway.errors import BackendFailed, BackendUnavailable, CallTimedOut, GatewayError
from services.gateway.methods import Method
from services.kit.grpc_server import rich_status

DOMAIN = "gateway.koikoi"
RETRY_AFTER_S = 1.0
MAX_ANSWER_SIZE = 1 << 20
MAX_CALLS = 128
"""At once to one service; the rest wait. A service resets the streams beyond its 256, those just ended included."""
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ANSWER_SIZE),
    ("grpc.lb_policy_name", "round_robin"),
)


class CallFailed(Exception):
    """A call that ended with an error; `status` is what the caller may see of it."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class Backends:
    """The gRPC channels, one per service; they connect at the first call and again after a loss."""

    def __init__(self, channels: Mapping[str, grpc.aio.Channel]) -> None:
        self._channels = channels
        self._places = {name: asyncio.Semaphore(MAX_CALLS) for name in channels}

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
            return bytes(await call(content, metadata=tuple(metadata.items()), timeout=left_s))
        except grpc.aio.AioRpcError as error:
            raise CallFailed(_status(method, error)) from None
        finally:
            place.release()


def _unavailable(method: Method) -> Status:
    message = f"The {method.backend} service does not answer now; try again."
    return own_status(BackendUnavailable(message, retry_after_s=RETRY_AFTER_S))


def own_status(error: GatewayError) -> Status:
    """Give a refusal of the gateway itself as a status."""
    return rich_status(error, DOMAIN)


def _status(method: Method, error: grpc.aio.AioRpcError) -> Status:
    """Give the service's status as it stands; what gRPC itself says is not for the public (it names hosts)."""
    try:
        status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it has all that is read
    except ValueError:  # the two statuses of the call contradict each other
        status = None
    if isinstance(status, Status):
        return status
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return _unavailable(method)
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return own_status(CallTimedOut("The call took longer than allowed; it may have had an effect."))
    return own_status(BackendFailed(f"The {method.backend} service failed."))
