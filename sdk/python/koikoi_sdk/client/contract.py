"""The lobby's signature on a match contract: verified here, before a device believes any of it."""

from __future__ import annotations

import json
import re
import warnings
from dataclasses import dataclass

from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import KeySet

from koikoi_sdk.client.errors import ServerError

TYPE = "koikoi-contract+jws"
MAX_CONTRACT_LENGTH = 4096
# RFC 9864 renames the algorithm; the services pin the name every library knows.
warnings.filterwarnings("ignore", message="EdDSA is deprecated", category=SecurityWarning)
_MATCH_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""It names a directory on this device and a path at the relay, so nothing else may pass."""
_FORBIDDEN_HEADERS = {"jku", "x5u", "jwk", "x5c", "crit", "b64"}


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
        return _verify(token, jwks, issuer)
    except (JoseError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ServerError(
            f"the lobby's contract does not verify: {error}", code="permission_denied", reason="CONTRACT_INVALID"
        ) from None


def _verify(token: str, jwks: str, issuer: str) -> SignedContract:
    if len(token) > MAX_CONTRACT_LENGTH:
        raise ValueError("too long")
    keys = KeySet.import_key_set(json.loads(jwks))
    document = jws.deserialize_compact(token, keys, algorithms=["EdDSA"])
    header = document.headers()
    if header.get("typ") != TYPE or _FORBIDDEN_HEADERS & header.keys():
        raise ValueError("another type of document")
    members = json.loads(document.payload)
    if members["iss"] != issuer:
        raise ValueError("another issuer")
    match_id = members["jti"]
    if not isinstance(match_id, str) or not _MATCH_ID.fullmatch(match_id):
        raise ValueError("the match id is no UUID")
    return SignedContract(token, document.payload, match_id)
