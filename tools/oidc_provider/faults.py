"""How the provider misbehaves on purpose."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

KEY_SET_FAULTS = ("", "outage", "redirect", "oversize", "garbage", "empty", "weak", "compressed", "hang_up")
TOKEN_FAULTS = ("", "outage", "redirect", "oversize", "garbage", "hang_up", "no_id_token", "refused", "invalid_client")
SIGNING_FAULTS = ("", "unknown_key", "foreign_key", "weak_key", "none", "hmac", "RS512", "PS256", "damaged")
_MAX_DELAY_S = 60.0


class FaultInvalid(ValueError):
    """A fault is not one the provider can make."""


@dataclass(frozen=True)
class Faults:
    """Holds the present faults; without arguments there are none.

    Args:
        key_set: What is wrong with `/jwks`, one of `KEY_SET_FAULTS`.
        key_set_delay_s: How late `/jwks` answers, in seconds.
        token: What is wrong with `/token`, one of `TOKEN_FAULTS`.
        token_delay_s: How late `/token` answers, in seconds.
        cache_control: The Cache-Control header of `/jwks`.
        signing: How ID tokens are signed wrongly, one of `SIGNING_FAULTS`. `foreign_key` is an unpublished key under
            the published key's id; `hmac` is HS256 with the public key as the secret.
        claims: Overrides claims of ID tokens; a value of None takes the claim out.
        header: Overrides headers of ID tokens, likewise.
    """

    key_set: str = ""
    key_set_delay_s: float = 0.0
    token: str = ""
    token_delay_s: float = 0.0
    cache_control: str = "public, max-age=300"
    signing: str = ""
    claims: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    header: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if self.key_set not in KEY_SET_FAULTS:
            raise FaultInvalid(f"key_set must be one of {KEY_SET_FAULTS}")
        if self.token not in TOKEN_FAULTS:
            raise FaultInvalid(f"token must be one of {TOKEN_FAULTS}")
        if self.signing not in SIGNING_FAULTS:
            raise FaultInvalid(f"signing must be one of {SIGNING_FAULTS}")
        for name in ("key_set_delay_s", "token_delay_s"):
            delay_s = getattr(self, name)
            if not isinstance(delay_s, int | float) or not math.isfinite(delay_s):
                raise FaultInvalid(f"{name} must be a number")
            if not 0 <= delay_s <= _MAX_DELAY_S:
                raise FaultInvalid(f"{name} must be from 0 to {_MAX_DELAY_S:.0f}")
        if not isinstance(self.cache_control, str) or not self.cache_control.isprintable():
            raise FaultInvalid("cache_control must be a header value")
        if not isinstance(self.claims, Mapping) or not isinstance(self.header, Mapping):
            raise FaultInvalid("claims and header must be objects")


def parse_faults(body: object) -> Faults:
    """Return the faults of a JSON object; what it does not name is as it should be.

    Raises:
        FaultInvalid: It names something else.
    """
    known = {one.name for one in fields(Faults)}
    if not isinstance(body, dict) or not set(body) <= known:
        raise FaultInvalid(f"send an object with any of {', '.join(sorted(known))}")
    return Faults(**body)


def overridden(original: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return `original` with `overrides` applied; None takes a member out."""
    return {name: value for name, value in {**original, **overrides}.items() if value is not None}
