"""The match contract as ranking needs it (docs/architecture.md section 2, docs/protocol.md section 9)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from koikoi_sdk.rules import Rules, RulesError, parse_rules

from services.ranking.domain.errors import ContractInvalid, ContractTooOld

TYP = "koikoi-contract+jws"
MAX_AGE_S = 7 * 24 * 3600
"""A result is accepted so long after its contract was made, though the contract itself expires sooner."""
CLOCK_SKEW_S = 60
_MEMBERS = {"iss", "jti", "iat", "exp", "ranked", "rules", "seats"}
_SEAT_MEMBERS = {"account", "avatar", "key", "name"}
_MAX_TEXT = 256
_KEY_SIZE = 32


@dataclass(frozen=True, slots=True)
class Player:
    """Who sits on a seat, with the device key that signs for it."""

    account_id: str
    display_name: str
    key: bytes


@dataclass(frozen=True, slots=True)
class Contract:
    """What the lobby signed. `hash` is SHA-256 of the exact payload bytes."""

    match_id: uuid.UUID
    create_time: int
    is_ranked: bool
    rules: Rules
    seats: tuple[Player, Player]
    hash: bytes


def parse_contract(payload: bytes, *, issuer: str) -> Contract:
    """Read a contract payload whose signature was verified, strictly.

    Raises:
        ContractInvalid: Another issuer, or content that docs/protocol.md section 9 forbids.
    """
    members = _object("payload", _load(payload), _MEMBERS)
    if members["iss"] != issuer:
        raise _invalid("iss", "the lobby of this environment")
    rules = _rules(members["rules"])
    is_ranked = members["ranked"]
    if not isinstance(is_ranked, bool) or (is_ranked and not rules.is_ranked):
        raise _invalid("ranked", "true or false, true only under ranked rules")
    create_time, expire_time = members["iat"], members["exp"]
    if type(create_time) is not int or type(expire_time) is not int or not 0 < create_time < expire_time:
        raise _invalid("iat", "whole seconds, before exp")
    return Contract(
        match_id=_match_id(members["jti"]),
        create_time=create_time,
        is_ranked=is_ranked,
        rules=rules,
        seats=_seats(members["seats"]),
        hash=hashlib.sha256(payload).digest(),
    )


def check_age(contract: Contract, now: float) -> None:
    """Check that results of this contract are still accepted; its own expiry does not matter here.

    Raises:
        ContractTooOld: It was made more than 7 days ago.
        ContractInvalid: It claims to be made in the future.
    """
    if contract.create_time > now + CLOCK_SKEW_S:
        raise _invalid("iat", "not in the future")
    if now > contract.create_time + MAX_AGE_S:
        limit = f"{MAX_AGE_S} seconds after the contract's iat"
        raise ContractTooOld(
            "Results are accepted until 7 days after the contract was made.",
            field="contract",
            metadata={"part": "iat", "limit": limit},
        )


def _load(payload: bytes) -> object:
    try:
        return json.loads(payload, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise _invalid("payload", "JSON without repeated members") from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("repeated member")
    return members


def _object(field: str, value: object, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict) or value.keys() != names:
        raise _invalid(field, "exactly the members " + " ".join(sorted(names)))
    return value


def _rules(text: object) -> Rules:
    if not isinstance(text, str):
        raise _invalid("rules", "a string")
    try:
        return parse_rules(text)
    except RulesError as error:
        raise _invalid(f"rules.{error.field}", error.limit) from None


def _match_id(value: object) -> uuid.UUID:
    try:
        match_id = uuid.UUID(value) if isinstance(value, str) else None
    except ValueError:
        match_id = None
    if match_id is None or match_id.version != 7 or str(match_id) != value:
        raise _invalid("jti", "a UUID of version 7, lower-case with hyphens")
    return match_id


def _seats(value: object) -> tuple[Player, Player]:
    if not isinstance(value, list) or len(value) != 2:
        raise _invalid("seats", "two seats")
    first, second = (_seat(f"seats[{index}]", seat) for index, seat in enumerate(value))
    if first.account_id == second.account_id or first.key == second.key:
        raise _invalid("seats", "two different accounts with different keys")
    return first, second


def _seat(field: str, value: object) -> Player:
    members = _object(field, value, _SEAT_MEMBERS)
    for name in ("account", "avatar", "name"):
        text = members[name]
        if not _is_text(text) or (name == "account" and not text):
            raise _invalid(f"{field}.{name}", f"text of at most {_MAX_TEXT} characters")
    return Player(members["account"], members["name"], _key(f"{field}.key", members["key"]))


def _is_text(value: object) -> bool:
    """Tell whether a value is text that a database can hold: no NUL, no lone surrogate."""
    is_short = isinstance(value, str) and len(value) <= _MAX_TEXT
    return is_short and not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in str(value))


def _key(field: str, value: object) -> bytes:
    try:
        key = base64.b64decode(value + "=", b"-_", validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_SIZE or base64.urlsafe_b64encode(key).rstrip(b"=").decode() != value:
        raise _invalid(field, f"{_KEY_SIZE} bytes in unpadded base64url")
    return key


def _invalid(field: str, limit: str) -> ContractInvalid:
    message = f"The contract's {field} is not valid here: expected {limit}."
    return ContractInvalid(message, field="contract", metadata={"part": field, "limit": limit})
