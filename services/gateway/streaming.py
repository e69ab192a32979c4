"""Server-streaming calls of the Connect protocol: one message in, enveloped messages out, the end told in the last.

A stream takes the service's next message only when the caller took the last one: a slow reader holds the buffers of
one connection, never a queue. One that takes nothing for a while is closed.
"""

from __future__ import annotations

import asyncio
import random
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager

from aiohttp import web
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status

from services.gateway.answers import HEADERS, code_of, end_of_stream, failed, own_status
from services.gateway.backends import Backends, CallFailed
from services.gateway.codec import read_message, write_message
from services.gateway.compression import (
    ENCODINGS,
    GZIP,
    IDENTITY,
    MAX_BODY_SIZE,
    WORTH_SIZE,
    check_encoding,
    pack,
    unpack,
    wants_gzip,
)
from services.gateway.errors import (
    BackendFailed,
    CallTimedOut,
    Draining,
    GatewayError,
    GatewayFull,
    RequestInvalid,
    TooManyStreams,
)
from services.gateway.incoming import (
    STREAM_TYPES,
    Networks,
    address_of,
    check_version,
    content_type_of,
    metadata_of,
    read_body,
    time_limit_s,
)
from services.gateway.methods import Method
from services.kit import trace
from services.kit.app import end_task
from services.kit.limits import address_group
from services.kit.metrics import Metrics

_PACKED, _END = 0b01, 0b10
_HEAD = struct.Struct(">BI")
_RETRY_AFTER_S = 5.0
_DRAIN_SPREAD_S = 5.0
_FOREVER_S = float("inf")


class StreamPlaces:
    """Counts open streams, in all and per address, and ends them all when the process is about to."""

    def __init__(self, metrics: Metrics, most: int, most_per_address: int) -> None:
        self._most, self._most_per_address = most, most_per_address
        self._open = metrics.gauge("open_streams", "Streams open now.")
        self._by_address: Counter[str] = Counter()
        self.draining: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def drain(self) -> None:
        """End every stream, and let none begin."""
        if not self.draining.done():
            self.draining.set_result(None)

    @contextmanager
    def take(self, address: str) -> Iterator[None]:
        """Hold a place.

        Raises:
            Draining: The process is about to end.
            GatewayFull: It has as many streams as it may.
            TooManyStreams: The address has.
        """
        group = address_group(address)
        if self.draining.done():
            raise going_away()
        if self._by_address.total() >= self._most:
            raise GatewayFull("This gateway has no room for another stream now.", retry_after_s=_RETRY_AFTER_S)
        if self._by_address[group] >= self._most_per_address:
            raise TooManyStreams(
                f"An address may hold {self._most_per_address} open streams.",
                metadata={"limit": str(self._most_per_address)},
                retry_after_s=_RETRY_AFTER_S,
            )
        self._by_address[group] += 1
        self._open.inc()
        try:
            yield
        finally:
            self._open.dec()
            self._by_address[group] -= 1
            if not self._by_address[group]:
                del self._by_address[group]


