"""All that one seat must keep of a match: plain data that `snapshot` writes and reads exactly.

What can be derived is not kept. The secrets are the X25519 secret (until the channel is open), the
coin share of device A (until it is shown), the channel's keys and the outbox (until the match is
closed) and the seed of each deal (until its audit is done). The audit's master is never here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from koikoi_sdk.poker import DealState
from koikoi_sdk.rules import Board, Match
from koikoi_sdk.table.codec import Kind, Phase
from koikoi_sdk.table.envelope import Channel
from koikoi_sdk.table.errors import Reason
from koikoi_sdk.table.statement import Statement


@dataclass(frozen=True, slots=True, repr=False)
class Outgoing:
    """A message of this seat as it travels; it is re-sent unchanged until it was acknowledged or answered."""

    counter: int
    phase: Phase
    envelope: bytes


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the peer signed (or, when it signed nothing, sent) and why it was refused.

    Whoever has the contract can check the signature over `session_id` and `body`. `answered` is this device's own
    message before, body and signature: `head`, which the peer signed in its turn, is the head after it. So a bad S2
    is shown together with the S1 it shuffles, and no secret is needed.
    """

    reason: Reason
    check: str
    head: bytes = field(repr=False)
    body: bytes = field(default=b"", repr=False)
    signature: bytes = field(default=b"", repr=False)
    session_id: bytes = field(default=b"", repr=False)
    answered: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class Round:
    """A round being played or audited. `deals` are the attempts not audited yet, oldest first."""

    number: int
    dealer: int
    attempts: int = 0
    deals: list[DealState] = field(default_factory=list)
    board: Board | None = None
    asked: bytes = b""
    """The peer's nonce for this device's commitment."""
    restarts: list[int] = field(default_factory=lambda: [0, 0])
    """Restarts of the present attempt's audit, by seat."""


@dataclass(slots=True)
class State:
    """A seat's state: `due` is the kind of message owed next, `counter` its number."""

    due: Kind | None = Kind.HELLO
    counter: int = 0
    head: bytes = b""
    secret: bytearray = field(default_factory=bytearray)
    share: bytes = b""
    """The coin share of device A: known to A from the start, to B from COIN_OPEN on."""
    hellos: tuple[bytes, ...] = ()
    channel: Channel | None = None
    fingerprint: bytes = b""
    """The hash of the peer's last body, by which equivocation is recognised."""
    outbox: Outgoing | None = None
    is_resigning: bool = False
    match: Match | None = None
    round: Round | None = None
    results: tuple[bytes, ...] = ()
    statement: Statement | None = None
    signatures: dict[int, bytes] = field(default_factory=dict)
    evidence: Evidence | None = None
    is_closed: bool = False
