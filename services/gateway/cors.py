"""Lets pages of other origins call public methods (the Fetch standard): without cookies, ever."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from aiohttp import web

from services.gateway.answers import HEADERS
from services.gateway.incoming import PASSED_ON

_OPEN_PATHS = ("/koikoi.", "/.well-known/", "/openapi.json")
"""What other origins may read. Not the sign-in pages: they have the one cookie there is."""
_MAX_AGE_S = 7200
_ALLOWED_HEADERS = (
    "Accept-Encoding", "Authorization", "Connect-Accept-Encoding", "Connect-Content-Encoding",
    "Connect-Protocol-Version", "Connect-Timeout-Ms", "Content-Encoding", "Content-Type", "Traceparent", "Tracestate",
    "X-User-Agent", *(name.title() for name in PASSED_ON),
)  # fmt: skip
_EXPOSED_HEADERS = (
    "Accept-Post", "Allow", "Connect-Accept-Encoding", "Connect-Content-Encoding", "Content-Encoding", "Retry-After",
    "Trace-Id",
)  # fmt: skip


class CrossOrigin:
    """Answers preflights, and names on every open answer who may read it.

    Args:
        origins: Exact origins, or `*` for every one; empty for none.
    """

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)

    @web.middleware
    async def preflight(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Answer a browser that asks whether it may call."""
        is_preflight = "Origin" in request.headers and "Access-Control-Request-Method" in request.headers
        if request.method != "OPTIONS" or not is_preflight or not _is_open(request):
            answer: web.StreamResponse = await handler(request)
            return answer
        headers = {**HEADERS, "Vary": "Access-Control-Request-Headers, Access-Control-Request-Method"}
        if self._allowed(request) is not None:
            headers |= {
                "Access-Control-Allow-Methods": "GET, POST",
                "Access-Control-Allow-Headers": ", ".join(_ALLOWED_HEADERS),
                "Access-Control-Max-Age": str(_MAX_AGE_S),
            }
        return web.Response(status=204, headers=headers)

    async def mark(self, request: web.Request, response: web.StreamResponse) -> None:
        """Say on an answer who may read it."""
        if not _is_open(request):
            return
        response.headers["Vary"] = ", ".join(filter(None, [response.headers.get("Vary"), "Origin"]))
        if (origin := self._allowed(request)) is not None:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = ", ".join(_EXPOSED_HEADERS)

    def _allowed(self, request: web.Request) -> str | None:
        origin = request.headers.get("Origin")
        if origin is None:
            return None
        if "*" in self._origins:
            return "*"
        return origin if origin in self._origins else None


def _is_open(request: web.Request) -> bool:
    return request.path.startswith(_OPEN_PATHS)
