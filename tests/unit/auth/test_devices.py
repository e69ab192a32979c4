"""Device ids have one form."""

from uuid import UUID

import pytest

from services.auth.domain.devices import device_unknown, parse_device_id
from services.auth.domain.errors import FieldInvalid
from services.auth.domain.sessions import signed_out

DEVICE_ID = "88d72059-b68b-41ac-bd18-23468cdfa9ac"


def test_an_id_is_read():
    assert parse_device_id(DEVICE_ID) == UUID(DEVICE_ID)


@pytest.mark.parametrize(
    "text", ["", "x", DEVICE_ID.upper(), DEVICE_ID.replace("-", ""), f"{{{DEVICE_ID}}}", f"urn:uuid:{DEVICE_ID}"]
)
def test_other_text_is_refused(text: str):
    with pytest.raises(FieldInvalid) as refusal:
        parse_device_id(text)
    assert refusal.value.field == "device_id"


def test_an_unknown_device_is_the_field_at_fault():
    assert device_unknown().field == "device_id"


def test_a_signed_out_device_is_told_to_sign_in():
    assert (signed_out().reason, "sign in again" in signed_out().message) == ("ACCESS_TOKEN_INVALID", True)
