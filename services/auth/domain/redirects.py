"""Sign-in by redirect: authorization code with PKCE towards the provider and towards our client (RFC 6749, 7636, 8252).

    Ticket     what a client asked for; its secret is in authorize_url, good for one opening within 10 minutes
    Journey    a ticket that a browser opened; named by the `state` we gave the provider, bound to the browser's cookie
    Grant      a verified identity, named by the code our client gets; good for one sign-in within 60 s

Each of them is used up by looking it up, except a grant: that Postgres uses up, by its challenge, like every sign-in.
Their secrets are random and stored as hashes; what is stored opens nothing by itself.
"""

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import urlencode

from services.auth.domain.challenges import Challenge
from services.auth.domain.errors import FieldInvalid, RedirectInvalid, RedirectUriInvalid, SignInCodeInvalid
from services.auth.domain.identity import Identity

JOURNEY_LIFETIME_S = 600.0
CODE_LIFETIME_S = 60.0
SECRET_BYTES = 32

ACCESS_DENIED = "access_denied"
TEMPORARILY_UNAVAILABLE = "temporarily_unavailable"
SERVER_ERROR = "server_error"

_MAX_URI_CHARACTERS = 512
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}")
_CLIENT_STATE = re.compile(r"[A-Za-z0-9._~-]{16,512}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_PROVIDER_CODE = re.compile(r"[!-~]{1,2048}")
_LOOPBACK = re.compile(r"http://(?:127\.0\.0\.1|\[::1\])(?::([1-9][0-9]{0,4}))?(?:/[A-Za-z0-9._~/-]*)?")
_DESCRIPTIONS = {
    ACCESS_DENIED: "the sign-in was not allowed at the identity provider",
    TEMPORARILY_UNAVAILABLE: "the identity provider does not answer now; try again later",
    SERVER_ERROR: "the identity provider's answer cannot be used; begin again",
}


@dataclass(frozen=True)
class Ticket:
    """Is what a client asked for; `expire_time` in unix seconds, of the whole way to the provider and back."""

    device_key: bytes
    challenge: bytes
    redirect_uri: str
    client_state: str
    code_challenge: str
    expire_time: float


@dataclass(frozen=True)
class Journey:
    """Is a ticket that a browser opened, and what its return must fit."""

    ticket: Ticket
    cookie_hash: bytes
    provider_verifier: str


@dataclass(frozen=True)
class ProviderAnswer:
    """Is what a browser brought back from the provider; nothing about it is checked."""

    state: str
    code: str
    error: str
    issuer: str
    cookie: str


@dataclass(frozen=True)
class Grant:
    """Is a verified identity on the way to the client that asked; its challenge expires when the code does."""

    identity: Identity
    challenge: Challenge
    code_challenge: str


def secret_text(random: bytes) -> str:
    """Return 32 random bytes as 43 characters that fit a URL: a ticket, a state, a cookie, a verifier or a code."""
    return urlsafe_b64encode(random).rstrip(b"=").decode()


def secret_hash(secret: str) -> bytes:
    """Return what is stored of a secret."""
    return sha256(secret.encode()).digest()


def is_secret(text: str) -> bool:
    """Say whether the text has the form of a secret of ours."""
    return _SECRET.fullmatch(text) is not None


def check_redirect_uri(uri: str, allowed: Collection[str]) -> None:
    """Check that the browser may be sent there: one of the operator's, to the letter, or a loopback address.

    Raises:
        RedirectUriInvalid: It is neither; answering there would help an attacker.
    """
    loopback = _LOOPBACK.fullmatch(uri) if len(uri) <= _MAX_URI_CHARACTERS else None
    is_loopback = loopback is not None and int(loopback[1] or 80) <= 65_535
    if uri not in allowed and not is_loopback:
        raise RedirectUriInvalid(
            "The redirect_uri is neither one that the operator allows nor a loopback address; use one that is.",
            metadata={"loopback": "http://127.0.0.1:PORT/ or http://[::1]:PORT/"},
            field="redirect_uri",
        )


def check_client_state(state: str) -> None:
    """Check 16-512 unreserved characters."""
    _check(_CLIENT_STATE.fullmatch(state), "client_state", "16-512 characters of A-Z a-z 0-9 - . _ ~")


def check_code_challenge(code_challenge: str) -> None:
    """Check the form of a SHA-256 in base64url."""
    _check(is_secret(code_challenge), "code_challenge", "base64url(SHA-256(code_verifier)), 43 characters")


def check_code_verifier(verifier: str) -> None:
    """Check 43-128 unreserved characters (RFC 7636 section 4.1)."""
    _check(_VERIFIER.fullmatch(verifier), "code_verifier", "43-128 characters of A-Z a-z 0-9 - . _ ~")


def pkce_challenge(verifier: str) -> str:
    """Return the S256 code challenge of a verifier (RFC 7636 section 4.2)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def check_browser(journey: Journey | None, cookie: str, now: float) -> Journey:
    """Return the journey when it is the one this browser began.

    Raises:
        RedirectInvalid: It is unknown, used or too old, or another browser began it; all look alike.
    """
    if journey is None or journey.ticket.expire_time <= now:
        raise redirect_invalid()
    if not hmac.compare_digest(secret_hash(cookie), journey.cookie_hash):
        raise redirect_invalid()
    return journey


def check_grant(grant: Grant | None, verifier: str) -> Grant:
    """Return the grant when the verifier fits; whether it is used or too old the store decides at last.

    Raises:
        SignInCodeInvalid: It is unknown, or was given to somebody else.
    """
    if grant is None or not hmac.compare_digest(pkce_challenge(verifier), grant.code_challenge):
        raise sign_in_code_invalid()
    return grant


def provider_refusal(answer: ProviderAnswer, issuers: Collection[str]) -> str:
    """Return the OAuth error for what the provider brought instead of a code; empty when there is a code.

    An answer that says to be of another issuer is refused (RFC 9207): its code must not be shown to ours.
    """
    if answer.issuer and answer.issuer not in issuers:
        return SERVER_ERROR
    if answer.error:
        return answer.error if answer.error in {ACCESS_DENIED, TEMPORARILY_UNAVAILABLE} else SERVER_ERROR
    return "" if _PROVIDER_CODE.fullmatch(answer.code) else SERVER_ERROR


def success_uri(ticket: Ticket, code: str, issuer: str) -> str:
    """Return where the browser goes with a code."""
    return _with_query(ticket.redirect_uri, {"code": code, "state": ticket.client_state, "iss": issuer})


def error_uri(ticket: Ticket, error: str, issuer: str) -> str:
    """Return where the browser goes with an error; `error` is one of the three above."""
    description = {"error": error, "error_description": _DESCRIPTIONS[error]}
    return _with_query(ticket.redirect_uri, {**description, "state": ticket.client_state, "iss": issuer})


def redirect_invalid() -> RedirectInvalid:
    """Return the one refusal for tickets and returns that are unknown, used, too old or of another browser."""
    return RedirectInvalid(
        "This sign-in is unknown, used, older than 10 minutes, or was begun in another browser; begin again."
    )


def sign_in_code_invalid() -> SignInCodeInvalid:
    """Return the one refusal for codes."""
    return SignInCodeInvalid(
        "The sign-in code is unknown, used or older than 60 seconds, or code_verifier does not fit it; begin again.",
        field="code",
    )


def _with_query(uri: str, parameters: Mapping[str, str]) -> str:
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(parameters)}"


def _check(is_right: object, field: str, limit: str) -> None:
    if not is_right:
        raise FieldInvalid(f"{field} must be {limit}.", metadata={"field": field, "limit": limit}, field=field)
