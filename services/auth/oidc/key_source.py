"""Fetches the provider's key set over HTTP: one fixed URL, no redirects, a small body, a short time."""

import asyncio
import json

import aiohttp

from services.auth.oidc.key_cache import FetchedKeySet, FetchFailed

MAX_BODY_BYTES = 64 * 1024
_TIMEOUT_S = 5.0


class HttpKeySource:
    """Implements `key_cache.KeySetSource`.

    Args:
        session: An aiohttp session; certificates are checked as usual.
        url: Where the key set is.
        timeout_s: Longest time for the whole fetch.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._session = session
        self._url = url
        self._timeout_s = timeout_s

    async def fetch(self) -> FetchedKeySet:
        """Return the key set as it is now."""
        # Compressed bodies are not asked for: 64 KiB must stay 64 KiB. (Checked below: nothing is ever unpacked.)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._session.get(self._url, headers=headers, allow_redirects=False) as response,
            ):
                if response.status != 200:
                    raise FetchFailed(f"the answer has status {response.status}")
                body = await read_bounded(response)
                cache_control = ",".join(response.headers.getall("Cache-Control", []))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FetchFailed(f"the fetch ended with {type(error).__name__}") from None
        if body is None:
            raise FetchFailed(f"the answer is longer than {MAX_BODY_BYTES} bytes")
        try:
            return FetchedKeySet(json.loads(body), cache_control)
        except (ValueError, RecursionError):
            raise FetchFailed("the answer is no JSON") from None


async def read_bounded(response: aiohttp.ClientResponse) -> bytes | None:
    """Read a body; nothing when it is longer than `MAX_BODY_BYTES`."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def open_http_session() -> aiohttp.ClientSession:
    """Make the session that speaks with the provider; close it with `await session.close()`."""
    return aiohttp.ClientSession(auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)
