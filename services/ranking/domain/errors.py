"""Everything ranking refuses, and why. `reason` is the name in the proto's enum `Reason`."""

from __future__ import annotations

from services.kit.errors import Code, ServiceError


class RankingError(ServiceError):
    """The base of all refusals of this service."""

    domain = "ranking.koikoi"


class FieldInvalid(RankingError):
    """A field is missing or out of range; its metadata names field and limit."""

    code = Code.INVALID_ARGUMENT
    reason = "FIELD_INVALID"


class ContractInvalid(RankingError):
    """The contract's signature, type, issuer or content is not valid here."""

    code = Code.PERMISSION_DENIED
    reason = "CONTRACT_INVALID"


class ContractTooOld(RankingError):
    """The contract was made more than 7 days ago."""

    code = Code.FAILED_PRECONDITION
    reason = "CONTRACT_TOO_OLD"


class StatementMalformed(RankingError):
    """The statement is not in the fixed binary layout of docs/protocol.md section 18."""

    code = Code.INVALID_ARGUMENT
    reason = "STATEMENT_MALFORMED"


class ContractMismatch(RankingError):
    """The statement belongs to another contract."""

    code = Code.PERMISSION_DENIED
    reason = "CONTRACT_MISMATCH"


class StatementImpossible(RankingError):
    """The statement's content cannot follow from the contract's rules."""

    code = Code.INVALID_ARGUMENT
    reason = "STATEMENT_IMPOSSIBLE"


class SignatureInvalid(RankingError):
    """A signature does not verify under its seat's device key; metadata names the seat."""

    code = Code.PERMISSION_DENIED
    reason = "SIGNATURE_INVALID"


class ResultConflict(RankingError):
    """Another result of this match was recorded before; this one was noted, not recorded."""

    code = Code.ALREADY_EXISTS
    reason = "RESULT_CONFLICT"


class ResultNotFound(RankingError):
    """No result of this match is recorded."""

    code = Code.NOT_FOUND
    reason = "RESULT_NOT_FOUND"


class RateLimited(RankingError):
    """Too many calls; wait for the retry delay."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "RATE_LIMITED"


def field_invalid(field: str, limit: str) -> FieldInvalid:
    """Make the refusal of a request field that is not what it must be."""
    return FieldInvalid(f"{field} must be {limit}.", field=field, metadata={"field": field, "limit": limit})
