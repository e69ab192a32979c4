"""The lobby's signature on a match contract: verified here, before a device believes any of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from koikoi_sdk.client.documents import MAX_LENGTH, open_document
from koikoi_sdk.client.errors import ServerError

TYPE = "koikoi-contract+jws"
MAX_CONTRACT_LENGTH = MAX_LENGTH
_MATCH_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""It names a directory on this device and a path at the relay, so nothing else may pass."""


@dataclass(frozen=True, slots=True)
class SignedContract:
    """A contract whose signature, type and issuer were verified: the token and the exact payload bytes."""

    token: str
    payload: bytes
    match_id: str


def verify_contract(token: str, *, jwks: str, issuer: str) -> SignedContract:
    """Verify a contract with the lobby's key set; `issuer` contains the environment's name.

    Its content is checked by `table`, which refuses a contract that breaks docs/protocol.md section 9; its times by
    the relay, on the one clock that counts.

    Raises:
        ServerError: CONTRACT_INVALID; do not connect.
    """
    try:
        payload, members = open_document(token, typ=TYPE, jwks=jwks, issuer=issuer)
        match_id = _match_id(members)
    except ValueError as error:
        raise ServerError(
            f"the lobby's contract does not verify: {error}", code="permission_denied", reason="CONTRACT_INVALID"
        ) from None
    return SignedContract(token, payload, match_id)


def _match_id(members: dict[str, Any]) -> str:
    match_id = members.get("jti")
    if not isinstance(match_id, str) or not _MATCH_ID.fullmatch(match_id):
        raise ValueError("the match id is no UUID")
    return match_id
