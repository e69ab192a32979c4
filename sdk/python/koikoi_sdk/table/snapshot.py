"""Writes a dataclass of plain values as JSON and reads exactly the same back.

The types of the fields say how: nothing in the text chooses a class, so reading it can build only
what the type allows. Bytes become base64. Values of `constants` types are not written at all; the
reader supplies them.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import types
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class SnapshotError(ValueError):
    """Stored data does not have the shape of this version of the client."""


def dump(value: object, constants: Mapping[type, object]) -> bytes:
    """Write a dataclass."""
    return json.dumps(_plain(value, constants), separators=(",", ":")).encode()


def load(kind: type[T], data: bytes, constants: Mapping[type, object]) -> T:
    """Read a dataclass that `dump` wrote, with the same constants.

    Raises:
        SnapshotError: The data is damaged or of another version.
    """
    try:
        value: T = _build(kind, json.loads(data), constants)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise SnapshotError(f"stored state cannot be read: {error}") from None
    return value


def _plain(value: Any, constants: Mapping[type, object]) -> Any:
    plain = value
    if type(value) in constants:
        plain = None
    elif isinstance(value, bytes | bytearray):
        plain = base64.b64encode(value).decode()
    elif isinstance(value, Enum):
        plain = value.value
    elif dataclasses.is_dataclass(value):
        plain = [_plain(getattr(value, field.name), constants) for field in dataclasses.fields(value)]
    elif isinstance(value, frozenset):
        plain = sorted(value)
    elif isinstance(value, tuple | list):
        plain = [_plain(item, constants) for item in value]
    elif isinstance(value, dict):
        plain = [[key, _plain(item, constants)] for key, item in value.items()]
    return plain


def _build(kind: Any, plain: Any, constants: Mapping[type, object]) -> Any:
    if kind in constants:
        return constants[kind]
    if kind in (bytes, bytearray):
        return kind(base64.b64decode(plain, validate=True))
    if dataclasses.is_dataclass(kind):
        return _build_dataclass(kind, plain, constants)
    if get_origin(kind) is not None:
        return _build_generic(kind, plain, constants)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain)
    if type(plain) is not kind:
        raise SnapshotError(f"a {kind} was expected")
    return plain


def _build_dataclass(kind: Any, plain: Any, constants: Mapping[type, object]) -> Any:
    hints = _hints(kind)
    return kind(*(_build(hint, item, constants) for hint, item in zip(hints, plain, strict=True)))


def _build_generic(kind: Any, plain: Any, constants: Mapping[type, object]) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return None if plain is None else _build(inner, plain, constants)
    if origin is Literal:
        return arguments[arguments.index(plain)]
    if origin is dict:
        key, item = arguments
        return {_build(key, k, constants): _build(item, v, constants) for k, v in plain}
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(_build(item, value, constants) for item, value in zip(arguments, plain, strict=True))
    return origin(_build(arguments[0], value, constants) for value in plain)


@cache
def _hints(kind: Any) -> tuple[Any, ...]:
    hints = get_type_hints(kind)
    return tuple(hints[field.name] for field in dataclasses.fields(kind))
