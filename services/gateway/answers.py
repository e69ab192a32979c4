"""How the gateway writes a refusal: Connect's error JSON with every detail, and the HTTP status of its code."""

from __future__ import annotations

import base64
import json
import math
import secrets
from typing import Any

from aiohttp import web
from google.protobuf import descriptor_pool, json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from services.gateway.codec import JSON
from services.gateway.errors import BackendFailed, GatewayError
from services.kit import log
from services.kit.errors import Code
from services.kit.grpc_server import rich_status

DOMAIN = "gateway.koikoi"
HTTP_STATUS = {
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


def own_status(error: GatewayError) -> Status:
    """Give a refusal of the gateway itself as a status."""
    return rich_status(error, DOMAIN)


def failed(error: Exception) -> Status:
    """Give the status of a fault nobody foresaw, without a trace; the trace goes to the log, once."""
    error_id = secrets.token_hex(8)
    log.get().error("gateway.failed", error_id=error_id, **log.describe(error))
    return own_status(BackendFailed(f"Internal error {error_id}."))


def error_response(status: Status, http_status: int | None = None) -> web.Response:
    """Write a status as an HTTP answer, with Retry-After where known."""
    headers = dict(HEADERS)
    if (retry_after := retry_after_s(status)) is not None:
        headers["Retry-After"] = str(retry_after)
    return web.Response(
        status=http_status or HTTP_STATUS[code_of(status)],
        body=json.dumps(error_members(status), ensure_ascii=False).encode(),
        content_type=JSON,
        headers=headers,
    )


def end_of_stream(status: Status | None) -> bytes:
    """Write the last message of a stream: what went wrong, if anything, and after how many seconds to come back."""
    if status is None:
        return b"{}"
    end: dict[str, Any] = {"error": error_members(status)}
    if (retry_after := retry_after_s(status)) is not None:
        end["metadata"] = {"retry-after": [str(retry_after)]}
    return json.dumps(end, ensure_ascii=False).encode()


def error_members(status: Status) -> dict[str, Any]:
    """Give Connect's error object."""
    code = code_of(status)
    name = "canceled" if code is Code.CANCELLED else code.name.lower()
    members: dict[str, Any] = {"code": name, "message": status.message}
    if status.details:
        members["details"] = [_detail(detail) for detail in status.details]
    return members


def retry_after_s(status: Status) -> int | None:
    """Give the whole seconds after which the same call may succeed, at least 1; None when not known."""
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            delay = retry.retry_delay
            return max(1, math.ceil(int(delay.seconds) + int(delay.nanos) / 1e9))
    return None


def reason_of(status: Status) -> str:
    """Give the typed reason of a status; empty when it has none."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return str(info.reason)
    return ""


def code_of(status: Status) -> Code:
    """Give the code of an error's status."""
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
