"""One seat at the table: rules and mental poker joined to a whole match (docs/protocol.md).

Sans-I/O. `Seat` is the state machine; it takes envelopes and choices and answers with a `Step`.
"""

from __future__ import annotations

from koikoi_sdk.rules import Play
from koikoi_sdk.table.codec import Kind, Phase
from koikoi_sdk.table.contract import Contract, parse_contract
from koikoi_sdk.table.errors import ContractError, LocalProtocolError, Reason
from koikoi_sdk.table.memory import Random, draw_from_system
from koikoi_sdk.table.playing import Choice, Flip
from koikoi_sdk.table.seat import TRANSITIONS, Seat
from koikoi_sdk.table.snapshot import SnapshotError
from koikoi_sdk.table.state import Evidence, Outgoing
from koikoi_sdk.table.statement import Ending, SignedResult, Statement
from koikoi_sdk.table.steps import Choose, Finished, Rejected, Send, Step, Unreadable, Wait
from koikoi_sdk.table.view import RoundView, View

__all__ = [
    "TRANSITIONS",
    "Choice",
    "Choose",
    "Contract",
    "ContractError",
    "Ending",
    "Evidence",
    "Finished",
    "Flip",
    "Kind",
    "LocalProtocolError",
    "Outgoing",
    "Phase",
    "Play",
    "Random",
    "Reason",
    "Rejected",
    "RoundView",
    "Seat",
    "Send",
    "SignedResult",
    "SnapshotError",
    "Statement",
    "Step",
    "Unreadable",
    "View",
    "Wait",
    "draw_from_system",
    "parse_contract",
]
