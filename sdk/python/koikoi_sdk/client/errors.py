"""Everything the client can fail with.

KoikoiError
├── LocalProtocolError     we did something that is not allowed now; nothing was sent
├── RemoteProtocolError    the opponent's message is illegal or a proof fails; carries the evidence
├── ServerError            a service refused a call, with a typed reason
│   └── Unreachable        no answer came at all; safe to try again
├── RelayClosed            the relay ended the connection; `is_retryable` says whether to come back
└── StorageError           the state on disk cannot be used
"""

from __future__ import annotations

from collections.abc import Mapping

from koikoi_sdk.table import Evidence
from koikoi_sdk.table import LocalProtocolError as TableLocalProtocolError

RETRYABLE_CLOSE_CODES = range(4000, 4500)
"""Close codes after which a client comes back; from 4500 on it stops (docs/errors.md)."""


class KoikoiError(Exception):
    """Is the base of all errors of the client."""


class LocalProtocolError(KoikoiError, TableLocalProtocolError):
    """We did something that is not allowed now; nothing was sent and nothing changed."""


class RemoteProtocolError(KoikoiError):
    """The opponent's message is illegal or a proof fails; the match was closed as disputed.

    Without a message in the evidence nobody is accused: a device's own deals or audits were too many.
    """

    def __init__(self, evidence: Evidence) -> None:
        what = "the opponent broke the protocol" if evidence.body else "the match cannot go on"
        super().__init__(f"{what}: {evidence.check} (reason {int(evidence.reason)})")
        self.evidence = evidence


class StorageError(KoikoiError):
    """The state on disk is missing, damaged or in use by another process."""


class ServerError(KoikoiError):
    """A service refused a call.

    `code` is the Connect code (lower case), `reason` the service's typed reason, `metadata` names field and limit,
    `retry_after_s` is the service's hint, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{message} ({reason or code})")
        self.code = code
        self.reason = reason
        self.metadata = dict(metadata or {})
        self.retry_after_s = retry_after_s

    @property
    def is_transient(self) -> bool:
        """Tell whether the same call may succeed later without any change."""
        return self.code in {"unavailable", "deadline_exceeded", "resource_exhausted"}


class Unreachable(ServerError):
    """No usable answer came: the connection failed or timed out."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unavailable", reason="UNREACHABLE")


class RelayClosed(KoikoiError):
    """The relay ended the connection, or it broke (`close_code` 0)."""

    def __init__(self, close_code: int, reason: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(f"the relay closed the connection: {reason or 'connection lost'} ({close_code})")
        self.close_code = close_code
        self.reason = reason
        self.retry_after_s = retry_after_s

    @property
    def is_retryable(self) -> bool:
        """Tell whether to connect again; a broken connection always is."""
        return self.close_code < 4000 or self.close_code in RETRYABLE_CLOSE_CODES
