"""Whose ID token it is: the claims of OpenID Connect Core 1.0 section 3.1.3.7 with Google's additions.

The signature was checked before (`services.auth.oidc`); here every claim is untrusted in form and trusted in origin.
"""

import hmac
import math
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from services.auth.domain.errors import IdTokenInvalid

GOOGLE = "https://accounts.google.com"
_GOOGLE_NAMES = frozenset({GOOGLE, "accounts.google.com"})
_MAX_SUBJECT_CHARACTERS = 255  # OpenID Connect Core section 2


@dataclass(frozen=True)
class ProviderRules:
    """Says which ID tokens are meant for us.

    Args:
        issuer: The provider; for Google both of its names are accepted and mean one issuer.
        client_ids: Our own client ids; `aud` and `azp` must be among them.
        skew_s: How much the provider's clock may differ from ours, in seconds.
    """

    issuer: str
    client_ids: frozenset[str]
    skew_s: float = 60.0


@dataclass(frozen=True)
class Identity:
    """Is a person as the provider knows them; the subject never leaves auth."""

    issuer: str
    subject: str


def sign_in_nonce(device_key: bytes, challenge: bytes) -> str:
    """Return the nonce that binds an ID token to one device key and one challenge (docs/architecture.md section 5)."""
    digest = sha256(b"koikoi-signin/v1" + device_key + challenge).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def identify(claims: Mapping[str, object], rules: ProviderRules, nonce: str, now: float) -> Identity:
    """Return the identity of a verified ID token that is meant for this sign-in.

    Raises:
        IdTokenInvalid: Metadata names the claim that is missing or wrong.
    """
    _require(claims.get("iss") in _issuer_names(rules.issuer), "iss", "comes from another issuer")
    _require(_is_for_us(claims, rules.client_ids), "aud", "was made for another client")
    authorized = claims.get("azp")
    _require(authorized is None or authorized in rules.client_ids, "azp", "was requested by another client")
    expiry, issued = _seconds(claims, "exp"), _seconds(claims, "iat")
    _require(now < expiry + rules.skew_s, "exp", "has expired")
    _require(issued <= now + rules.skew_s and issued < expiry, "iat", "was issued in the future")
    if "nbf" in claims:
        _require(_seconds(claims, "nbf") <= now + rules.skew_s, "nbf", "is not valid yet")
    shown = claims.get("nonce")
    is_bound = isinstance(shown, str) and hmac.compare_digest(shown.encode(errors="replace"), nonce.encode())
    _require(is_bound, "nonce", "belongs to another sign-in")
    subject = claims.get("sub")
    is_subject = isinstance(subject, str) and subject.isascii() and 0 < len(subject) <= _MAX_SUBJECT_CHARACTERS
    _require(is_subject and str(subject).isprintable(), "sub", "names nobody")
    return Identity(rules.issuer, str(subject))


def _issuer_names(issuer: str) -> frozenset[str]:
    return _GOOGLE_NAMES if issuer == GOOGLE else frozenset({issuer})


def _is_for_us(claims: Mapping[str, object], client_ids: frozenset[str]) -> bool:
    audience = claims.get("aud")
    if isinstance(audience, str):
        return audience in client_ids
    # Several audiences: every one must be ours (an audience we do not trust could replay the token), azp must say who.
    is_list = isinstance(audience, list) and bool(audience) and "azp" in claims
    return is_list and all(isinstance(one, str) and one in client_ids for one in _as_list(audience))


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _seconds(claims: Mapping[str, object], name: str) -> float:
    value = claims.get(name)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    _require(is_number, name, "holds no time")
    assert isinstance(value, int | float)
    return float(value)


def _require(condition: bool, claim: str, why: str) -> None:
    if not condition:
        raise IdTokenInvalid(f"The ID token {why} ({claim}); sign in again.", metadata={"claim": claim})
