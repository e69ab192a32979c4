"""What services sign (compact JWS, RFC 7515): verified here, before a device believes any of it."""

from __future__ import annotations

import json
import warnings
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import KeySet

# RFC 9864 renames the algorithm; the services pin the name every library knows.
warnings.filterwarnings("ignore", message="EdDSA is deprecated", category=SecurityWarning)
MAX_LENGTH = 4096
"""Of a token in characters; no document of ours is longer."""
_FORBIDDEN_HEADERS = {"jku", "x5u", "jwk", "x5c", "crit", "b64"}


def issuer_of(service: str, auth_issuer: str) -> str:
    """Give the name of another issuer of auth's environment (docs/architecture.md section 2)."""
    return auth_issuer.replace("//auth.", f"//{service}.", 1)


def key_set_path(service: str) -> str:
    """Give where the gateway publishes an issuer's public keys."""
    return f"/.well-known/{service}/jwks.json"


def open_document(token: str, *, typ: str, jwks: str, issuer: str) -> tuple[bytes, dict[str, Any]]:
    """Verify a document with its issuer's key set; gives the exact payload bytes and their members.

    Raises:
        ValueError: It does not verify, or is of another type or issuer; the text says which.
    """
    try:
        return _open(token, typ, jwks, issuer)
    except (JoseError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def _open(token: str, typ: str, jwks: str, issuer: str) -> tuple[bytes, dict[str, Any]]:
    if len(token) > MAX_LENGTH:
        raise ValueError("too long")
    document = jws.deserialize_compact(token, KeySet.import_key_set(json.loads(jwks)), algorithms=["EdDSA"])
    header = document.headers()
    if header.get("typ") != typ or _FORBIDDEN_HEADERS & header.keys():
        raise ValueError("another type of document")
    members = json.loads(document.payload)
    if members["iss"] != issuer:
        raise ValueError("another issuer")
    return document.payload, members
