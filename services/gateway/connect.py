"""The Connect protocol for unary POST (connectrpc.com/docs/protocol), from the HTTP request to the HTTP answer."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import re
import secrets
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from google.protobuf import descriptor_pool, json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from services.gateway.backends import Backends, CallFailed, own_status
from services.gateway.codec import JSON, PROTO, read_message, write_message
from services.gateway.errors import (
    BackendFailed,
    BodyTooLarge,
    CallTimedOut,
    EncodingUnsupported,
    GatewayError,
    MethodUnknown,
    RequestInvalid,
)
from services.gateway.methods import Method
from services.kit import log
from services.kit.errors import Code
from services.kit.limits import resolve_address
from services.kit.metrics import Metrics
from services.kit.settings import Network

MAX_BODY_SIZE = 64 * 1024
_TIMEOUT = re.compile(r"[0-9]{1,10}")
_HEADER_TEXT = re.compile(r"[\x20-\x7e]*")
_HTTP_STATUS = {
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""On every answer that is about one caller."""
_DETAILS = error_details_pb2.DESCRIPTOR  # makes their descriptors known to the default pool
assert _DETAILS.message_types_by_name, "google.rpc's error details are needed to write them as JSON"


class ConnectDoor:
    """Offers public unary methods: checks the protocol, passes the message on, writes the answer."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        backends: Backends,
        metrics: Metrics,
        *,
        trusted_proxies: tuple[Network, ...],
        call_limit_s: float,
    ) -> None:
        self._methods, self._backends, self._metrics = methods, backends, metrics
        self._trusted_proxies, self._call_limit_s = trusted_proxies, call_limit_s

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one call, whatever it is; counts and logs it once."""
        started = time.perf_counter()
        method = self._methods.get(request.path)
        response, code = await self._answer(request, method)
        elapsed_s = time.perf_counter() - started
        name = method.name if method else "unknown"  # a path the caller chose is no label
        self._metrics.rpcs.labels(name, code).inc()
        self._metrics.rpc_seconds.labels(name).observe(elapsed_s)
        log.get().info("gateway.rpc", method=name, outcome=code, status=response.status, ms=round(elapsed_s * 1000, 1))
        return response

    async def _answer(self, request: web.Request, method: Method | None) -> tuple[web.Response, str]:
        if method is None:
            unknown = MethodUnknown("There is no such public method.")
            return error_response(own_status(unknown), http_status=404), "UNIMPLEMENTED"
        if request.method != "POST":
            return web.Response(status=405, headers={**HEADERS, "Allow": "POST"}), "METHOD_NOT_ALLOWED"
        content_type = _content_type(request)
        if content_type is None:
            return web.Response(status=415, headers={**HEADERS, "Accept-Post": f"{JSON}, {PROTO}"}), "UNSUPPORTED_TYPE"
        try:
            content = await self._call(request, method, content_type)
        except GatewayError as error:
            status = own_status(error)
        except CallFailed as error:
            status = error.status
        else:
            return web.Response(body=content, content_type=content_type, headers=HEADERS), "OK"
        return error_response(status), _code(status).name

    async def _call(self, request: web.Request, method: Method, content_type: str) -> bytes:
        limit_s = self._limit_s(request)
        metadata = self._metadata(request)
        deadline = time.monotonic() + limit_s
        try:
            async with asyncio.timeout(limit_s):
                body = await _read_body(request)
        except TimeoutError:
            raise CallTimedOut("The body did not arrive in time.") from None
        message = read_message(content_type, body, method.request_type)
        content = await self._backends.call(method, message, metadata, max(deadline - time.monotonic(), 0.001))
        try:
            return write_message(content_type, content, method.response_type)
        except DecodeError:
            raise BackendFailed(f"The {method.backend} service answered with something else.") from None

    def _limit_s(self, request: web.Request) -> float:
        if request.headers.get("Connect-Protocol-Version", "1") != "1":
            raise RequestInvalid("Connect-Protocol-Version must be 1.", field="connect-protocol-version")
        encoding = request.headers.get("Content-Encoding", "identity")
        if encoding not in ("identity", ""):
            raise EncodingUnsupported("The only Content-Encoding read here is identity.", field="content-encoding")
        text = request.headers.get("Connect-Timeout-Ms")
        if text is None:
            return self._call_limit_s
        if not _TIMEOUT.fullmatch(text):
            raise RequestInvalid("Connect-Timeout-Ms must be 1 to 10 digits.", field="connect-timeout-ms")
        return min(int(text) / 1000, self._call_limit_s)

    def _metadata(self, request: web.Request) -> dict[str, str]:
        """Pass on who calls: the token as it stands, and the one address that trusted hops vouch for."""
        forwarded = ",".join(request.headers.getall("X-Forwarded-For", []))
        address = resolve_address(request.remote or "", forwarded, self._trusted_proxies)
        metadata = {"x-forwarded-for": address} if address else {}
        tokens = request.headers.getall("Authorization", [])
        if len(tokens) > 1 or not all(_HEADER_TEXT.fullmatch(token) for token in tokens):
            raise RequestInvalid("Authorization must be one header of printable ASCII.", field="authorization")
        if tokens:
            metadata["authorization"] = tokens[0]
        return metadata


