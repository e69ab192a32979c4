"""One frozen dataclass per service, read from `KOIKOI_<SERVICE>_*`.

A field `turn_limit_s: float = 60.0` of match is `KOIKOI_MATCH_TURN_LIMIT_S`; any value may instead come from the file
that `KOIKOI_MATCH_TURN_LIMIT_S_FILE` names (secrets). Field metadata: `doc` (one sentence for docs/operations.md),
`min` and `max` for numbers, `choices` for text. `environment` falls back to `KOIKOI_ENVIRONMENT`. What is named
`..._DATABASE_URL` or `..._REDIS_URL` must be such a URL, or empty.
"""

import dataclasses
import math
import os
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_type_hints

__all__ = ["ENVIRONMENTS", "LOOPBACK", "Network", "SettingsError", "describe", "host_port", "load"]

ENVIRONMENTS = ("development", "production")
Network: TypeAlias = IPv4Network | IPv6Network
LOOPBACK: tuple[Network, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
T = TypeVar("T")
_SCHEMES = {"_DATABASE_URL": ("postgresql", "postgres"), "_REDIS_URL": ("redis", "rediss", "unix")}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class SettingsError(Exception):
    """A setting is unknown, missing or out of range; the text is one sentence that names the variable."""


def load(cls: type[T], prefix: str, environ: Mapping[str, str] = os.environ) -> T:
    """Read the settings of one service.

    Args:
        cls: A frozen dataclass whose fields are str, int, float, bool, Path, tuple[str, ...] or tuple[Network, ...].
        prefix: For example `KOIKOI_MATCH`.
        environ: Where to read from.

    Raises:
        SettingsError: A variable is unknown, missing or bad.
    """
    hints = get_type_hints(cls)
    fields = {f"{prefix}_{field.name.upper()}": field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    known = {*fields, *(f"{name}_FILE" for name in fields)}
    for name in sorted(environ):
        if name.startswith(f"{prefix}_") and name not in known:
            raise SettingsError(f"{name} is not a setting; the settings are {', '.join(sorted(fields))}.")
    values: dict[str, Any] = {}
    for name, field in fields.items():
        text = _text(name, environ, known_fields=fields)
        if text is None and field.name == "environment":
            name, text = "KOIKOI_ENVIRONMENT", environ.get("KOIKOI_ENVIRONMENT")  # noqa: PLW2901
        if text is not None:
            values[field.name] = _value(name, text, hints[field.name], field.metadata)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise SettingsError(f"{name} is not set; it has no default.")
    if values.get("environment", "development") not in ENVIRONMENTS:
        raise SettingsError(f"KOIKOI_ENVIRONMENT must be one of {', '.join(ENVIRONMENTS)}.")
    return cls(**values)


def describe(cls: type[Any], prefix: str) -> Iterator[tuple[str, str, str]]:
    """Yield (variable, default, what it does) for every setting, for docs/operations.md."""
    for field in dataclasses.fields(cls):
        default = "" if field.default is dataclasses.MISSING else field.default
        text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        yield f"{prefix}_{field.name.upper()}", text, str(field.metadata.get("doc", ""))


def host_port(text: str, name: str) -> tuple[str, int]:
    """Split `host:port` or `[v6]:port`; port 0 lets the system choose.

    Raises:
        SettingsError: The text is no address; the sentence names the variable `name`.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"{name} must be host:port with a port of 0 to 65535, not {text!r}.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _text(name: str, environ: Mapping[str, str], known_fields: Mapping[str, object]) -> str | None:
    file_name = f"{name}_FILE"
    path = None if file_name in known_fields else environ.get(file_name)
    if path is None:
        return environ.get(name)
    if name in environ:
        raise SettingsError(f"{name} and {file_name} are both set; keep one.")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file_name} names a file that cannot be read as text ({type(error).__name__}).") from None


def _value(name: str, text: str, hint: Any, metadata: Mapping[str, Any]) -> Any:
    if hint is bool:
        if text.lower() not in _TRUE + _FALSE:
            raise SettingsError(f"{name} must be true or false.")
        return text.lower() in _TRUE
    if hint in (int, float):
        return _number(name, text, hint, metadata)
    if hint is Path:
        return Path(text)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if hint == tuple[str, ...]:
        return tuple(parts)
    if hint == tuple[Network, ...]:
        return tuple(_network(name, part) for part in parts)
    if hint is str:
        return _checked(name, text, metadata)
    raise TypeError(f"the type of {name} is not one that settings can have")


def _checked(name: str, text: str, metadata: Mapping[str, Any]) -> str:
    if (choices := metadata.get("choices")) and text not in choices:
        raise SettingsError(f"{name} must be one of {', '.join(choices)}.")
    for suffix, schemes in _SCHEMES.items():
        if text and name.endswith(suffix) and text.partition("://")[0] not in schemes:
            raise SettingsError(f"{name} must be a URL that begins with {' or '.join(f'{it}://' for it in schemes)}.")
    return text


def _network(name: str, text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise SettingsError(f"{name} must be IP addresses or networks like 10.0.0.0/8, not {text!r}.") from None


def _number(name: str, text: str, hint: type[int] | type[float], metadata: Mapping[str, Any]) -> int | float:
    kind = "a whole number" if hint is int else "a number"
    low, high = metadata.get("min", 0), metadata.get("max", math.inf)
    bounds = f"of at least {low}" if high == math.inf else f"of {low} to {high}"
    try:
        value = hint(text)
    except ValueError:
        raise SettingsError(f"{name} must be {kind} {bounds}.") from None
    if not math.isfinite(value) or not low <= value <= high:
        raise SettingsError(f"{name} must be {kind} {bounds}.")
    return value
