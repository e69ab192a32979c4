"""A browser as a sign-in by redirect needs it: keeps cookies, shows every step, and fills in the provider's form."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import aiohttp


@dataclass
class Page:
    """What one address answered."""

    status: int
    headers: dict[str, str]
    cookies: list[str]
    text: str

    @property
    def location(self) -> str:
        return self.headers["Location"]


class Browser:
    """Goes where it is told and follows nothing by itself."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def get(self, url: str, **headers: str) -> Page:
        return await self._send("GET", url, headers=headers)

    async def log_in(self, provider_address: str, email: str) -> Page:
        """Send the provider's form as somebody who typed an e-mail address."""
        form = {**query_of(provider_address), "email": email, "name": email.partition("@")[0]}
        return await self._send("POST", provider_address.partition("?")[0], data=form)

    async def sign_in(self, authorize_url: str, email: str) -> str:
        """Go the whole way; gives the address of the client that the browser ends at, not dialed."""
        start = await self.get(authorize_url)
        assert start.status == 303, start.text
        provider = await self.log_in(start.location, email)
        assert provider.status == 303, provider.text
        back = await self.get(provider.location)
        assert back.status == 303, back.text
        return back.location

    async def _send(self, verb: str, url: str, **how: object) -> Page:
        async with self._http.request(verb, url, allow_redirects=False, **how) as response:  # type: ignore[arg-type]
            cookies = response.headers.getall("Set-Cookie", [])
            return Page(response.status, dict(response.headers), cookies, await response.text())


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        yield Browser(http)


def query_of(url: str) -> dict[str, str]:
    """Give the parameters of an address; each must be there once."""
    found = parse_qs(urlsplit(url).query, strict_parsing=True)
    assert all(len(values) == 1 for values in found.values()), url
    return {name: values[0] for name, values in found.items()}
