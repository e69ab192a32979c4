"""The gRPC door: `MatchService`, raw bytes in and out so that both doors share one codec."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
from koikoi.match.v1 import match_service_pb2

from services.kit.app import end_task
from services.match.domain.errors import RelayError, SlowConsumer
from services.match.edge.codec import write_frame
from services.match.edge.limits import DoorLimits, Gate
from services.match.edge.visit import Porter
from services.match.ports import Outgoing

__all__ = ["ANONYMOUS", "GrpcDoor"]

ANONYMOUS = ("Relay", "GetKeySet")
_MATCH_ID = "koikoi-match-id"
_ABORT_AFTER_S = 2.0


class GrpcDoor:
    """Serves `koikoi.match.v1.MatchService`.

    Args:
        porter: Leads connections to the relay.
        gate: Counts connections.
        limits: Bounds per connection.
        jwks: Gives the relay's public keys.
    """

    def __init__(self, porter: Porter, gate: Gate, limits: DoorLimits, jwks: Callable[[], str]) -> None:
        self._porter, self._gate, self._limits, self._jwks = porter, gate, limits, jwks

    def register(self, server: grpc.aio.Server) -> None:
        """Add the service to a server."""
        handlers: dict[str, Any] = {
            "Relay": grpc.stream_stream_rpc_method_handler(self._relay),
            "GetKeySet": grpc.unary_unary_rpc_method_handler(
                self._get_key_set,
                request_deserializer=match_service_pb2.GetKeySetRequest.FromString,
                response_serializer=match_service_pb2.GetKeySetResponse.SerializeToString,
            ),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))

    async def _get_key_set(
        self, _request: match_service_pb2.GetKeySetRequest, _context: object
    ) -> match_service_pb2.GetKeySetResponse:
        return match_service_pb2.GetKeySetResponse(jwks=self._jwks())

    async def _relay(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        self._gate.enter()
        outlet = _GrpcOutlet(self._limits.most_unsent_bytes, asyncio.current_task())
        metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}

        async def receive(pause_s: float) -> bytes | None:
            await asyncio.sleep(pause_s)  # the visit is cancelled when the client goes
            return await anext(requests, None)

        visit = asyncio.get_running_loop().create_task(
            self._porter.lead("grpc", metadata.get(_MATCH_ID), receive, outlet.put, outlet)
        )
        visit.add_done_callback(lambda _task: outlet.finish())
        try:
            async for data in outlet.take():
                yield data
            if outlet.error is not None:
                raise outlet.error
            await visit
        finally:
            outlet.leave()
            self._gate.exit()
            await end_task(visit)


_SERVICE = match_service_pb2.DESCRIPTOR.services_by_name["MatchService"].full_name


class _GrpcOutlet:
    """Keeps what the stream has not taken yet, bounded; gRPC's flow control decides when it takes more.

    A client that reads nothing never hears that its stream is over, so after a while the RPC is cancelled.
    """

    def __init__(self, most_unsent_bytes: int, rpc: "asyncio.Task[Any] | None") -> None:
        self._most_unsent_bytes, self._rpc = most_unsent_bytes, rpc
        self._abort: asyncio.TimerHandle | None = None
        self._unsent: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._news = asyncio.Event()
        self._is_finished = False
        self.error: RelayError | None = None

    def send(self, acknowledged: int | None, frame: Outgoing | None) -> None:
        self.put(write_frame(acknowledged, frame))

    def put(self, data: bytes) -> None:
        if self._is_finished:
            return
        self._unsent_bytes += len(data)
        if self._unsent_bytes > self._most_unsent_bytes:
            self._unsent.clear()
            self.close(SlowConsumer("The connection reads too slowly; connect again.", retry_after_s=1.0))
            return
        self._unsent.append(data)
        self._news.set()

    def close(self, error: RelayError) -> None:
        if not self._is_finished:
            self.error = error
            self.finish()

    def finish(self) -> None:
        if not self._is_finished and self._rpc is not None:
            self._abort = asyncio.get_running_loop().call_later(_ABORT_AFTER_S, self._rpc.cancel)
        self._is_finished = True
        self._news.set()

    def leave(self) -> None:
        self._is_finished = True
        if self._abort is not None:
            self._abort.cancel()

    async def take(self) -> AsyncIterator[bytes]:
        while True:
            while self._unsent:
                data = self._unsent.popleft()
                self._unsent_bytes -= len(data)
                yield data
            if self._is_finished:
                return
            self._news.clear()
            await self._news.wait()
