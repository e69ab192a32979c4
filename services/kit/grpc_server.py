"""A gRPC server whose handlers need no `try`: one interceptor owns errors, deadlines, identity, log line and metrics.

Default deny: a method needs a valid access token unless it is listed as anonymous.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import unquote

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from services.kit import log, postgres, redis, trace
from services.kit.errors import Code, RequestMalformed, ServiceError, StoreUnavailable, Unauthenticated
from services.kit.health import Health, register_grpc_health
from services.kit.limits import is_among, resolve_address
from services.kit.metrics import Metrics
from services.kit.settings import Network
from services.kit.tokens import AccessTokenVerifier, Caller

__all__ = ["caller", "client_address", "open_channel", "rich_status", "start_server"]

_caller: ContextVar[Caller | None] = ContextVar("caller", default=None)
_address: ContextVar[str] = ContextVar("client_address", default="unknown")
_FOREIGN = ("/grpc.health.", "/grpc.reflection.")
_OPTIONS = (
    ("grpc.so_reuseport", 0),  # a port that is taken is an error, not a second listener
    ("grpc.max_receive_message_length", 64 * 1024),
    ("grpc.max_concurrent_streams", 256),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.keepalive_time_ms", 25_000),
    ("grpc.keepalive_timeout_ms", 15_000),  # so that a peer silent for 40 s is gone
    ("grpc.http2.ping_timeout_ms", 15_000),
    ("grpc.http2.max_pings_without_data", 0),  # else a quiet stream is asked once a minute only
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
)
_CHANNEL_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # our services are near; a proxy that the machine names is for the world outside
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),  # not gRPC's own two minutes
)


def open_channel(target: str, options: Sequence[tuple[str, Any]] = ()) -> grpc.aio.Channel:
    """Open a channel to another of our services; it connects at the first call, and again soon after a loss."""
    return grpc.aio.insecure_channel(target, options=(*_CHANNEL_OPTIONS, *options))


def caller() -> Caller:
    """Return who calls the RPC in progress.

    Raises:
        Unauthenticated: Nobody was identified (an anonymous method).
    """
    if (known := _caller.get()) is None:
        raise Unauthenticated("This call needs an access token.")
    return known


def client_address() -> str:
    """Return the client's IP address for limits; from `x-forwarded-for` only where a trusted proxy wrote it."""
    return _address.get()


def rich_status(error: ServiceError, domain: str) -> status_pb2.Status:
    """Return the error as google.rpc.Status: ErrorInfo always, BadRequest and RetryInfo where they apply (AIP-193)."""
    status = status_pb2.Status(code=int(error.code), message=error.message)
    found = {"field": error.field or "", "trace_id": trace.current().id}
    metadata = {**error.metadata, **{name: value for name, value in found.items() if value}}
    info = error_details_pb2.ErrorInfo(reason=error.reason, domain=error.domain or domain, metadata=metadata)
    status.details.add().Pack(info)
    if error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
        status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    if error.retry_after_s is not None:
        delay = Duration(nanos=0)
        delay.FromNanoseconds(int(error.retry_after_s * 1e9))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return status


