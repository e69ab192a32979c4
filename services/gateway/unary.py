"""Unary calls of the Connect protocol: POST for every method, GET for those without side effects."""

from __future__ import annotations

import time

from aiohttp import web
from google.protobuf.message import DecodeError

from services.gateway.answers import HEADERS
from services.gateway.backends import Backends
from services.gateway.codec import JSON, PROTO, read_message, write_message
from services.gateway.compression import (
    ENCODINGS,
    GZIP,
    MAX_BODY_SIZE,
    WORTH_SIZE,
    check_encoding,
    pack,
    too_large,
    unpack,
    wants_gzip,
)
from services.gateway.errors import BackendFailed
from services.gateway.incoming import (
    Networks,
    Query,
    address_of,
    check_version,
    content_type_of,
    metadata_of,
    read_body,
    read_query,
    time_limit_s,
)
from services.gateway.methods import Method

_SHARED_AGE_S = 5
"""How long anybody may keep the answer to a GET that showed no token."""


class UnaryDoor:
    """Answers unary calls: reads the message, passes it on, writes the answer."""

    def __init__(self, backends: Backends, *, trusted_proxies: Networks, call_limit_s: float) -> None:
        self._backends, self._trusted_proxies, self._call_limit_s = backends, trusted_proxies, call_limit_s

    async def answer(self, request: web.Request, method: Method) -> web.Response | None:
        """Answer one call; None when its codec is not spoken here.

        Raises:
            GatewayError: The request is not what the protocol or the method takes.
            CallFailed: The service refused.
        """
        is_get = request.method == "GET"
        query = read_query(request) if is_get else _read_head(request)
        if query is None:
            return None
        check_version(request)
        limit_s = min(time_limit_s(request, self._call_limit_s), self._call_limit_s)
        metadata = metadata_of(request, address_of(request, self._trusted_proxies))
        deadline = time.monotonic() + limit_s
        encoding = check_encoding(query.encoding, "compression" if is_get else "content-encoding")
        content = query.content if is_get else await read_body(request, limit_s)
        if len(content) > MAX_BODY_SIZE:
            raise too_large()
        message = read_message(query.content_type, unpack(content, encoding), method.request_type)
        answer = await self._backends.call(method, message, metadata, max(deadline - time.monotonic(), 0.001))
        try:
            body = write_message(query.content_type, answer, method.response_type)
        except DecodeError:
            raise BackendFailed(f"The {method.backend} service answered with something else.") from None
        return _response(request, query.content_type, body, encoding)


def _read_head(request: web.Request) -> Query | None:
    """Read what a POST says of its body, not the body itself."""
    content_type = content_type_of(request)
    if content_type not in (JSON, PROTO):
        return None
    return Query(content_type, b"", request.headers.get("Content-Encoding", ""))


def _response(request: web.Request, content_type: str, body: bytes, sent: str) -> web.Response:
    headers = {**HEADERS, "Accept-Encoding": ENCODINGS}
    if request.method == "GET":
        headers["Vary"] = "Accept-Encoding, Authorization"
        if "Authorization" not in request.headers:
            headers["Cache-Control"] = f"public, max-age={_SHARED_AGE_S}"
    if len(body) >= WORTH_SIZE and wants_gzip(request.headers.get("Accept-Encoding"), sent):
        body = pack(body)
        headers["Content-Encoding"] = GZIP
    return web.Response(body=body, content_type=content_type, headers=headers)
