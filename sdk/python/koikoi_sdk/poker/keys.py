"""Device keys: Ed25519 signatures over tagged hashes, with libsodium as the only verifier.

A device key signs nothing but T(label, fields...) of structures that the signer built itself, for
five labels (docs/protocol.md section 9). Verifiers of other libraries differ on edge cases (torsion
in R, small-order keys, S >= L), and a cheater would use the difference; so everybody uses
crypto_sign_verify_detached of libsodium (RFC 8032, cofactorless, with canonical and not small-order
key and R).
"""

from typing import Literal, get_args

from nacl import bindings
from nacl.exceptions import CryptoError

from koikoi_sdk.poker.transcript import digest

Label = Literal["hello", "msg", "match-result", "relay-connect", "auth"]
LABELS: frozenset[str] = frozenset(get_args(Label))
KEY_SIZE = 32
SEED_SIZE = 32
SIGNATURE_SIZE = 64


def signed_value(label: Label, *fields: bytes) -> bytes:
    """Give the 64 bytes that are signed.

    Raises:
        ValueError: The label is none of the five.
    """
    if label not in LABELS:
        raise ValueError("a device key signs only for its five labels")
    return digest(label, *fields)


class DeviceKey:
    """A device's signing key; its representation never shows the secret."""

    def __init__(self, seed: bytes | bytearray) -> None:
        """Derive the key pair from 32 secret bytes (RFC 8032 section 5.1.5)."""
        if len(seed) != SEED_SIZE:
            raise ValueError(f"a device key is made from {SEED_SIZE} bytes, not {len(seed)}")
        self.public, self._secret = bindings.crypto_sign_seed_keypair(bytes(seed))

    def sign(self, label: Label, *fields: bytes) -> bytes:
        """Sign T(label, fields...); 64 bytes, the same for the same input."""
        signed = bindings.crypto_sign(signed_value(label, *fields), self._secret)
        return signed[:SIGNATURE_SIZE]


def is_device_key(public: bytes) -> bool:
    """Tell whether bytes are a key that a device may have.

    True only for a canonical point of the prime-order subgroup that is not the identity; refuses
    small-order, mixed-order and non-canonical keys.
    """
    return len(public) == KEY_SIZE and bindings.crypto_core_ed25519_is_valid_point(public)


def verify(public: bytes, signature: bytes, label: Label, *fields: bytes) -> bool:
    """Tell whether the owner of a device key signed T(label, fields...).

    Exactly libsodium's verdict, so that no two parties ever disagree (section 9); whether a key may be a device key is
    asked once, where it enters. Never raises for received bytes.
    """
    if len(signature) != SIGNATURE_SIZE or len(public) != KEY_SIZE:
        return False
    try:
        bindings.crypto_sign_open(signature + signed_value(label, *fields), public)
    except CryptoError:
        return False
    return True