def error_response(status: Status, http_status: int | None = None) -> web.Response:
    """Write a status as Connect's error JSON, with the HTTP status of its code and Retry-After where known."""
    code = _code(status)
    name = "canceled" if code is Code.CANCELLED else code.name.lower()
    body: dict[str, Any] = {"code": name, "message": status.message}
    headers = dict(HEADERS)
    if status.details:
        body["details"] = [_detail(detail) for detail in status.details]
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            headers["Retry-After"] = str(max(1, math.ceil(retry.retry_delay.ToTimedelta().total_seconds())))
    return web.Response(
        status=http_status or _HTTP_STATUS[code],
        body=json.dumps(body, ensure_ascii=False).encode(),
        content_type=JSON,
        headers=headers,
    )


@web.middleware
async def speak_json(request: web.Request, handler: Any) -> web.StreamResponse:
    """Turn what nobody answered into a JSON error without a trace; the trace goes to the log, once."""
    try:
        answer: web.StreamResponse = await handler(request)
    except web.HTTPNotFound:
        unknown = MethodUnknown("There is nothing here; public methods are /<package>.<Service>/<Method>.")
        return error_response(own_status(unknown), http_status=404)
    except web.HTTPMethodNotAllowed as error:
        return web.Response(status=405, headers={**HEADERS, "Allow": error.headers["Allow"]})
    except GatewayError as error:
        return error_response(own_status(error))
    except CallFailed as error:
        return error_response(error.status)
    except Exception as error:  # noqa: BLE001 - the edge is where every error ends
        error_id = secrets.token_hex(8)
        log.get().error("gateway.failed", error_id=error_id, **log.describe(error))
        return error_response(own_status(BackendFailed(f"Internal error {error_id}.")))
    return answer


async def _read_body(request: web.Request) -> bytes:
    """Read the body up to the limit; one that announces more is not read at all."""
    if (request.content_length or 0) > MAX_BODY_SIZE:
        raise _too_large()
    body = bytearray()
    try:
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MAX_BODY_SIZE:
                raise _too_large()
    except (web.RequestPayloadError, ConnectionError):
        raise RequestInvalid("The body ended early or is not well framed.", field="body") from None
    return bytes(body)


def _too_large() -> BodyTooLarge:
    return BodyTooLarge(f"The body must be at most {MAX_BODY_SIZE} bytes.", metadata={"limit": str(MAX_BODY_SIZE)})


def _content_type(request: web.Request) -> str | None:
    """Give the codec of the body, None for one that is not spoken here."""
    kind, _, parameters = request.headers.get("Content-Type", "").partition(";")
    kind, parameters = kind.strip().lower(), parameters.replace('"', "").replace(" ", "").lower()
    if kind == JSON and parameters in ("", "charset=utf-8"):
        return JSON
    return PROTO if kind == PROTO and not parameters else None


def _code(status: Status) -> Code:
    try:
        return Code(status.code)
    except ValueError:  # OK or a number that does not exist: no status of an error
        return Code.UNKNOWN


def _detail(detail: AnyMessage) -> dict[str, Any]:
    """Write one detail: its type, its bytes in unpadded base64, and for readers its JSON."""
    name = detail.type_url.rpartition("/")[2]
    written: dict[str, Any] = {"type": name, "value": base64.b64encode(detail.value).rstrip(b"=").decode()}
    try:
        message_type = GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))
        written["debug"] = json_format.MessageToDict(message_type.FromString(detail.value))
    except (KeyError, DecodeError):  # a type nobody here knows: the bytes are enough
        pass
    return written
