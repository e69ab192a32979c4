"""What a device answers when the opponent's bytes are wrong.

One exception for everything received, so that no message can crash a device (docs/protocol.md
section 10). The reason is the byte of section 19 with which the match is closed.
"""

from enum import IntEnum


class Reason(IntEnum):
    """Names the reasons of docs/protocol.md section 19 that mental poker itself can give."""

    FORM = 1
    """Wrong length, unexpected message, non-canonical point or scalar, identity."""
    SIGNATURE = 2
    """A head or a signature."""
    PROOF = 4
    """Shuffle proof, DLEQ, equal cards in a deck, a forbidden public key, the coin's opening."""
    CARD = 5
    """A token or a card number that is not of this deal."""
    POSITION = 6
    """A position or card opened before, twice in one message, or not releasable."""
    AUDIT = 9
    """The audit's response does not fit the commitment and the deck."""


class ProofError(Exception):
    """Refuses something the opponent sent; the state of the receiver has not changed.

    `reason` goes into the close of the match; the text names the failing check and never holds
    a secret, a card or a payload.
    """

    def __init__(self, reason: Reason, check: str) -> None:
        super().__init__(check)
        self.reason = reason


class OrderError(RuntimeError):
    """Refuses to build a message that is not due now: a fault of the calling code, not of the opponent."""


def require(holds: bool, reason: Reason, check: str) -> None:
    """Raise ProofError naming the check unless it holds."""
    if not holds:
        raise ProofError(reason, check)