class StreamDoor:
    """Answers server-streaming calls.

    Args:
        backends: Where the messages come from.
        places: Bounds the streams.
        trusted_proxies: Addresses or networks whose x-forwarded-for counts.
        body_limit_s: How long the request may take to arrive.
        stall_limit_s: How long a caller may take nothing.
    """

    def __init__(
        self,
        backends: Backends,
        places: StreamPlaces,
        *,
        trusted_proxies: Networks,
        body_limit_s: float,
        stall_limit_s: float,
    ) -> None:
        self._backends, self._places, self._trusted_proxies = backends, places, trusted_proxies
        self._body_limit_s, self._stall_limit_s = body_limit_s, stall_limit_s

    async def answer(self, request: web.Request, method: Method) -> tuple[web.StreamResponse, str] | None:
        """Answer one call and tell how it ended; None when its codec is not spoken here."""
        content_type = content_type_of(request)
        if content_type not in STREAM_TYPES:
            return None
        sent = request.headers.get("Connect-Content-Encoding", "")
        frames = _Frames(request, content_type, wants_gzip(request.headers.get("Connect-Accept-Encoding"), sent))
        status: Status | None = None
        address = address_of(request, self._trusted_proxies)
        try:
            try:
                with self._places.take(address):
                    await self._run(request, method, frames, address)
            except GatewayError as error:
                status = own_status(error)
            except CallFailed as error:
                status = error.status
            except (_Stalled, ConnectionError):
                raise
            except Exception as error:  # noqa: BLE001 - the head is sent, so the error ends here
                status = failed(error)
            async with _within(self._stall_limit_s):
                await frames.end(status)
        except _Stalled:
            return frames.abort(), "SLOW_CONSUMER"
        except ConnectionError:  # the caller left while it was written to
            return frames.abort(), "CANCELLED"
        return frames.response, code_of(status).name if status else "OK"

    async def _run(self, request: web.Request, method: Method, frames: _Frames, address: str) -> None:
        limit_s = time_limit_s(request, _FOREVER_S)
        deadline = time.monotonic() + limit_s
        message = await self._read(request, method, frames.codec, limit_s)
        limit_s = max(deadline - time.monotonic(), 0.001)
        messages = self._backends.stream(method, message, metadata_of(request, address), _finite(limit_s))
        await self._relay(frames, method, messages, limit_s)

    async def _read(self, request: web.Request, method: Method, codec: str, limit_s: float) -> bytes:
        """Read the one message of the request."""
        check_version(request)
        encoding = check_encoding(request.headers.get("Connect-Content-Encoding", ""), "connect-content-encoding")
        body = await read_body(request, min(limit_s, self._body_limit_s), MAX_BODY_SIZE + _HEAD.size)
        content = _open_envelope(body, encoding)
        return read_message(codec, content, method.request_type)

    async def _relay(self, frames: _Frames, method: Method, messages: AsyncIterator[bytes], limit_s: float) -> None:
        """Pass messages on until they end, the time is over, or the process is about to end."""
        await frames.begin()
        pump = asyncio.create_task(self._pump(frames, method, messages))
        try:
            await asyncio.wait(
                {pump, self._places.draining}, timeout=_finite(limit_s), return_when=asyncio.FIRST_COMPLETED
            )
            if pump.done():
                return await pump
            if self._places.draining.done():
                raise going_away()
            raise CallTimedOut("The stream was open for as long as its caller allowed.")
        finally:
            await end_task(pump)

    async def _pump(self, frames: _Frames, method: Method, messages: AsyncIterator[bytes]) -> None:
        async with aclosing(messages):  # type: ignore[type-var]  # it is a generator
            async for message in messages:
                try:
                    content = write_message(frames.codec, message, method.response_type)
                except DecodeError:
                    raise BackendFailed(f"The {method.backend} service answered with something else.") from None
                async with _within(self._stall_limit_s):
                    await frames.write(content)
                trace.current().close()


class _Frames:
    """The answer to one stream, message by message."""

    def __init__(self, request: web.Request, content_type: str, is_packed: bool) -> None:
        self.codec = STREAM_TYPES[content_type]
        self._request, self._is_packed = request, is_packed
        headers = {
            **HEADERS,
            "Cache-Control": "no-store, no-transform",
            "X-Accel-Buffering": "no",  # proxies pass each message on at once
            "Connect-Accept-Encoding": ENCODINGS,
            "Connect-Content-Encoding": GZIP if is_packed else IDENTITY,
        }
        self.response = web.StreamResponse(headers=headers)
        self.response.content_type = content_type

    async def begin(self) -> None:
        await self.response.prepare(self._request)

    async def write(self, content: bytes) -> None:
        """Write one message; returns when the connection takes more."""
        flags = 0
        if self._is_packed and len(content) >= WORTH_SIZE:
            content, flags = pack(content), _PACKED
        await self.response.write(_HEAD.pack(flags, len(content)) + content)

    async def end(self, status: Status | None) -> None:
        if not self.response.prepared:
            await self.begin()
        content = end_of_stream(status)
        await self.response.write(_HEAD.pack(_END, len(content)) + content)
        await self.response.write_eof()

    def abort(self) -> web.StreamResponse:
        """Drop the connection with what its reader did not take."""
        if self._request.transport is not None:
            self._request.transport.abort()
        return self.response


class _Stalled(Exception):
    """The caller took nothing for too long."""


@asynccontextmanager
async def _within(limit_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit_s):
            yield
    except TimeoutError:
        raise _Stalled from None


def going_away() -> Draining:
    """Make the refusal of a process that is about to end; callers come back spread over some seconds."""
    wait_s = 0.5 + random.SystemRandom().random() * _DRAIN_SPREAD_S
    return Draining("This gateway is going away; open the stream again.", retry_after_s=wait_s)


def _finite(limit_s: float) -> float | None:
    return None if limit_s == _FOREVER_S else limit_s


def _open_envelope(body: bytes, encoding: str) -> bytes:
    """Give the message of the one envelope in a body."""
    if len(body) < _HEAD.size:
        raise RequestInvalid("The body must hold one enveloped message.", field="body")
    flags, size = _HEAD.unpack_from(body)
    if flags & ~_PACKED or (flags & _PACKED and encoding == IDENTITY):
        raise RequestInvalid(
            "The flags of the envelope must be 0, or 1 for a message in Connect-Content-Encoding.", field="body"
        )
    if size != len(body) - _HEAD.size:
        raise RequestInvalid("The body must hold exactly one enveloped message.", field="body")
    return unpack(body[_HEAD.size :], encoding if flags & _PACKED else IDENTITY)
