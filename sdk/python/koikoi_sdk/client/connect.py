"""Unary calls to the gateway in the Connect protocol, binary form (https://connectrpc.com/docs/protocol)."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo

from koikoi_sdk.client.backoff import Backoff
from koikoi_sdk.client.errors import ServerError, Unreachable

Answer = TypeVar("Answer", bound=Message)
MAX_ANSWER_SIZE = 1 << 20
"""Bytes; a longer answer is refused."""


class ConnectClient:
    """Calls public methods of the services through the gateway.

    A call that cannot reach the gateway, or that the service asks to repeat, is tried again a few times: all public
    calls are safe to repeat (their request_id makes them idempotent).

    Raises (every call):
        ServerError: The service refused, with its typed reason.
        Unreachable: No answer came after all tries.
    """

    def __init__(self, gateway_url: str, *, timeout_s: float = 15.0, tries: int = 4) -> None:
        self._url = gateway_url.rstrip("/")
        self._timeout_s = timeout_s
        self._tries = tries
        self._session: aiohttp.ClientSession | None = None
        self.access_token: Callable[[], str] = str

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
        backoff = Backoff()
        while True:
            try:
                return await self._call_once(method, request, answer_type)
            except ServerError as error:
                is_last = backoff.failures + 1 >= self._tries
                if is_last or error.code != "unavailable":
                    raise
                await asyncio.sleep(backoff.next_delay_s(error.retry_after_s))

    async def get_text(self, path: str) -> str:
        """Read a public document of the gateway (a key set) as text."""
        assert self._session is not None, "use the client as an async context manager"
        try:
            async with self._session.get(self._url + path, allow_redirects=False) as response:
                body = await response.content.read(MAX_ANSWER_SIZE)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise Unreachable(f"cannot reach {self._url}: {type(error).__name__}") from error
        if response.status != 200:
            raise read_error(response.status, body)
        return body.decode()

    async def _call_once(self, method: str, request: Message, answer_type: type[Answer]) -> Answer:
        assert self._session is not None, "use the client as an async context manager"
        headers = {
            "Content-Type": "application/proto",
            "Connect-Protocol-Version": "1",
            "Connect-Timeout-Ms": str(int(self._timeout_s * 1000)),
        }
        if token := self.access_token():
            headers["Authorization"] = f"Bearer {token}"
        try:
            async with self._session.post(
                f"{self._url}/{method}", data=request.SerializeToString(), headers=headers, allow_redirects=False
            ) as response:
                body = await response.content.read(MAX_ANSWER_SIZE)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise Unreachable(f"cannot reach {self._url}: {type(error).__name__}") from error
        if response.status != 200:
            raise read_error(response.status, body)
        answer = answer_type()
        try:
            answer.ParseFromString(body)
        except DecodeError:
            raise Unreachable(f"{self._url} does not speak this protocol") from None
        return answer


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
        kind, value = str(detail["type"]), str(detail["value"])
        content = base64.b64decode(value + "=" * (-len(value) % 4))
        try:
            if kind == "google.rpc.ErrorInfo":
                info = ErrorInfo.FromString(content)
                reason, metadata = info.reason, metadata | dict(info.metadata)
            elif kind == "google.rpc.BadRequest":
                for violation in BadRequest.FromString(content).field_violations:
                    metadata.setdefault("field", violation.field)
            elif kind == "google.rpc.RetryInfo":
                retry_after_s = _seconds(RetryInfo.FromString(content).retry_delay)
        except DecodeError:
            continue
    return reason, metadata, retry_after_s


def _seconds(duration: Duration) -> float:
    return float(duration.seconds) + float(duration.nanos) / 1e9
