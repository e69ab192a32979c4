"""Whose ID token it is: the claims of OpenID Connect Core 1.0 section 3.1.3.7 with Google's additions.

The signature was checked before (`services.auth.oidc`); here every claim is untrusted in form and trusted in origin.
"""

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from services.auth.domain.errors import IdTokenInvalid

GOOGLE = "https://accounts.google.com"
_GOOGLE_NAMES = frozenset({GOOGLE, "accounts.google.com"})
_MAX_SECONDS = 2**53
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

    @property
    def issuer_names(self) -> frozenset[str]:
        """Return what the provider may call itself."""
        return _GOOGLE_NAMES if self.issuer == GOOGLE else frozenset({self.issuer})


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
    _require(_is_one_of(claims.get("iss"), rules.issuer_names), "iss", "comes from another issuer")
    _require(_is_for_us(claims, rules.client_ids), "aud", "was made for another client")
    authorized = claims.get("azp")
    is_ours = authorized is None or _is_one_of(authorized, rules.client_ids)
    _require(is_ours, "azp", "was requested by another client")
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


def _is_for_us(claims: Mapping[str, object], client_ids: frozenset[str]) -> bool:
    audience = claims.get("aud")
    if not isinstance(audience, list):
        return _is_one_of(audience, client_ids)
    # Several audiences: every one must be ours (an audience we do not trust could replay the token), azp must say who.
    return bool(audience) and "azp" in claims and all(_is_one_of(one, client_ids) for one in audience)


def _is_one_of(value: object, allowed: frozenset[str]) -> bool:
    return isinstance(value, str) and value in allowed


def _seconds(claims: Mapping[str, object], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _MAX_SECONDS:  # nor NaN
        raise _invalid(name, "holds no time")
    return float(value)


def _require(condition: bool, claim: str, why: str) -> None:
    if not condition:
        raise _invalid(claim, why)


def _invalid(claim: str, why: str) -> IdTokenInvalid:
    return IdTokenInvalid(f"The ID token {why} ({claim}); sign in again.", metadata={"claim": claim})
