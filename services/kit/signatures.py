"""Device signatures: Ed25519 over tagged values, verified by libsodium only (docs/protocol.md sections 2 and 9).

Verifiers differ in what they accept; one verifier everywhere means that no two parties ever disagree about a signature.
"""

import hashlib

from nacl import bindings
from nacl.exceptions import BadSignatureError

__all__ = ["is_valid_public_key", "tagged", "verify"]

_PREFIX = b"koikoi-mp/v1/ristretto255-sha512"


def tagged(label: str, *fields: bytes) -> bytes:
    """Return T(label, fields...) of docs/protocol.md section 2: the 64-byte value that a device signs."""
    digest = hashlib.sha512()
    for part in (_PREFIX, label.encode(), *fields):
        digest.update(len(part).to_bytes(4, "big"))
        digest.update(part)
    return digest.digest()


def verify(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Say whether `signature` (64 bytes) over `message` is by `public_key` (32 bytes).

    libsodium's crypto_sign_verify_detached: cofactorless, S < L, canonical and not small-order key and R.
    """
    if len(public_key) != 32 or len(signature) != 64:
        return False
    try:
        bindings.crypto_sign_open(signature + message, public_key)
    except BadSignatureError:
        return False
    return True


def is_valid_public_key(key: bytes) -> bool:
    """Say whether `key` is 32 bytes that encode, canonically, a point of the prime-order group."""
    return len(key) == 32 and bool(bindings.crypto_core_ed25519_is_valid_point(key))
