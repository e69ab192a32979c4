"""The wire table: message types, phases, sizes and payload layouts (docs/protocol.md sections 4, 19).

Cutting a payload checks its length only; what the parts mean is checked where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType

from koikoi_sdk.poker import layout
from koikoi_sdk.table.errors import Reason, require


class Kind(IntEnum):
    """Names the messages; the value is the type byte. HELLO travels unsealed and has none."""

    HELLO = 0
    COIN_OPEN = 1
    S1 = 10
    S2 = 11
    S3 = 12
    S4 = 13
    T1 = 20
    T2 = 21
    T3 = 22
    AU1 = 30
    AU2 = 31
    AU3 = 32
    AU4 = 33
    RESULT_SIGN = 40
    NEXT = 50
    RESIGN = 51


class Phase(IntEnum):
    """Names what the relay sees of a message: its phase."""

    HELLO = 0
    COIN = 1
    SHUFFLE = 2
    DEAL = 3
    PLAY = 4
    AUDIT = 5
    CLOSING = 6


SMALL, MIDDLE, LARGE = 512, 3584, 9216
"""The class sizes: bytes of content, length and padding included."""
HASH_SIZE = 32
NONCE_SIZE = 32
NO_CAPTURE = 255
"""The capture byte where the rules leave no choice."""


@dataclass(frozen=True, slots=True)
class Form:
    """The outside of a kind of message. `lengths` are of the payload; empty where it varies (audit)."""

    phase: Phase
    size: int
    lengths: tuple[int, ...] = ()


FORMS: Mapping[Kind, Form] = MappingProxyType(
    {
        Kind.COIN_OPEN: Form(Phase.COIN, SMALL, (32,)),
        Kind.S1: Form(Phase.SHUFFLE, LARGE, (layout.S1_SIZE,)),
        Kind.S2: Form(Phase.SHUFFLE, LARGE, (layout.S2_SIZE,)),
        Kind.S3: Form(Phase.DEAL, SMALL, (layout.S3_SIZE, layout.S3_SIZE + layout.CLAIM_SIZE)),
        Kind.S4: Form(Phase.DEAL, SMALL, (1, 1 + layout.CLAIM_SIZE)),
        Kind.T1: Form(Phase.PLAY, SMALL, (layout.PLAY_SIZE + 1,)),
        Kind.T2: Form(Phase.PLAY, SMALL, (layout.TOKEN_SIZE,)),
        Kind.T3: Form(Phase.PLAY, SMALL, (layout.FLIP_SIZE + 2,)),
        Kind.AU1: Form(Phase.AUDIT, SMALL, (64,)),
        Kind.AU2: Form(Phase.AUDIT, SMALL, (96,)),
        Kind.AU3: Form(Phase.AUDIT, MIDDLE),
        Kind.AU4: Form(Phase.AUDIT, MIDDLE),
        Kind.RESULT_SIGN: Form(Phase.CLOSING, SMALL, (64,)),
        Kind.NEXT: Form(Phase.SHUFFLE, SMALL, (0,)),
        Kind.RESIGN: Form(Phase.CLOSING, SMALL, (64,)),
    }
)


def phase_of(kind: Kind) -> Phase:
    """Give the phase that travels beside a message."""
    return Phase.HELLO if kind is Kind.HELLO else FORMS[kind].phase


def require_length(kind: Kind, payload: bytes) -> None:
    """Refuse a payload of a wrong length before any work is done on it (section 10, check 2)."""
    lengths = FORMS[kind].lengths
    require(not lengths or len(payload) in lengths, Reason.FORM, f"{kind.name} has another length")


@dataclass(frozen=True, slots=True)
class Dealt:
    """S3 or S4: its fixed part, then perhaps a claim."""

    fixed: bytes
    claim: bytes

    @classmethod
    def cut(cls, payload: bytes, fixed_size: int) -> Dealt:
        """Cut a payload of checked length."""
        return cls(payload[:fixed_size], payload[fixed_size:])


@dataclass(frozen=True, slots=True)
class Played:
    """T1: position, card and proof in `opening`, then the capture byte."""

    opening: bytes
    capture: int

    @classmethod
    def cut(cls, payload: bytes) -> Played:
        """Cut a payload of checked length."""
        return cls(payload[:-1], payload[-1])

    def join(self) -> bytes:
        """Give the payload."""
        return self.opening + bytes([self.capture])


@dataclass(frozen=True, slots=True)
class Flipped:
    """T3: card and proof in `opening`, then the capture byte and the decision byte."""

    opening: bytes
    capture: int
    decision: int

    @classmethod
    def cut(cls, payload: bytes) -> Flipped:
        """Cut a payload of checked length."""
        return cls(payload[:-2], payload[-2], payload[-1])

    def join(self) -> bytes:
        """Give the payload."""
        return self.opening + bytes([self.capture, self.decision])


@dataclass(frozen=True, slots=True)
class Committed:
    """AU1 and AU2: a commitment, in AU2 the nonce for the opponent's, and the hash of the round result."""

    commitment: bytes
    nonce: bytes
    result_hash: bytes

    @classmethod
    def cut(cls, payload: bytes) -> Committed:
        """Cut a payload of checked length; AU1 gives an empty nonce."""
        return cls(payload[:HASH_SIZE], payload[HASH_SIZE:-HASH_SIZE], payload[-HASH_SIZE:])

    def join(self) -> bytes:
        """Give the payload."""
        return self.commitment + self.nonce + self.result_hash


@dataclass(frozen=True, slots=True)
class Answered:
    """AU3: the nonce for the opponent's commitment, then the response to the own one."""

    nonce: bytes
    response: bytes

    @classmethod
    def cut(cls, payload: bytes) -> Answered:
        """Cut a payload; the response's length is checked with its challenge."""
        return cls(payload[:NONCE_SIZE], payload[NONCE_SIZE:])

    def join(self) -> bytes:
        """Give the payload."""
        return self.nonce + self.response
