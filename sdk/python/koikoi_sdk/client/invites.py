"""Links of invitations: `https://host/i/CODE.SECRET#FINGERPRINT`.

The part after `#` never leaves the devices: it names the host's key, so that a guest notices a lobby that introduces
somebody else (docs/threat-model.md, first contact).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from dataclasses import dataclass

from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.errors import LocalProtocolError, ServerError

_LINK = re.compile(r"https?://[^/?#\s]+(?:/[^/?#\s]+)*/i/([0-9A-Za-z]{6})\.([A-Za-z0-9_-]{22})#([A-Za-z0-9_-]{22})")


@dataclass(frozen=True, slots=True)
class Invite:
    """What a link says: the room, the secret that opens it, the host's key."""

    code: str
    secret: str
    fingerprint: str


def fingerprint(key: bytes) -> str:
    """Give the first 16 bytes of SHA-256 of a public key as 22 characters."""
    return base64.urlsafe_b64encode(hashlib.sha256(key).digest()[:16]).rstrip(b"=").decode()


def parse_invite(link: str) -> Invite:
    """Read a link.

    Raises:
        LocalProtocolError: It is not whole; without its last part nobody could tell who sent it.
    """
    found = _LINK.fullmatch(link.strip())
    if found is None:
        raise LocalProtocolError("this is no whole link of an invitation: copy it again, with the part after #")
    return Invite(found[1].upper(), found[2], found[3])


def check_host(contract: SignedContract, invite: Invite) -> None:
    """Check that the contract names the key of whoever sent the link; seat 0 is the host's.

    Raises:
        ServerError: HOST_KEY_DIFFERS; do not play.
    """
    try:
        key = json.loads(contract.payload)["seats"][0]["key"]
        found = fingerprint(base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)))
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ServerError("the contract names no host", code="permission_denied", reason="CONTRACT_INVALID") from error
    if not hmac.compare_digest(found, invite.fingerprint):
        raise ServerError(
            "the host of this room is not who sent the invitation: do not play, and ask them",
            code="permission_denied",
            reason="HOST_KEY_DIFFERS",
        )