class _Edge(grpc.aio.ServerInterceptor):
    def __init__(
        self,
        metrics: Metrics,
        verifier: AccessTokenVerifier | None,
        anonymous: Collection[str],
        trusted_proxies: Sequence[Network],
        deadline_s: float,
    ) -> None:
        self._metrics, self._verifier, self._anonymous = metrics, verifier, frozenset(anonymous)
        self._trusted_proxies, self._deadline_s = trusted_proxies, deadline_s
        self._domain = f"{metrics.service}.koikoi"

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: grpc.HandlerCallDetails
    ) -> Any:
        handler = await continuation(details)
        if handler is None or details.method.startswith(_FOREIGN):
            return handler
        method = details.method.rpartition("/")[2]
        kind = "_".join("stream" if one else "unary" for one in (handler.request_streaming, handler.response_streaming))
        behavior, read = getattr(handler, kind), handler.request_deserializer
        if read is not None and not handler.request_streaming:
            behavior, read = _reading(behavior, read), None
        if handler.response_streaming:
            wrapped: Any = self._stream(method, behavior, None if handler.request_streaming else details.method)
        else:
            wrapped = self._unary(method, behavior, details.method)
        return getattr(grpc, f"{kind}_rpc_method_handler")(wrapped, read, handler.response_serializer)

    def _unary(self, method: str, behavior: Callable[..., Awaitable[Any]], path: str) -> Callable[..., Awaitable[Any]]:
        async def run(request: Any, context: Any) -> Any:
            started = time.perf_counter()
            with self._guard(method, context) as outcome:
                trace.current().open(path[1:])
                remaining = context.time_remaining()
                limit_s = self._deadline_s if remaining is None else min(remaining, self._deadline_s)
                try:
                    async with asyncio.timeout(limit_s):
                        await self._identify(method, context)
                        answer = await behavior(request, context)
                except Exception as error:  # noqa: BLE001 - the edge is where every error ends
                    status = self._status(method, error)
                    outcome(code_pb2.Code.Name(status.code), error)
                else:
                    outcome("OK")
                    self._metrics.rpc_seconds.labels(method).observe(time.perf_counter() - started)
                    return answer
            return await context.abort_with_status(rpc_status.to_status(status))

        return run

    def _stream(self, method: str, behavior: Callable[..., Any], path: str | None) -> Callable[..., AsyncIterator[Any]]:
        """Serve a stream. Its span ends with its first answer; without a path the handler makes its own."""

        async def run(request: Any, context: Any) -> AsyncIterator[Any]:
            with self._guard(method, context) as outcome:
                if path is not None:
                    trace.current().open(path[1:], at_most_s=self._deadline_s)
                try:
                    await self._identify(method, context)
                    answers = behavior(request, context)
                    if hasattr(answers, "__aiter__"):
                        async for answer in answers:
                            trace.current().close()
                            yield answer
                    else:
                        await answers
                except Exception as error:  # noqa: BLE001 - the edge is where every error ends
                    status = self._status(method, error)
                    outcome(code_pb2.Code.Name(status.code), error)
                else:
                    outcome("OK")
                    return
            await context.abort_with_status(rpc_status.to_status(status))

        return run

    @contextmanager
    def _guard(self, method: str, context: Any) -> Iterator[Callable[..., None]]:
        """Write one log line and count one RPC, also for a call whose client went away."""
        self._begin(context)
        said = ["CANCELLED", ""]

        def outcome(code: str, error: Exception | None = None) -> None:
            said[:] = [code, error.reason if isinstance(error, ServiceError) else ""]

        started = time.perf_counter()
        try:
            yield outcome
        finally:
            code, reason = said
            self._metrics.rpcs.labels(method, code).inc()
            trace.current().close(code, reason)
            log.get().info(
                f"{self._metrics.service}.rpc",
                method=method, outcome=code, reason=reason, ms=round((time.perf_counter() - started) * 1000, 1),
            )  # fmt: skip

    def _begin(self, context: Any) -> None:
        """Note from where the call comes, and what it is part of."""
        metadata, peer = _texts(context), _peer_address(context.peer())
        _address.set(resolve_address(peer, metadata.get("x-forwarded-for", ""), self._trusted_proxies))
        trace.begin(metadata.get("traceparent"), trusts_caller=is_among(peer, self._trusted_proxies))

    async def _identify(self, method: str, context: Any) -> None:
        _caller.set(None)
        if method in self._anonymous:
            return
        scheme, _, token = _texts(context).get("authorization", "").partition(" ")
        if self._verifier is None or scheme.lower() != "bearer" or not token:
            raise Unauthenticated("This call needs the header `authorization: Bearer <access token>`.")
        _caller.set(await self._verifier.verify(token))

    def _status(self, method: str, error: Exception) -> status_pb2.Status:
        if redis.is_outage(error) or (isinstance(error, postgres.OUTAGES) and not isinstance(error, TimeoutError)):
            error = StoreUnavailable("The service cannot reach its store now; try again.", retry_after_s=1.0)
        elif isinstance(error, DecodeError):
            error = RequestMalformed("The request is no message of this method's type.", field="request")
        if isinstance(error, ServiceError):
            return rich_status(error, self._domain)
        if isinstance(error, TimeoutError):
            return status_pb2.Status(code=int(Code.DEADLINE_EXCEEDED), message="The call took too long.")
        error_id = secrets.token_hex(8)
        log.get().error(
            f"{self._metrics.service}.rpc.failed",
            method=method,
            error_id=error_id,
            **log.describe(error),
        )
        return status_pb2.Status(code=int(Code.INTERNAL), message=f"Internal error {error_id}.")


def _reading(behavior: Callable[..., Any], read: Callable[[bytes], Any]) -> Callable[..., Any]:
    """Read the request within the guard: gRPC's own refusal of bytes that are no message has no reason."""
    return lambda request, context: behavior(read(request), context)


def _texts(context: Any) -> dict[str, str]:
    return {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}


def _peer_address(peer: str) -> str:
    kind, _, rest = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return kind
    return unquote(rest.rpartition(":")[0]).removeprefix("[").removesuffix("]").partition("%")[0]


@asynccontextmanager
async def start_server(
    *,
    address: str,
    services: Sequence[Callable[[grpc.aio.Server], None]],
    health: Health,
    metrics: Metrics,
    verifier: AccessTokenVerifier | None,
    anonymous: Collection[str] = (),
    trusted_proxies: Sequence[Network] = (),
    deadline_s: float = 10.0,
    grace_s: float = 5.0,
) -> AsyncIterator[int]:
    """Serve gRPC on host:port; gives the bound port. Leaving finishes calls in flight for up to `grace_s`.

    Args:
        address: Where to listen; port 0 lets the system choose.
        services: Callables that add one servicer each.
        health: What the gRPC health service answers.
        metrics: Counts RPCs; its service name is also the domain of errors.
        verifier: Checks access tokens; None when every method is anonymous.
        anonymous: Names of the methods that anybody may call.
        trusted_proxies: Addresses or networks whose `x-forwarded-for` counts.
        deadline_s: Longest time for a unary call, whatever the client asks.
        grace_s: See above.
    """
    edge = _Edge(metrics, verifier, anonymous, trusted_proxies, deadline_s)
    server = grpc.aio.server(interceptors=[edge], options=_OPTIONS)
    for register in services:
        register(server)
    register_grpc_health(server, health)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        raise OSError(f"cannot listen on {address}") from None
    await server.start()
    try:
        yield port
    finally:
        await server.stop(grace_s)
