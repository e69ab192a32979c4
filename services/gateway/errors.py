"""What the gateway itself refuses; everything else it passes on as the services said it.

A call to a path that is not a public method, with another HTTP method or another content type, is
answered with the HTTP status that the Connect protocol asks for (404, 405, 415).
"""

from __future__ import annotations

from services.kit.errors import Code, ServiceError


class GatewayError(ServiceError):
    """The base of the gateway's own refusals."""

    domain = "gateway.koikoi"


class RequestInvalid(GatewayError):
    """The body or a header is not what the method or the protocol takes; `field` names where."""

    code = Code.INVALID_ARGUMENT
    reason = "REQUEST_INVALID"


class BodyTooLarge(GatewayError):
    """The body is longer than any method needs; it was not read."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "BODY_TOO_LARGE"


class MethodUnknown(GatewayError):
    """There is no such public method."""

    code = Code.UNIMPLEMENTED
    reason = "METHOD_UNKNOWN"


class EncodingUnsupported(GatewayError):
    """The message is compressed in a way the gateway does not read; metadata names what it reads."""

    code = Code.UNIMPLEMENTED
    reason = "ENCODING_UNSUPPORTED"


class TooManyStreams(GatewayError):
    """The caller's address holds as many open streams as it may; close one, or wait for the retry delay."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "TOO_MANY_STREAMS"


class GatewayFull(GatewayError):
    """This gateway holds as many open streams as it may; try again after the retry delay."""

    code = Code.UNAVAILABLE
    reason = "GATEWAY_FULL"


class Draining(GatewayError):
    """This gateway is going away and ended the stream; open it again after the retry delay."""

    code = Code.UNAVAILABLE
    reason = "DRAINING"


class PageUnknown(GatewayError):
    """There is no such page."""

    code = Code.NOT_FOUND
    reason = "PAGE_UNKNOWN"


class BackendUnavailable(GatewayError):
    """The service behind the method does not answer now; try again."""

    code = Code.UNAVAILABLE
    reason = "BACKEND_UNAVAILABLE"


class CallTimedOut(GatewayError):
    """The call took longer than the caller or the gateway allows; it may have had an effect."""

    code = Code.DEADLINE_EXCEEDED
    reason = "CALL_TIMED_OUT"


class BackendFailed(GatewayError):
    """The service behind the method failed without saying why."""

    code = Code.INTERNAL
    reason = "BACKEND_FAILED"
