"""Challenges of a sign-in: given to one device key, good for one success within 5 minutes."""

import hmac
from dataclasses import dataclass
from hashlib import sha256

from services.auth.domain.errors import ChallengeInvalid

CHALLENGE_BYTES = 32
CHALLENGE_LIFETIME_S = 300.0


@dataclass(frozen=True)
class Challenge:
    """Is a challenge that was given out; `expire_time` in unix seconds."""

    value: bytes
    device_key: bytes
    expire_time: float


def challenge_hash(value: bytes) -> bytes:
    """Return the name a challenge is stored under."""
    return sha256(value).digest()


def check_challenge(challenge: Challenge | None, device_key: bytes) -> Challenge:
    """Return the challenge when it was given to this key; whether it is used or expired the store decides at last.

    Raises:
        ChallengeInvalid: It is unknown, or was given to another key.
    """
    if challenge is None or not hmac.compare_digest(challenge.device_key, device_key):
        raise challenge_invalid()
    return challenge


def challenge_invalid() -> ChallengeInvalid:
    """Return the one refusal for unknown, used, expired and foreign challenges, so that they look alike."""
    minutes = int(CHALLENGE_LIFETIME_S // 60)
    return ChallengeInvalid(
        f"The challenge is unknown, used or older than {minutes} minutes; begin the sign-in again.", field="challenge"
    )
