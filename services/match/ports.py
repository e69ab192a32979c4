"""What the relay needs from outside: the stores, the doors, the documents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.match.domain.contract import Contract
from services.match.domain.envelope import Envelope
from services.match.domain.errors import RelayError
from services.match.domain.match import Match
from services.match.domain.outcomes import Ending, Outcome

__all__ = [
    "Close", "Conflict", "Due", "Ended", "Incoming", "Join", "MatchStore", "News", "Outgoing", "Outlet", "Receipt",
    "ReceiptRequest", "Record", "Records", "Refusal", "Signer", "Status", "Stored", "Welcome",
]  # fmt: skip


# --- the store -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """A match as the store holds it; `revision` is random, so a store that lost its tail never looks current."""

    revision: bytes
    contract: Contract
    match: Match


@dataclass(frozen=True, slots=True)
class Conflict:
    """The store did not hold what the decision was made on; it holds this (None: nothing)."""

    stored: Stored | None


@dataclass(frozen=True, slots=True)
class Due:
    """What a sweep of one bucket found.

    Args:
        matches: Whose deadline has come.
        closed: Closed, but not yet recorded.
        dead: Processes that were not heard lately, and when each was last heard.
        doubtful: All open matches of the bucket, when some process is dead.
        gap_ms: Time in which no process swept the bucket; its deadlines were moved by it.
    """

    matches: Sequence[str] = ()
    closed: Sequence[str] = ()
    dead: dict[str, int] | None = None
    doubtful: Sequence[str] = ()
    gap_ms: int = 0


class MatchStore(Protocol):
    """Keeps the state of matches; every step is atomic. All raise StoreUnavailable when it cannot be reached."""

    async def load(self, match_id: str) -> Stored | None:
        """Return the newest state."""
        ...

    async def commit(self, before: Stored | None, contract: Contract, match: Match) -> Stored | Conflict:
        """Replace `before` (None: nothing) by `match` if the store still holds it, and tell every process."""
        ...

    async def sweep(self, buckets: Sequence[int], process: str, now_ms: int) -> list[tuple[int, Due]]:
        """Say that `process` lives, and return what is to be done in those buckets that no process just swept."""
        ...

    async def bury(self, bucket: int, process: str, last_heard_ms: int) -> None:
        """Forget a dead process, unless it was heard again."""
        ...

    async def forget(self, match_id: str, expires_s: int) -> None:
        """Take a recorded match off the closed ones; its state stays until the contract expires."""
        ...


class News(Protocol):
    """Tells when another process changed a match."""

    async def watch(self, match_id: str) -> None:
        """Begin to hear about a match; returns once that is certain."""
        ...

    async def unwatch(self, match_id: str) -> None:
        """Stop hearing about it."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """One ended match, as it is kept for good."""

    contract: Contract
    ending: Ending
    counter: int
    phase: int | None
    created_ms: int


class Records(Protocol):
    """Keeps ended matches and announces them; both at least once."""

    async def find(self, match_id: str) -> tuple[Ending, int] | None:
        """Return a recorded ending and the match's last counter."""
        ...

    async def add(self, record: Record) -> None:
        """Write the record, if it is not there yet, and announce the outcome."""
        ...


class Signer(Protocol):
    """Signs the relay's documents."""

    def sign(self, payload: bytes, typ: str) -> str:
        """Return a compact JWS over exactly these bytes."""
        ...


# --- the doors -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Join:
    """The first frame: contract, position and proof of possession."""

    contract: str
    seat: int
    signature: bytes
    door: str
    epoch: bytes
    position: int
    client_version: str


@dataclass(frozen=True, slots=True)
class Close:
    """Ends the match from this seat's side."""

    outcome: Outcome
    dispute_reason: int = 0
    result_digest: bytes = b""
    result_signatures: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceiptRequest:
    """Asks for a signed receipt."""


Incoming = Join | Envelope | Close | ReceiptRequest


@dataclass(frozen=True, slots=True)
class Status:
    """Who owes, who is there, and how long."""

    owing: int | None
    deadline_ms: int | None
    connected: tuple[bool, bool]


@dataclass(frozen=True, slots=True)
class Welcome:
    """Where the match stands."""

    epoch: bytes
    counter: int
    is_recovered: bool
    is_recovering: bool
    status: Status
    min_client_version: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """How the match ended."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class Receipt:
    """A signed receipt."""

    receipt: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused frame; the connection stays."""

    error: RelayError
    counter: int


Outgoing = Welcome | Envelope | Status | Ended | Receipt | Refusal


class Outlet(Protocol):
    """A door's side of one connection."""

    def send(self, acknowledged: int | None, frame: Outgoing | None) -> None:
        """Send one frame; never blocks. A connection that reads too slowly is closed instead."""
        ...

    def close(self, error: RelayError) -> None:
        """Close the connection after what was sent; later sends do nothing."""
        ...
