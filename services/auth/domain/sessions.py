"""Sessions and their rotating refresh tokens (docs/architecture.md section 5).

A session is one token family. Every refresh moves it to the next generation; the token of a generation is a MAC over
session, generation and the session's seed, so that

* the answer to a repeated call can be made again without ever storing a token (only hashes are stored),
* an old token of the family is told from a forged one, and only a true one ends the family.

What happens to a token that is shown, `decide` below:

    token                                     device signature   decision
    ----------------------------------------  ----------------   ------------------------------------------
    forged, session unknown, ended, expired   any                INVALID
    newest                                    bad                UNSIGNED   nothing changes
    newest                                    good               ROTATE
    one before, at most 30 s after rotation   good               REPEAT     a lost reply: the same answer again
    any other old one                         any                REUSED     the whole family ends
"""

import binascii
import enum
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from services.auth.domain.errors import AccessTokenInvalid, RefreshTokenInvalid

REPLY_GRACE_S = 30.0
SECRET_BYTES = 32
SEED_BYTES = 32

_PREFIX = "kkr_"  # lets secret scanners find a leaked token
_MAC_BYTES = 32
_BODY_BYTES = 16 + 4 + _MAC_BYTES
_TOKEN_CHARACTERS = len(_PREFIX) + (_BODY_BYTES * 4 + 2) // 3


@dataclass(frozen=True)
class Session:
    """Is what is stored of one device's session.

    Args:
        session_id: Names the token family; only refresh tokens carry it.
        device_id: Names the device in access tokens and lists, as long as it stays signed in.
        account_id: Whose session it is.
        device_key: The Ed25519 key that must sign every refresh.
        seed: Random bytes that go into every token of the family.
        generation: Number of rotations so far.
        token_hash: SHA-256 of the newest token.
        previous_hash: SHA-256 of the token before, or nothing before the first rotation.
        rotate_time: When the newest token was made, unix seconds.
        expire_time: When the newest token expires, unix seconds.
        is_ended: Whether it was signed out, replaced or revoked.
    """

    session_id: UUID
    device_id: UUID
    account_id: UUID
    device_key: bytes
    seed: bytes
    generation: int
    token_hash: bytes
    previous_hash: bytes | None
    rotate_time: float
    expire_time: float
    is_ended: bool = False


@dataclass(frozen=True)
class ShownToken:
    """Is a refresh token in parts; nothing about it is verified yet."""

    text: str
    session_id: UUID
    generation: int


class Decision(enum.Enum):
    """Says what a shown refresh token leads to."""

    INVALID = enum.auto()
    UNSIGNED = enum.auto()
    ROTATE = enum.auto()
    REPEAT = enum.auto()
    REUSED = enum.auto()


def signed_out() -> AccessTokenInvalid:
    """Return the refusal of what only a signed-in device may do, while its access token is valid a little longer."""
    return AccessTokenInvalid("This device has been signed out; sign in again.")


def token_hash(token: str) -> bytes:
    """Return what is stored of a refresh token. The token has 256 random bits, so a plain hash is enough."""
    return sha256(token.encode()).digest()


def parse_refresh_token(text: str) -> ShownToken:
    """Return the parts of a refresh token.

    Raises:
        RefreshTokenInvalid: The text has not the form of one.
    """
    body = b""
    if len(text) == _TOKEN_CHARACTERS and text.startswith(_PREFIX) and text.isascii():
        try:
            body = urlsafe_b64decode(text.removeprefix(_PREFIX) + "==")
        except binascii.Error:
            body = b""
    if len(body) != _BODY_BYTES or _encode(body) != text:
        raise RefreshTokenInvalid("This is no refresh token; sign in again.")
    return ShownToken(text, UUID(bytes=body[:16]), int.from_bytes(body[16:20], "big"))


def _encode(body: bytes) -> str:
    return _PREFIX + urlsafe_b64encode(body).rstrip(b"=").decode()


class RefreshTokens:
    """Makes and recognises refresh tokens under one server secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def make(self, session_id: UUID, seed: bytes, generation: int) -> str:
        """Return the token of one generation; always the same for the same arguments."""
        head = session_id.bytes + generation.to_bytes(4, "big")
        mac = hmac.new(self._secret, b"koikoi-refresh/v1" + head + seed, sha256).digest()
        return _encode(head + mac)

    def newest(self, session: Session) -> str:
        """Return the newest token of a session once more.

        Raises:
            RefreshTokenInvalid: The server's secret has changed since, so it cannot be made again.
        """
        token = self.make(session.session_id, session.seed, session.generation)
        if not hmac.compare_digest(token_hash(token), session.token_hash):
            raise RefreshTokenInvalid("The session cannot be continued; sign in again.")
        return token

    def decide(self, session: Session | None, shown: ShownToken, is_signed: bool, now: float) -> Decision:
        """Return what showing a token leads to; the table is at the top of this file."""
        if session is None or session.is_ended or session.expire_time <= now:
            return Decision.INVALID
        shown_hash = token_hash(shown.text)
        if hmac.compare_digest(shown_hash, session.token_hash):
            return Decision.ROTATE if is_signed else Decision.UNSIGNED
        if session.previous_hash is not None and hmac.compare_digest(shown_hash, session.previous_hash):
            is_lost_reply = is_signed and now - session.rotate_time <= REPLY_GRACE_S
            return Decision.REPEAT if is_lost_reply else Decision.REUSED
        is_older = shown.generation < session.generation and hmac.compare_digest(
            shown.text, self.make(session.session_id, session.seed, shown.generation)
        )
        return Decision.REUSED if is_older else Decision.INVALID
