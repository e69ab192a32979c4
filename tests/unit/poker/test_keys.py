"""Device signatures: libsodium's rules, and only our own tagged values are signed."""

import hashlib

import pytest
from koikoi_sdk.poker.keys import DeviceKey, is_device_key, signed_value, verify
from nacl import bindings

ORDER = 2**252 + 27742317777372353535851937790883648493
KEY = DeviceKey(b"k" * 32)
TORSION = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")  # order 8
SMALL_ORDER = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
]
NOT_CANONICAL = [
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
]


def test_a_signature_holds_for_its_label_fields_and_key_only() -> None:
    signature = KEY.sign("msg", b"a", b"b")
    assert len(signature) == 64
    assert verify(KEY.public, signature, "msg", b"a", b"b")
    assert not verify(KEY.public, signature, "hello", b"a", b"b")
    assert not verify(KEY.public, signature, "msg", b"ab", b"")
    assert not verify(DeviceKey(b"o" * 32).public, signature, "msg", b"a", b"b")
    assert not verify(KEY.public, signature[:-1] + bytes([signature[-1] ^ 1]), "msg", b"a", b"b")


def test_only_the_five_labels_can_be_signed() -> None:
    for label in ("hello", "msg", "match-result", "relay-connect", "auth"):
        assert verify(KEY.public, KEY.sign(label, b"x"), label, b"x")
    with pytest.raises(ValueError, match="five labels"):
        KEY.sign("deal", b"x")


def test_a_key_shows_nothing_of_its_secret_and_needs_32_bytes() -> None:
    assert KEY._secret.hex()[:16] not in repr(KEY)
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        DeviceKey(b"k" * 31)
    assert DeviceKey(bytearray(b"k" * 32)).public == KEY.public


@pytest.mark.parametrize("key", [*SMALL_ORDER, *NOT_CANONICAL])
def test_small_order_and_non_canonical_keys_are_no_device_keys(key: str) -> None:
    public = bytes.fromhex(key)
    assert not is_device_key(public)
    # With the identity as key, R = S*B verifies for every message in a naive verifier.
    scalar = (5).to_bytes(32, "little")
    forged = bindings.crypto_scalarmult_ed25519_base_noclamp(scalar) + scalar
    assert not verify(public, forged, "msg", b"x")


def test_a_key_with_a_torsion_component_is_no_device_key() -> None:
    assert is_device_key(KEY.public)
    assert not is_device_key(bindings.crypto_core_ed25519_add(KEY.public, TORSION))


def test_malformed_bytes_are_no_key_and_no_signature() -> None:
    signature = KEY.sign("msg", b"x")
    for public in (b"", KEY.public[:-1], KEY.public + b"\0"):
        assert not is_device_key(public)
        assert not verify(public, signature, "msg", b"x")
    for wrong in (b"", signature[:-1], signature + b"\0"):
        assert not verify(KEY.public, wrong, "msg", b"x")


def sign_with(commitment_extra: bytes | None) -> bytes:
    """Sign by hand, with a torsion component added to R if asked."""
    expanded = hashlib.sha512(b"k" * 32).digest()
    secret = int.from_bytes(expanded[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    nonce, message = 123456789, signed_value("msg", b"x")
    commitment = bindings.crypto_scalarmult_ed25519_base_noclamp(nonce.to_bytes(32, "little"))
    if commitment_extra:
        commitment = bindings.crypto_core_ed25519_add(commitment, commitment_extra)
    challenge = int.from_bytes(hashlib.sha512(commitment + KEY.public + message).digest(), "little")
    return commitment + ((nonce + challenge * secret) % ORDER).to_bytes(32, "little")


def test_a_torsion_component_in_r_is_refused() -> None:
    """A cofactored verifier accepts it; everybody must agree, so nobody does."""
    assert verify(KEY.public, sign_with(None), "msg", b"x")
    assert not verify(KEY.public, sign_with(TORSION), "msg", b"x")


def test_s_plus_the_order_is_refused() -> None:
    signature = KEY.sign("msg", b"x")
    larger = int.from_bytes(signature[32:], "little") + ORDER
    assert not verify(KEY.public, signature[:32] + larger.to_bytes(32, "little"), "msg", b"x")
