"""Messages of a server-streaming call in the Connect protocol: envelopes of flags, length and content."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncIterator

import aiohttp

from koikoi_sdk.client.errors import Unreachable

TYPE = "application/connect+proto"
_HEAD = struct.Struct(">BI")
_END = 0b10


def pack(content: bytes) -> bytes:
    """Give the one envelope of a request."""
    return _HEAD.pack(0, len(content)) + content


async def read_envelopes(body: aiohttp.StreamReader, max_size: int) -> AsyncIterator[tuple[bytes, bool]]:
    """Give the content of each envelope, and whether it is the last, which is JSON.

    Raises:
        Unreachable: The stream breaks off, or holds something else.
    """
    while True:
        try:
            flags, size = _HEAD.unpack(await body.readexactly(_HEAD.size))
            if flags not in (0, _END) or size > max_size:
                raise Unreachable("the gateway's stream does not speak this protocol")
            content = await body.readexactly(size)
        except EOFError:  # IncompleteReadError is one
            raise Unreachable("the stream broke off") from None
        yield content, flags == _END
        if flags == _END:
            return


def error_of(end: bytes) -> bytes | None:
    """Give the error that ended a stream, as the body of a failed unary call; None when it ended well.

    Raises:
        Unreachable: It is no end of a stream.
    """
    try:
        members = json.loads(end)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise Unreachable("the gateway's stream does not speak this protocol")
    return json.dumps(members["error"]).encode() if "error" in members else None
