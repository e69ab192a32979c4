"""Devices as the account's owner lists them."""

from dataclasses import dataclass
from uuid import UUID

from services.auth.domain.errors import DeviceUnknown, FieldInvalid

MAX_DEVICES = 100


@dataclass(frozen=True)
class Device:
    """Is a device of an account; times in unix seconds.

    Args:
        device_id: Names the device until it is signed out.
        name: The name it was given, else the one it gave itself.
        create_time: When its key first signed in.
        last_use_time: When it last signed in or refreshed.
        is_signed_in: Whether it has a live session.
    """

    device_id: UUID
    name: str
    create_time: float
    last_use_time: float
    is_signed_in: bool


def parse_device_id(text: str) -> UUID:
    """Return the id of a device in its one form: lower-case hexadecimal with hyphens.

    Raises:
        FieldInvalid: It is no such id.
    """
    try:
        device_id = UUID(text)
    except ValueError:
        device_id = None
    if device_id is None or str(device_id) != text:
        raise FieldInvalid(
            "device_id must be a UUID; list the devices.",
            metadata={"field": "device_id", "limit": "a UUID in lower case"},
            field="device_id",
        )
    return device_id


def device_unknown() -> DeviceUnknown:
    """Return the refusal for a device that is not of the account, or that no longer is."""
    return DeviceUnknown("The account has no such device; list the devices.", field="device_id")
