"""The form of requests: sizes first, before any work; and what makes a repeated request the same one."""

from hashlib import sha256

from services.auth.domain.challenges import CHALLENGE_BYTES
from services.auth.domain.errors import DeviceKeyInvalid, FieldInvalid

MAX_ID_TOKEN_CHARACTERS = 8192
MAX_REQUEST_ID_CHARACTERS = 64
SIGNATURE_BYTES = 64
DEVICE_KEY_BYTES = 32


def check_request_id(request_id: str) -> None:
    """Check 1-64 visible ASCII characters."""
    is_fine = 1 <= len(request_id) <= MAX_REQUEST_ID_CHARACTERS and request_id.isascii()
    if not is_fine or not all("!" <= character <= "~" for character in request_id):
        raise _invalid("request_id", "1-64 visible ASCII characters", "send a new random id per attempt")


def check_device_key_size(device_key: bytes) -> None:
    """Check 32 bytes."""
    if len(device_key) != DEVICE_KEY_BYTES:
        raise DeviceKeyInvalid("A device key must be 32 bytes.", metadata={"limit": "32 bytes"}, field="device_key")


def check_signature_size(signature: bytes) -> None:
    """Check 64 bytes."""
    if len(signature) != SIGNATURE_BYTES:
        raise _invalid("device_signature", "64 bytes", "send an Ed25519 signature")


def check_challenge_size(challenge: bytes) -> None:
    """Check 32 bytes."""
    if len(challenge) != CHALLENGE_BYTES:
        raise _invalid("challenge", "32 bytes", "send the challenge of BeginSignIn")


def check_id_token_size(id_token: str) -> None:
    """Check 1-8192 ASCII characters."""
    if not 1 <= len(id_token) <= MAX_ID_TOKEN_CHARACTERS or not id_token.isascii():
        raise _invalid("id_token", "1-8192 ASCII characters", "send the compact ID token")


def content_hash(*fields: bytes) -> bytes:
    """Return 32 bytes that are equal exactly when all fields are equal."""
    digest = sha256(b"koikoi-request/v1")
    for field in fields:
        digest.update(len(field).to_bytes(4, "big") + field)
    return digest.digest()


def _invalid(field: str, limit: str, advice: str) -> FieldInvalid:
    return FieldInvalid(f"{field} must be {limit}; {advice}.", metadata={"field": field, "limit": limit}, field=field)
