"""How a match and its contract are written down in Redis: JSON, so that an operator can read it; bytes are hex."""

import json
from dataclasses import asdict
from typing import Any

from services.match.domain.contract import Contract
from services.match.domain.deadlines import Clock
from services.match.domain.match import Attendance, Match, Presence, Recovery
from services.match.domain.outcomes import Ending, Outcome

__all__ = ["dump_contract", "dump_match", "load_contract", "load_match"]


def dump_match(match: Match) -> bytes:
    """Write everything but the last envelope's bytes, which are kept beside it."""
    return json.dumps(
        {**asdict(match), "sealed": bool(match.sealed)}, separators=(",", ":"), default=bytes.hex
    ).encode()


def load_match(text: bytes, sealed: bytes, credit_ms: int) -> Match:
    """Read what `dump_match` wrote, with the time that was not charged since."""
    values: dict[str, Any] = json.loads(text)
    values["epoch"] = bytes.fromhex(values["epoch"])
    values["rolling"] = bytes.fromhex(values["rolling"])
    values["before"] = None if values["before"] is None else bytes.fromhex(values["before"])
    values["sealed"] = sealed if values["sealed"] else b""
    values["finished"] = tuple(values["finished"])
    values["seats"] = tuple(Attendance(**{**seat, "presence": Presence(seat["presence"])}) for seat in values["seats"])
    values["clock"] = Clock(**values["clock"])
    if values["suspended"] is not None:
        values["suspended"] = Clock(**values["suspended"])
    if (recovery := values["recovery"]) is not None:
        values["recovery"] = Recovery(**{**recovery, "positions": tuple(recovery["positions"])})
    if (ending := values["ending"]) is not None:
        values["ending"] = Ending(**{**ending, "outcome": Outcome(ending["outcome"])})
    match = Match(**values)
    return match.shifted(credit_ms) if credit_ms else match


def dump_contract(contract: Contract) -> bytes:
    """Write a contract."""
    return json.dumps(asdict(contract), separators=(",", ":"), default=bytes.hex).encode()


def load_contract(text: bytes) -> Contract:
    """Read what `dump_contract` wrote."""
    values: dict[str, Any] = json.loads(text)
    values["contract_hash"] = bytes.fromhex(values["contract_hash"])
    values["keys"] = tuple(bytes.fromhex(key) for key in values["keys"])
    values["accounts"] = tuple(values["accounts"])
    return Contract(**values)
