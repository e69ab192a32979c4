"""One verifier, with libsodium's strict rules."""

import hashlib

import pytest
from nacl.signing import SigningKey

from services.kit.signatures import is_valid_public_key, tagged, verify

L = 2**252 + 27742317777372353535851937790883648493
P = 2**255 - 19
IDENTITY = (1).to_bytes(32, "little")
SMALL_ORDER = [
    IDENTITY,
    bytes(32),
    (P - 1).to_bytes(32, "little"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
]


@pytest.fixture
def key() -> SigningKey:
    return SigningKey(b"k" * 32)


def test_the_tag_is_prefix_label_and_fields_each_with_its_length():
    prefix = b"koikoi-mp/v1/ristretto255-sha512"
    text = (32).to_bytes(4, "big") + prefix + b"\0\0\0\5label" + b"\0\0\0\1a" + b"\0\0\0\0"
    assert tagged("label", b"a", b"") == hashlib.sha512(text).digest()
    assert tagged("label", b"ab") != tagged("label", b"a", b"b")


def test_a_signature_verifies_only_as_it_is(key):
    public, message = bytes(key.verify_key), tagged("auth", b"x")
    signature = key.sign(message).signature
    assert verify(public, signature, message)
    for bit in range(0, 512, 7):
        bent = bytearray(signature)
        bent[bit // 8] ^= 1 << bit % 8
        assert not verify(public, bytes(bent), message)
    assert not verify(public, signature, message + b"x")
    assert not verify(bytes(SigningKey(b"o" * 32).verify_key), signature, message)


def test_s_plus_l_is_refused(key):
    message = b"m"
    signature = key.sign(message).signature
    s = int.from_bytes(signature[32:], "little") + L
    assert not verify(bytes(key.verify_key), signature[:32] + s.to_bytes(32, "little"), message)


@pytest.mark.parametrize("length", [0, 1, 31, 33, 63, 65, 128])
def test_wrong_lengths_are_refused_without_an_exception(key, length):
    message = b"m"
    signature = key.sign(message).signature
    assert not verify((bytes(key.verify_key) * 4)[:length], signature, message)
    assert length == 64 or not verify(bytes(key.verify_key), (signature * 2)[:length], message)
    assert not is_valid_public_key((bytes(key.verify_key) * 4)[:length])


@pytest.mark.parametrize("small", SMALL_ORDER)
def test_small_order_keys_are_refused(small):
    assert not is_valid_public_key(small)
    assert not verify(small, IDENTITY + bytes(32), b"m")


def test_keys_that_are_not_canonical_are_refused(key):
    assert is_valid_public_key(bytes(key.verify_key))
    for y in range(2, 19):
        assert not is_valid_public_key((P + y).to_bytes(32, "little"))
    assert not is_valid_public_key(b"\xff" * 32)
