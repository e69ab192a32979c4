"""The fixed shape of a deal: roles, positions, payload sizes, who owes which step (sections 3 and 4)."""

from enum import Enum
from typing import Final, Literal

from koikoi_sdk.poker import proofs, shuffle
from koikoi_sdk.poker.group import SIZE
from koikoi_sdk.poker.transcript import CARDS, digest, point, u16

Role = Literal[0, 1]
DEALER: Final[Role] = 0
OTHER: Final[Role] = 1
HANDS: Final = (range(8), range(8, 16))
FIELD: Final = range(16, 24)
PILE: Final = range(24, 48)

DECK_SIZE: Final = CARDS * SIZE
S1_SIZE: Final = SIZE + DECK_SIZE + shuffle.PROOF_SIZE
S2_SIZE: Final = S1_SIZE + 16 * SIZE + proofs.PROOF_SIZE
S3_SIZE: Final = 8 * SIZE + proofs.PROOF_SIZE + 8 + proofs.PROOF_SIZE
CLAIM_SIZE: Final = 8 + proofs.PROOF_SIZE
PLAY_SIZE: Final = 2 + proofs.PROOF_SIZE
TOKEN_SIZE: Final = SIZE + proofs.PROOF_SIZE
FLIP_SIZE: Final = 1 + proofs.PROOF_SIZE


def deal_id(
    session_id: bytes, *, round_number: int, attempt: int, dealer_key: bytes, other_key: bytes, head: bytes
) -> bytes:
    """Give did, which binds a deal to everything it belongs to.

    Rounds count from 1, attempts from 0; `session_id` is the protocol's match_id, `head` the transcript
    head immediately before the S1 of this attempt.
    """
    place = (session_id, u16(round_number), u16(attempt))
    return digest("deal", *place, dealer_key, other_key, head)


def card_points(did: bytes) -> tuple[bytes, ...]:
    """Give the 48 fresh points that stand for the cards in this deal."""
    return tuple(point("card", did, u16(card)) for card in range(CARDS))


def other_role(role: Role) -> Role:
    """Give the opponent's role."""
    return DEALER if role == OTHER else OTHER


def reader(position: int) -> Role:
    """Give the role that reads and opens a position of the deck."""
    if position in PILE:
        return OTHER if position % 2 else DEALER
    return OTHER if position in HANDS[OTHER] else DEALER


class Step(Enum):
    """Names the messages of a deal; the value is the sender's method."""

    FIRST = "shuffle_first"
    SECOND = "shuffle_second"
    FIELD = "show_field"
    PLAY = "play"
    TOKEN = "give_token"  # noqa: S105 - a message, no password
    FLIP = "flip"


OPENING_STEPS: Final = ((Step.FIRST, DEALER), (Step.SECOND, OTHER), (Step.FIELD, DEALER))
SECOND_TOKENS: Final = (*HANDS[DEALER], *FIELD)
"""The positions whose tokens S2 carries, in their order on the wire."""


def due(steps: int) -> tuple[Step, Role]:
    """Give the step that follows after `steps` steps, and the role that owes it."""
    if steps < len(OPENING_STEPS):
        return OPENING_STEPS[steps]
    turn, part = divmod(steps - len(OPENING_STEPS), 3)
    mover = OTHER if turn % 2 else DEALER
    return ((Step.PLAY, mover), (Step.TOKEN, other_role(mover)), (Step.FLIP, mover))[part]


def top(steps: int) -> int:
    """Give the position of the pile's top card after `steps` steps."""
    return PILE.start + max(steps - len(OPENING_STEPS), 0) // 3
