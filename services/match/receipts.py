"""What the relay signs about a match on request (docs/architecture.md section 3, "Receipts")."""

import json

from services.match.domain.contract import Contract
from services.match.domain.envelope import digest
from services.match.domain.match import Match
from services.match.ports import Signer

__all__ = ["RECEIPT_TYPE", "write_receipt"]

RECEIPT_TYPE = "koikoi-receipt+jws"


def write_receipt(signer: Signer, issuer: str, contract: Contract, match: Match, now_ms: int) -> str:
    """Return a compact JWS of the relay's view. Bytes are hex, times are ms; unknown or absent things are null."""
    is_stored = bool(match.sealed)
    claims = {
        "iss": issuer,
        "match_id": contract.match_id,
        "contract_hash": contract.contract_hash.hex(),
        "epoch": match.epoch.hex(),
        "counter": match.counter,
        "rolling_hash": match.rolling.hex(),
        "last_hash": digest(match.sealed).hex() if is_stored else None,
        "last_time_ms": match.owed_since_ms if is_stored else None,
        "owing_seat": match.owing,
        "owing_since_ms": None if match.owing is None else match.owed_since_ms,
        "outcome": None if match.ending is None else match.ending.outcome.value,
        "now_ms": now_ms,
    }
    return signer.sign(json.dumps(claims, separators=(",", ":")).encode(), RECEIPT_TYPE)
