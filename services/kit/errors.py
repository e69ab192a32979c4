"""The one error type that crosses an RPC. Standard library only, so that every `domain` may use it.

    ServiceError                 a refusal with a reason; each service subclasses it in domain/errors.py
    +-- Unauthenticated          the access token is missing, expired or not valid here
    +-- DocumentInvalid          a signed document does not verify
    +-- KeysUnavailable          an issuer's public keys cannot be read now
    +-- StoreUnavailable         Postgres or Redis cannot be reached now
    +-- RequestMalformed         the request's bytes are no message of its type

Anything else that leaves a handler becomes INTERNAL without detail (`grpc_server`).
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

__all__ = [
    "Code", "DocumentInvalid", "KeysUnavailable", "RequestMalformed", "ServiceError", "StoreUnavailable",
    "Unauthenticated",
]  # fmt: skip


class Code(enum.IntEnum):
    """The status codes of gRPC, by number."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class ServiceError(Exception):
    """A refusal that tells the caller why and what to do.

    Args:
        message: One sentence for the person at the keyboard. It never holds a secret, a token or a key.
        metadata: Machine-readable facts, for example `{"limit": "20"}`.
        retry_after_s: When the same call may succeed, in seconds from now.
        field: The request field at fault, as the proto names it.
    """

    code: ClassVar[Code] = Code.UNKNOWN
    reason: ClassVar[str] = "UNKNOWN"
    domain: ClassVar[str] = ""  # empty: the service that raises it fills in its own

    def __init__(
        self,
        message: str,
        *,
        metadata: Mapping[str, str] = MappingProxyType({}),
        retry_after_s: float | None = None,
        field: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.metadata = dict(metadata)
        self.retry_after_s = retry_after_s
        self.field = field


class Unauthenticated(ServiceError):
    """The access token is missing, expired or not valid here; refresh the session or sign in again."""

    code = Code.UNAUTHENTICATED
    reason = "ACCESS_TOKEN_INVALID"


class DocumentInvalid(ServiceError):
    """A signed document is malformed, of another type, from another issuer, or its signature does not verify."""

    code = Code.INVALID_ARGUMENT
    reason = "DOCUMENT_INVALID"


class KeysUnavailable(ServiceError):
    """An issuer's public keys cannot be read now, so nothing can be said about its documents; try again."""

    code = Code.UNAVAILABLE
    reason = "KEYS_UNAVAILABLE"


class StoreUnavailable(ServiceError):
    """Postgres or Redis cannot be reached now; nothing is known to have changed, so repeat the call."""

    code = Code.UNAVAILABLE
    reason = "STORE_UNAVAILABLE"


class RequestMalformed(ServiceError):
    """The request's bytes are no message of the method's type."""

    code = Code.INVALID_ARGUMENT
    reason = "FIELD_INVALID"
