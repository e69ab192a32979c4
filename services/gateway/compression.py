"""gzip both ways, the one compression besides `identity`. A body is never unpacked further than the limit of bodies."""

from __future__ import annotations

import gzip
import zlib

from services.gateway.errors import BodyTooLarge, EncodingUnsupported, RequestInvalid

GZIP, IDENTITY = "gzip", "identity"
ENCODINGS = f"{GZIP}, {IDENTITY}"
MAX_BODY_SIZE = 64 * 1024
"""Of a message, before and after unpacking."""
WORTH_SIZE = 1024
"""A shorter answer is sent as it is: the head of gzip and the time cost more than they save."""
_LEVEL = 4
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


def check_encoding(encoding: str, field: str) -> str:
    """Give the encoding of a message, `gzip` or `identity`; `field` names the header or parameter it comes from.

    Raises:
        EncodingUnsupported: It is another.
    """
    if encoding in ("", IDENTITY):
        return IDENTITY
    if encoding != GZIP:
        raise EncodingUnsupported(f"{field} must be one of: {ENCODINGS}.", field=field, metadata={"known": ENCODINGS})
    return GZIP


def unpack(content: bytes, encoding: str) -> bytes:
    """Unpack a message; an empty one is never packed.

    Raises:
        BodyTooLarge: It is longer than the limit; the rest was not unpacked.
        RequestInvalid: It is not one whole gzip member.
    """
    if encoding == IDENTITY or not content:
        return content
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        message = unpacker.decompress(content, MAX_BODY_SIZE + 1)
    except zlib.error:
        raise RequestInvalid("The message is not gzip.", field="body") from None
    if len(message) > MAX_BODY_SIZE:
        raise too_large()
    if not unpacker.eof or unpacker.unused_data:
        raise RequestInvalid("The message is not one whole gzip member.", field="body")
    return message


def pack(content: bytes) -> bytes:
    """Compress an answer."""
    return gzip.compress(content, _LEVEL, mtime=0)


def wants_gzip(accepted: str | None, sent: str) -> bool:
    """Say whether the caller prefers gzip.

    Args:
        accepted: The list of encodings it accepts, best first; None when it does not say.
        sent: The encoding of its own message, which it accepts when it does not say.
    """
    if accepted is None:
        return sent == GZIP
    for choice in accepted.split(","):
        name, _, quality = (part.strip().lower() for part in choice.partition(";"))
        if name in (GZIP, IDENTITY) and quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            return name == GZIP
    return False


def too_large() -> BodyTooLarge:
    """Make the refusal of a message over the limit."""
    return BodyTooLarge(f"The body must be at most {MAX_BODY_SIZE} bytes.", metadata={"limit": str(MAX_BODY_SIZE)})
