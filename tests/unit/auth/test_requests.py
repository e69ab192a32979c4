"""The form of requests, and challenges."""

import pytest

from services.auth.domain.challenges import Challenge, challenge_hash, challenge_invalid, check_challenge
from services.auth.domain.errors import ChallengeInvalid, DeviceKeyInvalid, FieldInvalid
from services.auth.domain.requests import (
    check_challenge_size,
    check_device_key_size,
    check_id_token_size,
    check_request_id,
    check_signature_size,
    content_hash,
)


@pytest.mark.parametrize("request_id", ["a", "x" * 64, "0197-abc_~!"])
def test_request_ids_are_short_visible_text(request_id: str):
    check_request_id(request_id)


@pytest.mark.parametrize("request_id", ["", "x" * 65, "a b", "a\n", "é", "\x7f", "a\x00"])
def test_other_request_ids_are_refused(request_id: str):
    with pytest.raises(FieldInvalid) as refusal:
        check_request_id(request_id)
    assert refusal.value.field == refusal.value.metadata["field"] == "request_id"
    assert refusal.value.metadata["limit"]


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_sizes_are_exact(size: int):
    with pytest.raises(DeviceKeyInvalid):
        check_device_key_size(bytes(size))
    with pytest.raises(FieldInvalid) as refusal:
        check_challenge_size(bytes(size))
    assert refusal.value.metadata == {"field": "challenge", "limit": "32 bytes"}
    with pytest.raises(FieldInvalid):
        check_signature_size(bytes(size + 1))
    check_device_key_size(bytes(32))
    check_challenge_size(bytes(32))
    check_signature_size(bytes(64))


def test_an_id_token_is_at_most_8192_ascii_characters():
    check_id_token_size("a")
    check_id_token_size("a" * 8192)
    for text in ("", "a" * 8193, "é"):
        with pytest.raises(FieldInvalid):
            check_id_token_size(text)


def test_content_is_equal_only_when_every_field_is():
    assert content_hash(b"a", b"b") == content_hash(b"a", b"b")
    assert len({content_hash(*f) for f in ((b"a", b"b"), (b"ab",), (b"", b"ab"), (b"ab", b""), (b"b", b"a"), ())}) == 6


def test_a_challenge_serves_the_key_it_was_given_to():
    challenge = Challenge(b"c" * 32, b"k" * 32, 5.0)
    assert check_challenge(challenge, b"k" * 32) is challenge
    for known, key in ((None, b"k" * 32), (challenge, b"j" * 32)):
        with pytest.raises(ChallengeInvalid) as refusal:
            check_challenge(known, key)
        assert str(refusal.value) == str(challenge_invalid())
    assert challenge_hash(b"c" * 32) != b"c" * 32
