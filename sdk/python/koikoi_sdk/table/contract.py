"""The match contract as far as the table needs it (docs/protocol.md section 9).

The bytes come from a JWS whose signature the client has verified; nothing here trusts them more
than that: they must name exactly two different device keys and rules that can be played.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass

from koikoi_sdk.poker import is_device_key
from koikoi_sdk.rules import Rules, RulesError, parse_rules
from koikoi_sdk.table.errors import ContractError

MAX_CONTRACT_SIZE = 4096
"""Bytes; the relay's first frame, which carries the contract, is not larger."""
SEATS = (0, 1)


@dataclass(frozen=True, slots=True)
class Contract:
    """What two devices agreed to play. `hash` is that of the payload, `keys` are by seat."""

    payload: bytes
    hash: bytes
    rules: Rules
    rules_hash: bytes
    keys: tuple[bytes, bytes]

    def seat_of(self, key: bytes) -> int:
        """Give the seat of a device.

        Raises:
            ContractError: The device has no seat in this match.
        """
        if key not in self.keys:
            raise ContractError("seats: this device's key is not among them")
        return self.keys.index(key)

    @property
    def seat_a(self) -> int:
        """Give the seat of device A, the one with the smaller key; it sends the even numbers."""
        return 0 if self.keys[0] < self.keys[1] else 1


def parse_contract(payload: bytes) -> Contract:
    """Read the payload of a contract, strictly as to rules and keys; other members are the client's.

    Raises:
        ContractError: It breaks section 9, or names rules that this client cannot play.
    """
    if len(payload) > MAX_CONTRACT_SIZE:
        raise ContractError(f"contract: expected at most {MAX_CONTRACT_SIZE} bytes")
    try:
        members = json.loads(payload.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise ContractError("contract: expected JSON text without repeated members") from None
    if not isinstance(members, dict):
        raise ContractError("contract: expected an object")
    text = members.get("rules")
    if not isinstance(text, str):
        raise ContractError("rules: expected a string")
    try:
        rules, encoded = parse_rules(text), text.encode()
    except RulesError as error:
        raise ContractError(f"rules: {error}") from error
    return Contract(
        payload=bytes(payload),
        hash=hashlib.sha256(payload).digest(),
        rules=rules,
        rules_hash=hashlib.sha256(encoded).digest(),
        keys=_parse_keys(members.get("seats")),
    )


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is repeated")
    return members


def _parse_keys(seats: object) -> tuple[bytes, bytes]:
    if not isinstance(seats, list) or len(seats) != len(SEATS):
        raise ContractError("seats: expected an array of two")
    first, second = (_parse_key(seat) for seat in seats)
    if first == second:
        raise ContractError("seats: expected two different keys")
    return first, second


def _parse_key(seat: object) -> bytes:
    text = seat.get("key") if isinstance(seat, dict) else None
    if not isinstance(text, str):
        raise ContractError("seats: expected objects with a key")
    try:
        key = base64.b64decode(text.encode("ascii") + b"=", altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise ContractError("seats: expected keys in base64url") from None
    canonical = base64.urlsafe_b64encode(key).rstrip(b"=").decode() == text
    if not canonical or not is_device_key(key):
        raise ContractError("seats: expected valid device keys, 32 bytes in unpadded base64url")
    return key
