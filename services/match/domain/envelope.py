"""What the relay can see of an envelope: its number, its phase and its size (docs/protocol.md sections 9 and 18)."""

import hashlib
from dataclasses import dataclass

from services.match.domain.errors import EnvelopeInvalid

__all__ = [
    "CLOSING", "HELLO", "PHASES", "SEALED_SIZES", "SUCCESSIONS", "Envelope", "check_shape", "check_succession", "digest"
]  # fmt: skip

PHASES = ("hello", "coin", "shuffle", "deal", "play", "audit", "closing")
HELLO, COIN, SHUFFLE, DEAL, PLAY, AUDIT, CLOSING = range(7)
HELLO_SIZES = frozenset(range(131, 146, 2))  # 1 to 8 versions of two bytes
SEALED_SIZES = frozenset((653, 3725, 9357))

# Which phase may follow which; 6-6 is allowed once, and then no number is accepted (`relay.accept`).
SUCCESSIONS: dict[int, frozenset[int]] = {
    HELLO: frozenset((HELLO, COIN, CLOSING)),
    COIN: frozenset((SHUFFLE, CLOSING)),
    SHUFFLE: frozenset((SHUFFLE, DEAL, CLOSING)),
    DEAL: frozenset((SHUFFLE, DEAL, PLAY, AUDIT, CLOSING)),
    PLAY: frozenset((PLAY, AUDIT, CLOSING)),
    AUDIT: frozenset((SHUFFLE, AUDIT, CLOSING)),
    CLOSING: frozenset((CLOSING,)),
}


@dataclass(frozen=True, slots=True)
class Envelope:
    """One sealed message with its relay header.

    Args:
        counter: Its number over both directions, from 0.
        phase: See `PHASES`; serves deadlines and health figures, never who owes.
        sealed: The bytes the relay cannot open.
    """

    counter: int
    phase: int
    sealed: bytes


def digest(sealed: bytes) -> bytes:
    """Return SHA-256 of a sealed message."""
    return hashlib.sha256(sealed).digest()


def check_shape(envelope: Envelope) -> None:
    """Check what needs no state: the phase exists and, like the size, fits the number.

    Raises:
        EnvelopeInvalid: It does not; `field` says which.
    """
    if not 0 <= envelope.phase < len(PHASES):
        raise EnvelopeInvalid(f"Phase {envelope.phase} is not one of 0 to 6.", field="envelope.phase")
    if (envelope.phase == HELLO) != (envelope.counter < 2):
        raise EnvelopeInvalid("Phase 0 belongs to numbers 0 and 1, and only to them.", field="envelope.phase")
    sizes = HELLO_SIZES if envelope.counter < 2 else SEALED_SIZES
    if len(envelope.sealed) not in sizes:
        wanted = ", ".join(str(size) for size in sorted(sizes))
        raise EnvelopeInvalid(
            f"An envelope of number {envelope.counter} has one of {wanted} bytes, not {len(envelope.sealed)}.",
            field="envelope.sealed",
        )


def check_succession(last: int | None, phase: int) -> None:
    """Check that `phase` may follow; `last` is None when the phase before is not known (start, or recovered).

    Raises:
        EnvelopeInvalid: It may not.
    """
    if last is not None and phase not in SUCCESSIONS[last]:
        raise EnvelopeInvalid(f"Phase {phase} cannot follow phase {last}.", field="envelope.phase")
