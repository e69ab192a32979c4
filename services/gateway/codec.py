"""Message bodies in the two codecs of the Connect protocol: `proto` (binary) and `json` (ProtoJSON).

The library's JSON reader takes some things it should not (an array for an object, base64 with
holes) and does not say where a fault lies, so the shape is walked first, along the descriptors.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from google.protobuf import json_format
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from services.gateway.errors import RequestInvalid

JSON = "application/json"
PROTO = "application/proto"
MAX_ELEMENTS = 256
"""Of an array; more than any method takes. Each is read by itself, so 64 KiB of tiny ones would take a second."""
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}")
_KINDS = {
    FieldDescriptor.CPPTYPE_STRING: "text",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_FLOAT: "a number",
}


def read_message(content_type: str, body: bytes, message_type: type[Message]) -> bytes:
    """Check a body and give it as a binary message.

    Raises:
        RequestInvalid: It is not a message of this type; names the field where one is at fault.
    """
    if content_type == JSON:
        return _read_json(body, message_type)
    try:
        message_type.FromString(body)
    except DecodeError:
        raise RequestInvalid(f"The body is not a binary {message_type.DESCRIPTOR.name}.", field="body") from None
    return body


def write_message(content_type: str, content: bytes, message_type: type[Message]) -> bytes:
    """Write a binary message in the codec of the request.

    Raises:
        DecodeError: It is not a message of this type.
    """
    if content_type == PROTO:
        return content
    return json_format.MessageToJson(message_type.FromString(content), indent=None, ensure_ascii=False).encode()


def _read_json(body: bytes, message_type: type[Message]) -> bytes:
    try:
        members = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise RequestInvalid("The body is not JSON in UTF-8 without repeated members.", field="body") from None
    message = message_type()
    _check_object(members, message, "")
    try:
        json_format.ParseDict(members, message)
    except json_format.ParseError:
        raise RequestInvalid(f"The body is not a {message_type.DESCRIPTOR.name} in JSON.", field="body") from None
    return message.SerializeToString()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("repeated member")
    return members


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _check_object(value: object, message: Message, path: str) -> None:
    """Check members against the fields of a message; `message` is empty and only tells its type."""
    if not isinstance(value, dict):
        raise _wrong(path or "body", "an object")
    descriptor, seen = message.DESCRIPTOR, set[str]()
    for name, content in value.items():
        field: Any = descriptor.fields_by_camelcase_name.get(name) or descriptor.fields_by_name.get(name)
        if field is None:
            known = ", ".join(field.json_name for field in descriptor.fields) or "none"
            raise RequestInvalid(
                f"{descriptor.name} has no such field; its fields are: {known}.", field=path + _shorten(name)
            )
        if field.name in seen:
            raise _wrong(path + field.name, "given once, by one of its two names")
        seen.add(field.name)
        _check_field(content, field, message, path + field.name)


def _check_field(value: object, field: FieldDescriptor, message: Message, path: str) -> None:
    if value is None:
        return None
    if not field.is_repeated:
        return _check_value(value, field, message, path)
    if not isinstance(value, list) or len(value) > MAX_ELEMENTS:
        raise _wrong(path, f"an array of at most {MAX_ELEMENTS} elements")
    for index, element in enumerate(value):
        _check_value(element, field, message, f"{path}[{index}]")
    return None


def _check_value(value: object, field: FieldDescriptor, message: Message, path: str) -> None:
    if field.message_type is not None and not field.message_type.full_name.startswith("google.protobuf."):
        return _check_object(value, GetMessageClass(field.message_type)(), path + ".")
    if field.type == FieldDescriptor.TYPE_BYTES and not (isinstance(value, str) and _BASE64.fullmatch(value)):
        raise _wrong(path, "base64")
    probe = [value] if field.is_repeated else value
    try:
        json_format.ParseDict({field.name: probe}, type(message)())
    except (json_format.ParseError, ValueError):
        raise _wrong(path, _expected(field)) from None
    return None


def _expected(field: FieldDescriptor) -> str:
    if isinstance(field.enum_type, EnumDescriptor):
        return "one of " + ", ".join(value.name for value in field.enum_type.values)
    if field.message_type is not None:
        return f"a {field.message_type.full_name}"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "base64"
    return _KINDS.get(field.cpp_type, "a whole number in the range of its type")


def _wrong(path: str, expected: str) -> RequestInvalid:
    return RequestInvalid(f"{path.rstrip('.')} must be {expected}.", field=path.rstrip("."))


def _shorten(name: str) -> str:
    return "".join(char for char in name[:64] if char.isprintable()) or '""'
