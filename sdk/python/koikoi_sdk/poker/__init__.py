"""Mental poker for a 48-card deck between two devices (docs/protocol.md sections 2-8, 14, 15).

Sans-I/O and without chance: every random byte is passed in, so the same inputs give the same
messages, which is what the test vectors fix. It knows no rule of the game, no envelope and no
network. Start with `Deal`.

Whatever the opponent sent wrongly raises `ProofError` with the reason of section 19 and changes
nothing; `OrderError` is a fault of the calling code.
"""

from koikoi_sdk.poker.audit import Commitment
from koikoi_sdk.poker.deal import Deal
from koikoi_sdk.poker.errors import OrderError, ProofError, Reason
from koikoi_sdk.poker.keys import DeviceKey, is_device_key, verify
from koikoi_sdk.poker.layout import Role, Step, card_points, deal_id, reader
from koikoi_sdk.poker.state import DealState
from koikoi_sdk.poker.transcript import digest

__all__ = [
    "Commitment",
    "Deal",
    "DealState",
    "DeviceKey",
    "OrderError",
    "ProofError",
    "Reason",
    "Role",
    "Step",
    "card_points",
    "deal_id",
    "digest",
    "is_device_key",
    "reader",
    "verify",
]
