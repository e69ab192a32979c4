"""The match contract, as much of it as a blind relay needs (docs/architecture.md section 2, document 2).

The signature is checked before (`service.Doorkeeper`); here the payload's shape and times are.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.match.domain.errors import ContractInvalid

__all__ = ["CONTRACT_TYPE", "Contract", "read_contract"]

CONTRACT_TYPE = "koikoi-contract+jws"
_MEMBERS = {"iss", "jti", "iat", "exp", "ranked", "rules", "seats"}
_SEAT_MEMBERS = {"account", "avatar", "key", "name"}
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_LONGEST_LIFE_S = 3 * 3600
_SKEW_S = 5


@dataclass(frozen=True, slots=True)
class Contract:
    """Who plays, and until when.

    Args:
        match_id: The contract's `jti`, a UUIDv7.
        contract_hash: SHA-256 of the payload bytes.
        keys: The device keys of seat 0 and seat 1.
        accounts: The accounts of seat 0 and seat 1.
        issued_s: `iat`, unix seconds.
        expires_s: `exp`, unix seconds.
    """

    match_id: str
    contract_hash: bytes
    keys: tuple[bytes, bytes]
    accounts: tuple[str, str]
    issued_s: int
    expires_s: int

    @property
    def first_seat(self) -> int:
        """The seat of device A: the smaller key, as unsigned bytes; it sends the even numbers."""
        return 0 if self.keys[0] < self.keys[1] else 1


def read_contract(payload: bytes, claims: Mapping[str, Any], now_s: float) -> Contract:
    """Read a contract whose signature and issuer were verified.

    Args:
        payload: The exact bytes that were signed.
        claims: The same, parsed.
        now_s: Unix seconds.

    Raises:
        ContractInvalid: A member is missing, extra or bad, or the contract is not valid now.
    """
    if set(claims) != _MEMBERS:
        raise ContractInvalid(f"The contract has exactly the members {', '.join(sorted(_MEMBERS))}.")
    issued_s, expires_s = claims["iat"], claims["exp"]
    if not _is_int(issued_s) or not _is_int(expires_s) or not 0 <= expires_s - issued_s <= _LONGEST_LIFE_S:
        raise ContractInvalid("The contract's iat and exp are whole seconds at most 3 hours apart.")
    if not issued_s - _SKEW_S <= now_s < expires_s:
        raise ContractInvalid("The contract is not valid now.")
    match_id = claims["jti"]
    if not isinstance(match_id, str) or not _UUID7.fullmatch(match_id):
        raise ContractInvalid("The contract's jti is not a UUIDv7.")
    if not isinstance(claims["ranked"], bool) or not isinstance(claims["rules"], str):
        raise ContractInvalid("The contract's ranked is true or false, and its rules are a text.")
    seats = claims["seats"]
    if not isinstance(seats, list) or len(seats) != 2:
        raise ContractInvalid("The contract has two seats.")
    (account_0, key_0), (account_1, key_1) = _read_seat(seats[0]), _read_seat(seats[1])
    if account_0 == account_1 or key_0 == key_1:
        raise ContractInvalid("The contract's two seats are the same account or the same device.")
    contract_hash = hashlib.sha256(payload).digest()
    return Contract(match_id, contract_hash, (key_0, key_1), (account_0, account_1), issued_s, expires_s)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_seat(seat: object) -> tuple[str, bytes]:
    if not isinstance(seat, dict) or set(seat) != _SEAT_MEMBERS:
        raise ContractInvalid(f"A seat has exactly the members {', '.join(sorted(_SEAT_MEMBERS))}.")
    if not all(isinstance(seat[name], str) for name in _SEAT_MEMBERS) or not seat["account"]:
        raise ContractInvalid("The members of a seat are texts, and the account is not empty.")
    try:
        key = base64.b64decode(seat["key"].encode("ascii") + b"=", altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        key = b""
    if len(key) != 32 or base64.urlsafe_b64encode(key).rstrip(b"=").decode() != seat["key"]:
        raise ContractInvalid("A seat's key is the unpadded base64url of 32 bytes.")
    return seat["account"], key
