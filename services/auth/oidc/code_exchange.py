"""Exchanges an authorization code at the provider: a fixed URL, no redirects, a small body, a short time.

What the provider says about the code is the sign-in's fault; everything else is an outage, never a bad sign-in.
"""

import asyncio
import json
from typing import Any, NoReturn

import aiohttp

from services.auth.domain.errors import IdentityProviderUnavailable, IdTokenInvalid
from services.auth.domain.requests import MAX_ID_TOKEN_CHARACTERS
from services.auth.oidc.key_source import read_bounded
from services.kit import log

_TIMEOUT_S = 5.0
_RETRY_AFTER_S = 5.0


class HttpCodeExchange:
    """Implements `ports.CodeExchange`.

    Args:
        session: An aiohttp session; certificates are checked as usual.
        url: The provider's token endpoint.
        client_id: Our name at the provider.
        client_secret: Our secret there; empty for a public client.
        callback_url: The redirect address the codes were asked for with.
        timeout_s: Longest time for the whole exchange.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        *,
        client_id: str,
        client_secret: str,
        callback_url: str,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._session = session
        self._url = url
        self._form = {"grant_type": "authorization_code", "redirect_uri": callback_url, "client_id": client_id}
        if client_secret:
            self._form["client_secret"] = client_secret
        self._timeout_s = timeout_s

    async def id_token(self, code: str, verifier: str) -> str:
        """Return the ID token the code stands for; nothing about it is verified."""
        status, answer = await self._post({**self._form, "code": code, "code_verifier": verifier})
        if status != 200:
            error = answer.get("error")
            if status == 400 and error == "invalid_grant":
                raise _invalid("code")
            # Ours to mend when the provider does not know us (invalid_client); nothing of it is for the player.
            _fail(f"the answer has status {status}" + (" (invalid_client)" if error == "invalid_client" else ""))
        token = answer.get("id_token")
        if not isinstance(token, str) or not token.isascii() or not 0 < len(token) <= MAX_ID_TOKEN_CHARACTERS:
            raise _invalid("id_token")
        return token

    async def _post(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._session.post(self._url, data=form, headers=headers, allow_redirects=False) as response,
            ):
                status, body = response.status, await read_bounded(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _fail(f"the exchange ended with {type(error).__name__}")
        if body is None:
            _fail("the answer is too long")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            if status == 200:
                _fail("the answer is no JSON object")
            answer = {}
        return status, answer


def _fail(why: str) -> NoReturn:
    log.get().warning("auth.provider_exchange.failed", why=why)
    raise IdentityProviderUnavailable(
        "The identity provider does not answer as it should now; try again later.", retry_after_s=_RETRY_AFTER_S
    )


def _invalid(part: str) -> IdTokenInvalid:
    return IdTokenInvalid(f"The identity provider gave no ID token for this sign-in ({part}).", metadata={"part": part})
