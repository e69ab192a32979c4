"""What a seat answers when it is asked to do something: exactly one of these."""

from __future__ import annotations

from dataclasses import dataclass

from koikoi_sdk.table.playing import Choice
from koikoi_sdk.table.state import Evidence, Outgoing
from koikoi_sdk.table.statement import SignedResult


@dataclass(frozen=True, slots=True)
class Send:
    """This message is owed: store the state, then send it, again and unchanged until it arrived."""

    message: Outgoing


@dataclass(frozen=True, slots=True)
class Choose:
    """The player owes a choice, one of these; nothing can be sent before."""

    options: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """There is nothing to do until the next envelope."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A transport error: nothing changed. Ask the relay once more, then close it as disputed, 13."""

    check: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The match stops here: close it as disputed with the evidence's reason, send nothing more."""

    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Finished:
    """Both devices signed the result."""

    result: SignedResult


Step = Send | Choose | Wait | Unreadable | Rejected | Finished
