"""Calls to the gateway in the Connect protocol, binary form (https://connectrpc.com/docs/protocol)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo

from koikoi_sdk.client.backoff import Backoff
from koikoi_sdk.client.errors import ServerError, Unreachable
from koikoi_sdk.client.streaming import TYPE, error_of, pack, read_envelopes
from koikoi_sdk.client.trace import HEADER, new_traceparent
from koikoi_sdk.client.version import CLIENT_VERSION

Answer = TypeVar("Answer", bound=Message)
MAX_ANSWER_SIZE = 1 << 20
"""Bytes; a longer answer is refused."""
SILENCE_LIMIT_S = 40.0
"""Seconds; a stream says something every 15, so one that is silent for longer is broken."""
LONGEST_WAIT_S = 10.0
"""Seconds; a service that asks for more patience is not waited for: the caller is told."""


class ConnectClient:
    """Calls public methods of the services through the gateway.

    A call that cannot reach the gateway, or that the service asks to repeat, is tried again a few times: all public
    calls are safe to repeat (their request_id makes them idempotent). `access_token` and `traceparent` give what is
    sent with each call; an app that records traces puts its own in place of the latter.

    Raises (every call):
        ServerError: The service refused, with its typed reason.
        Unreachable: No answer came after all tries.
    """

    def __init__(self, gateway_url: str, *, timeout_s: float = 15.0, tries: int = 6) -> None:
        self._url = gateway_url.rstrip("/")
        self._timeout_s = timeout_s
        self._tries = tries
        self._session: aiohttp.ClientSession | None = None
        self.access_token: Callable[[], str] = str
        self.traceparent: Callable[[], str] = new_traceparent

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout_s))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, method: str, request: Message, answer_type: type[Answer]) -> Answer:
        """Call `koikoi.<service>.v1.<Service>/<Method>` and give the answer."""
        backoff, traceparent = Backoff(), self.traceparent()
        while True:
            try:
                return await self._call_once(method, request, answer_type, traceparent)
            except ServerError as error:
                is_last = backoff.failures + 1 >= self._tries
                is_too_long = (error.retry_after_s or 0.0) > LONGEST_WAIT_S
                if is_last or is_too_long or error.code != "unavailable":
                    raise
                await asyncio.sleep(backoff.next_delay_s(error.retry_after_s))

    async def stream(self, method: str, request: Message, answer_type: type[Answer]) -> AsyncIterator[Answer]:
        """Call a server-streaming method and give its messages; nothing is tried again here.

        Close the iterator (`contextlib.aclosing`) to leave the stream early.
        """
        assert self._session is not None, "use the client as an async context manager"
        timeout = aiohttp.ClientTimeout(total=None, connect=self._timeout_s, sock_read=SILENCE_LIMIT_S)
        headers = self._headers(TYPE, self.traceparent())
        content = pack(request.SerializeToString())
        try:
            async with self._session.post(
                f"{self._url}/{method}", data=content, headers=headers, allow_redirects=False, timeout=timeout
            ) as response:
                if response.status != 200:
                    raise read_error(response.status, await _read_bounded(response.content))
                if response.content_type != TYPE:
                    raise Unreachable(f"{self._url} does not speak this protocol")
                async for message, is_last in read_envelopes(response.content, MAX_ANSWER_SIZE):
                    if not is_last:
                        yield answer_type.FromString(message)
                    elif error := error_of(message):
                        raise read_error(response.status, error)
        except DecodeError:
            raise Unreachable(f"{self._url} does not speak this protocol") from None
        except (TimeoutError, OSError, aiohttp.ClientError, ValueError) as error:
            raise Unreachable(f"cannot reach {self._url}: {type(error).__name__}") from error

    async def get_text(self, path: str) -> str:
        """Read a public document of the gateway (a key set) as text."""
        _, body = await self._exchange("GET", path)
        try:
            return body.decode()
        except ValueError:
            raise Unreachable(f"{self._url} does not speak this protocol") from None

    async def _call_once(self, method: str, request: Message, answer_type: type[Answer], traceparent: str) -> Answer:
        headers = self._headers("application/proto", traceparent)
        headers["Connect-Timeout-Ms"] = str(int(self._timeout_s * 1000))
        content_type, body = await self._exchange("POST", f"/{method}", headers, request.SerializeToString())
        try:
            if content_type == headers["Content-Type"]:
                return answer_type.FromString(body)
        except DecodeError:
            pass
        raise Unreachable(f"{self._url} does not speak this protocol")

    def _headers(self, content_type: str, traceparent: str) -> dict[str, str]:
        headers = {
            HEADER: traceparent,
            "Content-Type": content_type,
            "Connect-Protocol-Version": "1",
            "Koikoi-Client-Version": CLIENT_VERSION,
        }
        if token := self.access_token():
            headers["Authorization"] = f"Bearer {token}"
        return headers

    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, content: bytes | None = None
    ) -> tuple[str, bytes]:
        """Give type and body of a good answer."""
        assert self._session is not None, "use the client as an async context manager"
        url = self._url + path
        try:
            async with self._session.request(
                method, url, data=content, headers=headers, allow_redirects=False
            ) as response:
                body = await _read_bounded(response.content)
        except (TimeoutError, OSError, aiohttp.ClientError, ValueError) as error:  # ValueError: an address that is none
            raise Unreachable(f"cannot reach {self._url}: {type(error).__name__}") from error
        if response.status != 200:
            raise read_error(response.status, body)
        if len(body) > MAX_ANSWER_SIZE:
            raise Unreachable(f"{self._url} answered with more than {MAX_ANSWER_SIZE} bytes")
        return response.content_type, body


async def _read_bounded(content: aiohttp.StreamReader) -> bytes:
    """Read to the end, or until it is too much."""
    body = bytearray()
    while len(body) <= MAX_ANSWER_SIZE and (chunk := await content.readany()):
        body += chunk
    return bytes(body)


def read_error(status: int, body: bytes) -> ServerError:
    """Rebuild the typed error from a Connect error body; never fails, whatever the body is."""
    try:
        members = json.loads(body)
        code, message = str(members["code"]), str(members.get("message", ""))
        details = members.get("details", [])
        reason, metadata, retry_after_s = _read_details(details if isinstance(details, list) else [])
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        code = "unavailable" if status in {429, 502, 503, 504} else "unknown"
        return ServerError(f"the gateway answered with HTTP status {status}", code=code)
    return ServerError(message, code=code, reason=reason, metadata=metadata, retry_after_s=retry_after_s)


def _read_details(details: list[Any]) -> tuple[str, dict[str, str], float | None]:
    reason, metadata, retry_after_s = "", dict[str, str](), None
    for detail in details:
        try:
            kind, value = str(detail["type"]), str(detail["value"])
            content = base64.b64decode(value + "=" * (-len(value) % 4))
            if kind == "google.rpc.ErrorInfo":
                info = ErrorInfo.FromString(content)
                reason, metadata = info.reason, metadata | dict(info.metadata)
            elif kind == "google.rpc.BadRequest":
                for violation in BadRequest.FromString(content).field_violations:
                    metadata.setdefault("field", violation.field)
            elif kind == "google.rpc.RetryInfo":
                retry_after_s = _seconds(RetryInfo.FromString(content).retry_delay)
        except (DecodeError, ValueError, TypeError, KeyError):
            continue  # a detail that cannot be read takes nothing from the others
    return reason, metadata, retry_after_s


def _seconds(duration: Duration) -> float:
    return float(duration.seconds) + float(duration.nanos) / 1e9
