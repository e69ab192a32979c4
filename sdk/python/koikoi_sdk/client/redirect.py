"""A sign-in in the user's browser: a loopback address takes the code (RFC 8252), PKCE binds it to us (RFC 7636)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from koikoi_sdk.client.errors import ServerError

_PATH = "/signed-in"
_HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = """<!doctype html>
<html lang="ja">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>花札こいこい Koi-Koi Online</title></head>
<body>
<h1>{japanese}</h1>
<p lang="en">{english}</p>
</body>
</html>
"""
_DONE = _PAGE.format(
    japanese="この画面は閉じてかまいません。", english="You can close this window and go back to the terminal."
)
_REFUSED = _PAGE.format(
    japanese="サインインできませんでした。端末に戻ってください。",
    english="You are not signed in. Go back to the terminal; it says why.",
)
_FOREIGN = _PAGE.format(
    japanese="このサインインは、ここで始められたものではありません。", english="This sign-in was not begun here."
)


def make_verifier() -> tuple[str, str]:
    """Make a code verifier and its S256 challenge."""
    verifier = secrets.token_urlsafe(48)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return verifier, challenge


class Loopback:
    """Waits on 127.0.0.1 for the one request that brings the browser back; whatever else comes is turned away."""

    def __init__(self) -> None:
        self.state = secrets.token_urlsafe(32)
        self.issuer = ""
        """Must be set before the browser is sent off."""
        self.port = 0
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    @property
    def redirect_uri(self) -> str:
        """Give the address the browser comes back to."""
        return f"http://127.0.0.1:{self.port}{_PATH}"

    async def code(self, timeout_s: float) -> str:
        """Give the sign-in code.

        Raises:
            ServerError: The sign-in was refused.
            TimeoutError: Nobody came back in time.
        """
        try:
            answer = await asyncio.wait_for(asyncio.shield(self._answer), timeout_s)
        except TimeoutError:
            raise TimeoutError(
                f"nobody signed in within {timeout_s:.0f} s: run `koikoi login` again and open the address it prints"
            ) from None
        if "code" not in answer:
            why = answer.get("error_description") or answer.get("error", "no code came back")
            code = "unavailable" if answer.get("error") == "temporarily_unavailable" else "unauthenticated"
            raise ServerError(f"the sign-in was refused: {why}", code=code)
        return answer["code"]

    async def receive(self, request: web.Request) -> web.Response:
        """Answer the browser. The host must be the one we gave, so that no other name leads a page here."""
        query = request.query  # a parameter that comes twice is invalid (RFC 6749 section 3.1)
        answer = {name: value for name, value in query.items() if len(query.getall(name)) == 1}
        is_ours = (
            request.headers.get("Host") == f"127.0.0.1:{self.port}"
            and secrets.compare_digest(answer.get("state", "").encode(), self.state.encode())
            and secrets.compare_digest(answer.get("iss", "").encode(), self.issuer.encode())
        )
        if not is_ours or self._answer.done():
            return _page(_FOREIGN, 400)
        self._answer.set_result(answer)
        return _page(_DONE if "code" in answer else _REFUSED)


@asynccontextmanager
async def open_loopback() -> AsyncIterator[Loopback]:
    """Listen on a free port of 127.0.0.1 until the context is left."""
    loopback = Loopback()
    app = web.Application()
    app.add_routes([web.get(_PATH, loopback.receive, allow_head=False)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=2.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        loopback.port = int(runner.addresses[0][1])
        yield loopback
    finally:
        await runner.cleanup()


def _page(text: str, status: int = 200) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/html", headers=_HEADERS)
