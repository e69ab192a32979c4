"""Why the relay refuses or closes. The one table of reasons and close codes; docs/errors.md is checked against it.

    RelayError                   everything below; `close_code` says what happens to the connection
    +-- 4000-4099                closed, come back after the retry delay
    +-- 4500-4599                closed, stop: the same attempt cannot succeed
    +-- 0                        one frame is refused, the connection stays

The same number is the WebSocket close code and, on gRPC, `ErrorInfo.metadata["close_code"]`. Standard codes beside it:
1011 (a fault of the relay, come back) and 1001/1006 (the connection broke, come back).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from services.kit.errors import Code, ServiceError

__all__ = [
    "REASONS",
    "ContractInvalid",
    "Draining",
    "EnvelopeConflict",
    "EnvelopeInvalid",
    "FrameInvalid",
    "JoinSignatureInvalid",
    "JoinTimeout",
    "MatchClosed",
    "MatchUnknown",
    "NotYourTurn",
    "RateLimited",
    "RelayError",
    "ResultProofInvalid",
    "SlowConsumer",
    "StoreUnavailable",
    "Superseded",
]  # fmt: skip


class RelayError(ServiceError):
    """A refusal of the relay."""

    domain = "match.koikoi"
    close_code: ClassVar[int] = 0

    def __init__(
        self,
        message: str,
        *,
        metadata: Mapping[str, str] = MappingProxyType({}),
        retry_after_s: float | None = None,
        field: str | None = None,
    ) -> None:
        code = {"close_code": str(self.close_code)} if self.close_code else {}
        super().__init__(message, metadata={**code, **metadata}, retry_after_s=retry_after_s, field=field)


class JoinTimeout(RelayError):
    """The first frame did not come in time."""

    code, reason, close_code = Code.DEADLINE_EXCEEDED, "JOIN_TIMEOUT", 4001


class SlowConsumer(RelayError):
    """The connection read too slowly; everything durable is answered again after a join."""

    code, reason, close_code = Code.RESOURCE_EXHAUSTED, "SLOW_CONSUMER", 4002


class Draining(RelayError):
    """The process is shutting down; another one serves the match."""

    code, reason, close_code = Code.UNAVAILABLE, "DRAINING", 4003


class StoreUnavailable(RelayError):
    """The store or the lobby's keys cannot be read, or the store lost something: join again and say your position."""

    code, reason, close_code = Code.UNAVAILABLE, "STORE_UNAVAILABLE", 4004


class RateLimited(RelayError):
    """Too many connections or handshakes."""

    code, reason, close_code = Code.RESOURCE_EXHAUSTED, "RATE_LIMITED", 4005


class MatchClosed(RelayError):
    """The match has ended; the outcome came before."""

    code, reason, close_code = Code.FAILED_PRECONDITION, "MATCH_CLOSED", 4500


class FrameInvalid(RelayError):
    """A frame is malformed, too large, or not allowed now."""

    code, reason, close_code = Code.INVALID_ARGUMENT, "FRAME_INVALID", 4501


class ContractInvalid(RelayError):
    """The contract's signature, type, issuer, times or content is not valid here."""

    code, reason, close_code = Code.INVALID_ARGUMENT, "CONTRACT_INVALID", 4502


class JoinSignatureInvalid(RelayError):
    """The signature over the challenge does not verify, or names a door this relay does not have."""

    code, reason, close_code = Code.UNAUTHENTICATED, "JOIN_SIGNATURE_INVALID", 4503


class MatchUnknown(RelayError):
    """No state of this match exists and it may not be created any more."""

    code, reason, close_code = Code.NOT_FOUND, "MATCH_UNKNOWN", 4504


class Superseded(RelayError):
    """A newer connection of the same seat took over."""

    code, reason, close_code = Code.ABORTED, "SUPERSEDED", 4505


class NotYourTurn(RelayError):
    """The envelope's number is not the one this seat owes; the refusal holds the number the relay expects."""

    code, reason = Code.FAILED_PRECONDITION, "NOT_YOUR_TURN"


class EnvelopeConflict(RelayError):
    """Another envelope is already stored under this number."""

    code, reason = Code.ALREADY_EXISTS, "ENVELOPE_CONFLICT"


class EnvelopeInvalid(RelayError):
    """The envelope's size or phase is not allowed here."""

    code, reason = Code.INVALID_ARGUMENT, "ENVELOPE_INVALID"


class ResultProofInvalid(RelayError):
    """The shown result signatures do not verify."""

    code, reason = Code.INVALID_ARGUMENT, "RESULT_PROOF_INVALID"


REASONS: tuple[type[RelayError], ...] = (
    JoinTimeout, SlowConsumer, Draining, StoreUnavailable, RateLimited, MatchClosed, FrameInvalid, ContractInvalid,
    JoinSignatureInvalid, MatchUnknown, Superseded, NotYourTurn, EnvelopeConflict, EnvelopeInvalid, ResultProofInvalid,
)  # fmt: skip
