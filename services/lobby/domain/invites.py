"""Invitations: a secret of 128 bits that opens one room, beside its code."""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode

from services.lobby.domain.errors import FieldInvalid
from services.lobby.domain.rooms import Room

SECRET_BYTES = 16
_SECRET = re.compile(r"[A-Za-z0-9_-]{22}")
_NOBODY = "A" * 22


def new_secret(random: bytes) -> str:
    """Write 16 fresh bytes as 22 characters that fit into a link."""
    return urlsafe_b64encode(random[:SECRET_BYTES]).rstrip(b"=").decode()


def read_secret(typed: str) -> str:
    """Check the form of a secret; empty for none.

    Raises:
        FieldInvalid: It cannot be one, so that trying it would be no guess either.
    """
    if typed and not _SECRET.fullmatch(typed):
        raise FieldInvalid("invite_secret", "22 letters, digits, - and _, or nothing")
    return typed


def is_invited(room: Room | None, secret: str) -> bool:
    """Tell whether the secret is this room's; takes the same time for every room, and for none."""
    kept = room.invite_secret if room is not None and room.invite_secret else _NOBODY
    is_equal = hmac.compare_digest(kept, secret)
    return is_equal and kept is not _NOBODY


def invite_url(base_url: str, room: Room) -> str:
    """Write the link up to the fragment, which the host's device appends: no server needs to know it."""
    return f"{base_url.rstrip('/')}/i/{room.code}.{room.invite_secret}"
