"""A sign-in at the local OpenID provider without a browser: authorization code with PKCE (RFC 6749, RFC 7636).

For development, bots and tests. The provider answers `prompt=none` at once for the account named in `login_hint`.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from urllib.parse import parse_qs, urlsplit

import aiohttp

from koikoi_sdk.client.errors import ServerError, Unreachable

REDIRECT_URI = "http://127.0.0.1/callback"
"""Is never dialed: the code is read from the redirect itself."""


async def fetch_id_token(provider_url: str, *, client_id: str, login_hint: str, nonce: str) -> str:
    """Sign in as `login_hint` and give the ID token, which carries `nonce`.

    Raises:
        ServerError: The provider refused.
        Unreachable: The provider does not answer.
    """
    provider = provider_url.rstrip("/")
    state, verifier = secrets.token_urlsafe(16), secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": REDIRECT_URI,
        "scope": "openid profile",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "prompt": "none",
        "login_hint": login_hint,
    }
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=15)) as session:
            async with session.get(f"{provider}/authorize", params=query, allow_redirects=False) as response:
                location = response.headers.get("Location", "")
            code = _read_code(location, state)
            form = {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": REDIRECT_URI,
                "client_id": client_id,
                "code_verifier": verifier,
            }
            async with session.post(f"{provider}/token", data=form, allow_redirects=False) as response:
                answer = await response.json(content_type=None) if response.status == 200 else {}
    except (TimeoutError, aiohttp.ClientError, ValueError) as error:
        raise Unreachable(f"cannot reach the identity provider at {provider}: {type(error).__name__}") from error
    token = answer.get("id_token") if isinstance(answer, dict) else None
    if not isinstance(token, str):
        raise ServerError("the identity provider gave no ID token", code="unauthenticated")
    return token


def _read_code(location: str, state: str) -> str:
    answer = parse_qs(urlsplit(location).query)
    if not secrets.compare_digest("".join(answer.get("state", [])), state):
        raise ServerError("the identity provider answered another sign-in", code="unauthenticated")
    if "code" not in answer:
        problem = "".join(answer.get("error", ["no code"]))
        raise ServerError(f"the identity provider refused: {problem}", code="unauthenticated")
    return answer["code"][0]
