"""What the gateway serves beside methods: key sets, health, and a front page."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping

from aiohttp import web

from services.gateway.backends import Backends, CallFailed
from services.gateway.errors import PageUnknown
from services.gateway.methods import ISSUERS, Method, key_set_method
from services.kit.clock import Clock
from services.kit.health import Health

_COOL_DOWN_S = 2.0
_FETCH_LIMIT_S = 5.0
_CLIENT_AGE_S = 300
"""Shorter than the 15 minutes for which a new key is published before its first use."""


class KeySets:
    """The issuers' public keys as JWKS, asked from them and kept for a while, longer when they do not answer."""

    def __init__(self, backends: Backends, clock: Clock, max_age_s: float) -> None:
        self._sets = {issuer: _KeySet(key_set_method(issuer), backends, clock, max_age_s) for issuer in ISSUERS}

    async def answer(self, request: web.Request) -> web.Response:
        """Answer `/.well-known/{issuer}/jwks.json`."""
        key_set = self._sets.get(request.match_info["issuer"])
        if key_set is None:
            raise PageUnknown(f"The issuers are {', '.join(ISSUERS)}.", metadata={"issuers": ",".join(ISSUERS)})
        headers = {"Cache-Control": f"public, max-age={_CLIENT_AGE_S}", "X-Content-Type-Options": "nosniff"}
        return web.Response(text=await key_set.text(), content_type="application/json", headers=headers)


class _KeySet:
    def __init__(self, method: Method, backends: Backends, clock: Clock, max_age_s: float) -> None:
        self._method, self._backends, self._clock, self._max_age_s = method, backends, clock, max_age_s
        self._text = ""
        self._next_fetch = -float("inf")
        self._failure: CallFailed | None = None
        self._lock = asyncio.Lock()

    async def text(self) -> str:
        """Give the key set; an old one while the issuer does not answer.

        Raises:
            CallFailed: It was never read, and reading it failed in the last two seconds.
        """
        if self._is_due():
            async with self._lock:
                if self._is_due():  # whoever held the lock may have fetched it
                    await self._fetch()
        if not self._text and self._failure is not None:
            raise self._failure
        return self._text

    def _is_due(self) -> bool:
        return self._clock.monotonic() >= self._next_fetch

    async def _fetch(self) -> None:
        try:
            content = await self._backends.call(self._method, b"", {}, _FETCH_LIMIT_S)
        except CallFailed as error:
            self._failure, age_s = error, _COOL_DOWN_S
        else:
            self._text, age_s = getattr(self._method.response_type.FromString(content), "jwks"), self._max_age_s  # noqa: B009
        self._next_fetch = self._clock.monotonic() + age_s


class Probes:
    """Tells whether the process lives and takes calls. A service that is down does not make the gateway unready."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def healthz(self, _request: web.Request) -> web.Response:
        """Answer while the event loop turns."""
        return web.json_response({"status": "alive"}, headers={"Cache-Control": "no-store"})

    async def readyz(self, _request: web.Request) -> web.Response:
        """Answer 503 while draining."""
        faults = await self._health.faults()
        body = {"status": "not ready" if faults else "ready"}
        return web.json_response(body, status=503 if faults else 200, headers={"Cache-Control": "no-store"})


class FrontPage:
    """A page for people who open the address in a browser."""

    def __init__(self, methods: Mapping[str, Method]) -> None:
        rows = "".join(f"<li><code>{path}</code></li>" for path in sorted(methods))
        links = "".join(
            f'<li><a href="/.well-known/{i}/jwks.json">/.well-known/{i}/jwks.json</a></li>' for i in ISSUERS
        )
        self._html = _PAGE.format(style=_STYLE, methods=rows, key_sets=links)

    async def answer(self, _request: web.Request) -> web.Response:
        """Answer `/`."""
        return web.Response(text=self._html, content_type="text/html", headers=page_headers(_STYLE))


def page_headers(style: str) -> dict[str, str]:
    """Give the headers of a page of our own: nothing but its one style runs or loads, and nobody frames it."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return {
        "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }


_STYLE = "body{font:1rem/1.6 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}"
_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Koi-Koi Online</title>
<style>{style}</style></head>
<body>
<h1>Koi-Koi Online <span lang="ja">花札こいこい</span></h1>
<p>Two players, one blind relay, no trusted dealer. This address speaks the
<a href="https://connectrpc.com/docs/protocol">Connect protocol</a>: JSON or binary messages over HTTP.
<a href="/api">What each method takes and gives</a>.</p>
<h2>Methods</h2><ul>{methods}</ul>
<h2>Public keys</h2><ul>{key_sets}</ul>
<h2>Health</h2><ul><li><a href="/healthz">/healthz</a></li><li><a href="/readyz">/readyz</a></li></ul>
</body>
</html>
"""
