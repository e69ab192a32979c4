"""What a room is and who may see it.

A room is open, then either ready (both seats taken, contract fixed) or closed. An open room
whose host does not come back in time is dead, which nobody writes down: it follows from
`alive_until`. Times are milliseconds since 1970.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from koikoi_sdk.rules import Rules, format_rules

from services.lobby.domain.errors import FieldInvalid, PasswordInvalid

LATE_MS = 10_000
"""So long after the last seat went others hear `full`, for they may have seen the room open. Then the code is dead."""
HOLD_MS = 120_000
"""So long after the last seat went its two players are taken for busy: the relay begins no match later than that."""
MAX_ID_CHARACTERS = 64
MAX_TEXT_BYTES = 256
"""Of a name or an avatar as JSON text, so that a contract with two of each fits the relay's first frame."""
MAX_PASSWORD_CHARACTERS = 64
MAX_KNOCKS = 20
MAX_BARRED = 300
MAX_BLOCKS = 200
"""Of an account; a host can still kick a hundred more out of one room."""
_ACCOUNT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Visibility(IntEnum):
    """Says who can find a room."""

    PUBLIC = 1
    UNLISTED = 2


class RoomState(StrEnum):
    """Says how far a room is."""

    OPEN = "open"
    READY = "ready"
    CLOSED = "closed"


class Standing(StrEnum):
    """Says what a caller is to a room; it decides what the caller may know."""

    HOST = "host"
    GUEST = "guest"
    NEWCOMER = "newcomer"
    LATE = "late"
    STRANGER = "stranger"


@dataclass(frozen=True, slots=True)
class Player:
    """A person on a device, as the access token named them when they took the seat."""

    account_id: str
    device_key: bytes
    display_name: str
    avatar: str


@dataclass(frozen=True, slots=True)
class Knock:
    """Somebody at the door of a room that needs approval; `generation` is of the stream that knocks."""

    player: Player
    generation: str
    create_time: int
    alive_until: int


@dataclass(frozen=True, slots=True)
class Hold:
    """The room an account is in, or until a time in the middle of entering; `until` is 0 once it is in."""

    code: str
    until: int = 0


@dataclass(frozen=True, slots=True)
class Contract:
    """What the last seat fixed: the payload at once, its signature when somebody first asked for it."""

    match_id: str
    payload: bytes
    fill_time: int
    expire_time: int
    jws: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """A room. `room_id` tells it from an earlier room that had the same code."""

    room_id: str
    code: str
    visibility: Visibility
    password_hash: str
    rules: Rules
    host: Player
    create_time: int
    alive_until: int
    request_id: str
    digest: str
    state: RoomState = RoomState.OPEN
    guest: Player | None = None
    contract: Contract | None = None
    needs_approval: bool = False
    invite_secret: str = ""
    barred: frozenset[str] = frozenset()
    """The accounts that the host blocked or kicked."""
    is_host_present: bool = True
    host_completion: int | None = None
    """The host's completion rate in percent when the room was opened; None when nothing counts yet."""

    @property
    def has_password(self) -> bool:
        """Tell whether joining needs a password."""
        return bool(self.password_hash)

    def is_open(self, now: int) -> bool:
        """Tell whether the second seat can be taken."""
        return self.state is RoomState.OPEN and now < self.alive_until

    def is_ready(self, now: int) -> bool:
        """Tell whether both seats are taken and the contract still holds."""
        return self.contract is not None and now < self.contract.expire_time

    def is_listed(self, now: int) -> bool:
        """Tell whether the room belongs in the list."""
        return self.visibility is Visibility.PUBLIC and self.is_open(now)


def standing(room: Room | None, account_id: str, now: int) -> Standing:
    """Tell what an account is to a room; a stranger must not learn that the room exists."""
    if room is None or not (room.is_open(now) or room.is_ready(now)):
        return Standing.STRANGER
    if room.host.account_id == account_id:
        return Standing.HOST
    if room.guest is not None and room.guest.account_id == account_id:
        return Standing.GUEST
    if account_id in room.barred:
        return Standing.STRANGER
    if room.contract is None:
        return Standing.NEWCOMER
    return Standing.LATE if now < room.contract.fill_time + LATE_MS else Standing.STRANGER


def is_held(room: Room, account_id: str, now: int) -> bool:
    """Tell whether an account is in this room: hosts it open, or is about to play the match of it."""
    if room.contract is None:
        return room.is_open(now) and room.host.account_id == account_id
    is_member = standing(room, account_id, now) in (Standing.HOST, Standing.GUEST)
    return is_member and now < room.contract.fill_time + HOLD_MS


def make_player(account_id: str, device_key: bytes, display_name: str, avatar: str) -> Player:
    """Check that a player's texts fit a contract.

    Raises:
        FieldInvalid: Name or avatar is longer than a contract can hold.
    """
    for field, text, limit in (
        ("account_id", account_id, MAX_ID_CHARACTERS),
        ("display_name", display_name, MAX_TEXT_BYTES),
        ("avatar", avatar, MAX_TEXT_BYTES),
    ):
        if len(json.dumps(text, ensure_ascii=False).encode()) - 2 > limit:
            raise FieldInvalid(field, f"at most {limit} bytes as JSON text")
    return Player(account_id, device_key, display_name, avatar)


def check_account_id(account_id: str) -> str:
    """Refuse what cannot be an account id.

    Raises:
        FieldInvalid: It is not 1 to 64 letters, digits, hyphens and underscores.
    """
    if not _ACCOUNT_ID.fullmatch(account_id):
        raise FieldInvalid("account_id", f"1 to {MAX_ID_CHARACTERS} letters, digits, - and _")
    return account_id


def check_request_id(request_id: str) -> str:
    """Refuse a request id that is missing or too long.

    Raises:
        FieldInvalid: It is not 1 to 64 characters.
    """
    if not 1 <= len(request_id) <= MAX_ID_CHARACTERS:
        raise FieldInvalid("request_id", f"1 to {MAX_ID_CHARACTERS} characters")
    return request_id


def read_password(typed: str) -> str:
    """Read a password as people type it; composed and decomposed letters are the same (NFC).

    Raises:
        PasswordInvalid: It is longer than 64 characters.
    """
    if len(typed) > MAX_PASSWORD_CHARACTERS:
        raise PasswordInvalid(f"at most {MAX_PASSWORD_CHARACTERS} characters")
    return unicodedata.normalize("NFC", typed)


def request_digest(visibility: Visibility, rules: Rules, *, needs_approval: bool, with_invite: bool) -> str:
    """Name the content of a request to open a room, to tell a repetition from a reuse of its id.

    The password is not part of it: a fast hash beside the slow one would undo the slow one.
    """
    text = f"{visibility:d} {needs_approval:d} {with_invite:d} {format_rules(rules)}"
    return hashlib.sha256(text.encode()).hexdigest()
