"""What can go wrong at the table, and who is to blame (docs/protocol.md sections 10 and 19).

    TransportError         the bytes cannot be read; the server may have made them, nobody is accused
    RemoteProtocolError    the opponent signed something that breaks the protocol or the rules
    LocalProtocolError     the calling code asks for something that is not due; nothing was changed
    ContractError          the match contract cannot be played; do not connect

Only the first two come from received bytes, and `Seat.receive` raises neither: it tells.
"""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """Names the reason byte with which a match is closed as disputed (section 19)."""

    FORM = 1
    """Length, padding, unknown or unexpected type, non-canonical point or scalar, identity."""
    CHAIN = 2
    """Head or signature."""
    EQUIVOCATION = 3
    """Two different signed messages under one number."""
    PROOF = 4
    """Shuffle proof, equality proof, equal points, a forbidden key, COIN_OPEN against its commitment."""
    CARD = 5
    """A token or a card that is not of this deal."""
    POSITION = 6
    """A position or card opened before, twice in one message, or not releasable."""
    CAPTURE = 7
    """The capture byte."""
    DECISION = 8
    """Decision byte, claim wrongly present or absent, redeal flag, unclaimed hand yaku."""
    AUDIT = 9
    """The audit's response."""
    RESULT = 10
    """Round result hash, RESULT_SIGN or RESIGN signature."""
    VERSION = 11
    """No common version, or a key agreement without a secret."""
    ATTEMPTS = 12
    """Too many deals in one round, or too many restarts of an audit."""
    UNREADABLE = 13
    """An envelope that does not open, after the relay was asked for it once more."""


class TransportError(Exception):
    """An envelope cannot be read. The receiver's state has not changed and nobody is accused."""


class RemoteProtocolError(Exception):
    """The opponent's message is refused for good; `reason` goes into the close of the match.

    The text names the failing check and holds no card, secret or payload.
    """

    def __init__(self, reason: Reason, check: str) -> None:
        super().__init__(check)
        self.reason = reason
        self.check = check


class LocalProtocolError(Exception):
    """The caller asks for what is not due now, or for an illegal choice; nothing was changed."""


class ContractError(ValueError):
    """A match contract that must be refused before connecting; the text names the member."""


def require(condition: object, reason: Reason, check: str) -> None:
    """Refuse the opponent's message unless the condition holds."""
    if not condition:
        raise RemoteProtocolError(reason, check)
