"""Reads a request of the Connect protocol: its headers, its body, or the query of a GET."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import parse_qsl

from aiohttp import web

from services.gateway.codec import JSON, PROTO
from services.gateway.compression import MAX_BODY_SIZE, too_large
from services.gateway.errors import CallTimedOut, RequestInvalid
from services.kit.limits import resolve_address
from services.kit.settings import Network

Networks: TypeAlias = Sequence[Network]
STREAM = "application/connect+"
STREAM_TYPES = {STREAM + "json": JSON, STREAM + "proto": PROTO}
"""The content types of streams, and the codec of the messages in them."""
PASSED_ON = ("koikoi-client-version",)
"""Headers that go on to the service as they stand, beside the token."""
_TIMEOUT = re.compile(r"[0-9]{1,10}")
_HEADER_TEXT = re.compile(r"[\x20-\x7e]*")
_MAX_HEADER = 128
_CODECS = {"json": JSON, "proto": PROTO}
_MAX_PARAMETERS = 16
_BASE64 = re.compile(r"[A-Za-z0-9_-]*={0,2}")


@dataclass(frozen=True, slots=True)
class Query:
    """The message of a GET."""

    content_type: str
    content: bytes
    encoding: str


def content_type_of(request: web.Request) -> str:
    """Give the content type in lower case without a charset that says nothing; whoever reads it knows what it takes."""
    kind, _, parameters = request.headers.get("Content-Type", "").partition(";")
    kind, parameters = kind.strip().lower(), parameters.replace('"', "").replace(" ", "").lower()
    if parameters and not (kind.endswith("json") and parameters == "charset=utf-8"):
        return f"{kind};{parameters}"
    return kind


def check_version(request: web.Request) -> None:
    """Refuse another version of the protocol; none means this one.

    Raises:
        RequestInvalid: It is not 1.
    """
    if request.headers.get("Connect-Protocol-Version", "1") != "1":
        raise RequestInvalid("Connect-Protocol-Version must be 1.", field="connect-protocol-version")


def time_limit_s(request: web.Request, default_s: float) -> float:
    """Give the seconds that the caller allows, or the default when it does not say.

    Raises:
        RequestInvalid: It is no number.
    """
    text = request.headers.get("Connect-Timeout-Ms")
    if text is None:
        return default_s
    if not _TIMEOUT.fullmatch(text):
        raise RequestInvalid("Connect-Timeout-Ms must be 1 to 10 digits.", field="connect-timeout-ms")
    return int(text) / 1000


def address_of(request: web.Request, trusted_proxies: Networks) -> str:
    """Give the caller's address: the peer's, or the one that trusted hops vouch for."""
    forwarded = ",".join(request.headers.getall("X-Forwarded-For", []))
    return resolve_address(request.remote or "", forwarded, trusted_proxies)


def metadata_of(request: web.Request, address: str) -> dict[str, str]:
    """Say who calls: the token as it stands, the address, and what else services may know.

    Raises:
        RequestInvalid: A header is given twice, or is no printable ASCII.
    """
    metadata = {"x-forwarded-for": address} if address else {}
    for name in ("authorization", *PASSED_ON):
        values = request.headers.getall(name, [])
        if len(values) > 1 or not all(_HEADER_TEXT.fullmatch(value) for value in values):
            raise RequestInvalid(f"{name.title()} must be one header of printable ASCII.", field=name)
        if values and name != "authorization" and len(values[0]) > _MAX_HEADER:
            raise RequestInvalid(f"{name.title()} must have at most {_MAX_HEADER} characters.", field=name)
        if values:
            metadata[name] = values[0]
    return metadata


async def read_body(request: web.Request, limit_s: float, most: int = MAX_BODY_SIZE) -> bytes:
    """Read the body up to a size; one that announces more is not read at all.

    Raises:
        BodyTooLarge: It is longer.
        CallTimedOut: It did not arrive in time.
        RequestInvalid: It ended early.
    """
    if (request.content_length or 0) > most:
        raise too_large()
    body = bytearray()
    try:
        async with asyncio.timeout(limit_s):
            async for chunk in request.content.iter_any():
                body += chunk
                if len(body) > most:
                    raise too_large()
    except TimeoutError:
        raise CallTimedOut("The body did not arrive in time.") from None
    except (web.RequestPayloadError, ConnectionError):
        raise RequestInvalid("The body ended early or is not well framed.", field="body") from None
    return bytes(body)


def read_query(request: web.Request) -> Query | None:
    """Read the parameters of a GET, in any order, beside others; None when its codec is not spoken here.

    Raises:
        RequestInvalid: One is missing, given twice or not what it must be.
    """
    text = request.rel_url.raw_query_string
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except ValueError:
        raise RequestInvalid(
            f"The query must be UTF-8 of at most {_MAX_PARAMETERS} parameters; send bytes with base64=1.", field="query"
        ) from None
    parameters = dict(pairs)
    for name in ("connect", "encoding", "message", "base64", "compression"):
        if sum(key == name for key, _ in pairs) > 1:
            raise RequestInvalid(f"The parameter {name} must be given once.", field=name)
    if parameters.get("connect", "v1") != "v1":
        raise RequestInvalid("The parameter connect must be v1.", field="connect")
    content_type = _CODECS.get(parameters.get("encoding", ""))
    if content_type is None:
        return None
    if "message" not in parameters:
        raise RequestInvalid("The parameter message is missing.", field="message")
    content = parameters["message"].encode()
    if parameters.get("base64") == "1":
        content = _decode(parameters["message"])
    return Query(content_type, content, parameters.get("compression", ""))


def _decode(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        if _BASE64.fullmatch(text):
            return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error:
        pass
    raise RequestInvalid("The parameter message must be URL-safe base64.", field="message")
