"""Authorization requests, codes and ID-token claims: RFC 6749, RFC 7636 (PKCE), RFC 8252 (loopback), OIDC Core."""

import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from services.kit.clock import Clock

CODE_LIFETIME_S = 60.0
ID_TOKEN_LIFETIME_S = 3600
_MAX_CODES = 10_000
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\])(:\d{1,5})?/[^\s#]*")
_MAX_TEXT = 512


class RequestRefused(Exception):
    """An authorization request that must not be answered by a redirect; the text is for the person at the browser."""


class GrantRefused(Exception):
    """An OAuth error: `error` is its code, the text its description."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error


@dataclass(frozen=True)
class Person:
    """Is whoever somebody says to be."""

    email: str
    name: str

    @property
    def subject(self) -> str:
        """Return a stable id in the form of Google's: 21 digits."""
        return str(int.from_bytes(sha256(self.email.lower().encode()).digest()[:9], "big") % 10**20).rjust(21, "1")


@dataclass(frozen=True)
class AuthorizationRequest:
    """Is a checked authorization request."""

    client_id: str
    redirect_uri: str
    state: str
    nonce: str
    code_challenge: str


@dataclass(frozen=True)
class _Code:
    request: AuthorizationRequest
    person: Person
    expire_time: float


def check_redirect(parameters: Mapping[str, str], clients: Mapping[str, str], allowed: frozenset[str]) -> None:
    """Check what decides whether an answer may be redirected at all: client and redirect address.

    Raises:
        RequestRefused: One of them is unknown; answering by redirect would help an attacker.
    """
    if parameters.get("client_id") not in clients:
        raise RequestRefused("The client_id is unknown.")
    uri = parameters.get("redirect_uri", "")
    if uri not in allowed and not (_LOOPBACK.fullmatch(uri) and "@" not in urlsplit(uri).netloc):
        raise RequestRefused("The redirect_uri is neither registered nor a loopback address.")


def check_request(parameters: Mapping[str, str]) -> AuthorizationRequest:
    """Return the request whose client and redirect address were checked.

    Raises:
        GrantRefused: Something else is wrong; the answer goes to the redirect address.
    """
    if any(len(value) > _MAX_TEXT for value in parameters.values()):
        raise GrantRefused("invalid_request", f"a parameter has more than {_MAX_TEXT} characters")
    if parameters.get("response_type") != "code":
        raise GrantRefused("unsupported_response_type", "response_type must be code")
    if "openid" not in parameters.get("scope", "").split():
        raise GrantRefused("invalid_scope", "scope must contain openid")
    if not parameters.get("state"):
        raise GrantRefused("invalid_request", "state is missing")
    challenge = parameters.get("code_challenge", "")
    if parameters.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(challenge):
        raise GrantRefused("invalid_request", "PKCE with code_challenge_method S256 is required")
    return AuthorizationRequest(
        client_id=parameters["client_id"],
        redirect_uri=parameters["redirect_uri"],
        state=parameters["state"],
        nonce=parameters.get("nonce", ""),
        code_challenge=challenge,
    )


def check_client(clients: Mapping[str, str], client_id: str, secret: str) -> None:
    """Check a client's authentication; a client without a secret is public and must send none.

    Raises:
        GrantRefused: The client is unknown or its secret is wrong.
    """
    expected = clients.get(client_id)
    if expected is None or not hmac.compare_digest(expected.encode(), secret.encode()):
        raise GrantRefused("invalid_client", "the client is unknown or its secret is wrong")


class Codes:
    """Gives out authorization codes, each good for one use within a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: dict[str, _Code] = {}

    def give(self, request: AuthorizationRequest, person: Person) -> str:
        """Return a new code."""
        now = self._clock.now()
        self._codes = {code: given for code, given in self._codes.items() if given.expire_time > now}
        if len(self._codes) >= _MAX_CODES:
            raise GrantRefused("temporarily_unavailable", "too many sign-ins at once")
        code = secrets.token_urlsafe(32)
        self._codes[code] = _Code(request, person, now + CODE_LIFETIME_S)
        return code

    def take(self, code: str, client_id: str, redirect_uri: str, verifier: str) -> tuple[AuthorizationRequest, Person]:
        """Use up a code.

        Raises:
            GrantRefused: It is unknown, used, expired, another client's, or the verifier does not fit. It is used up.
        """
        given = self._codes.pop(code, None)
        if given is None or given.expire_time <= self._clock.now():
            raise GrantRefused("invalid_grant", "the code is unknown, used or expired")
        if (given.request.client_id, given.request.redirect_uri) != (client_id, redirect_uri):
            raise GrantRefused("invalid_grant", "the code was given to another client or address")
        fitting = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if not _VERIFIER.fullmatch(verifier) or not hmac.compare_digest(fitting, given.request.code_challenge):
            raise GrantRefused("invalid_grant", "the code_verifier does not fit")
        return given.request, given.person


def id_token_claims(issuer: str, request: AuthorizationRequest, person: Person, now: float) -> dict[str, Any]:
    """Return the claims of an ID token in the form of Google's."""
    claims: dict[str, Any] = {
        "iss": issuer,
        "azp": request.client_id,
        "aud": request.client_id,
        "sub": person.subject,
        "email": person.email,
        "email_verified": True,
        "name": person.name,
        "iat": int(now),
        "exp": int(now) + ID_TOKEN_LIFETIME_S,
    }
    return {**claims, "nonce": request.nonce} if request.nonce else claims
