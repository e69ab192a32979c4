"""The two pages of sign-in by redirect, `/sign-in/start` and `/sign-in/callback`, and the one cookie there is.

auth decides everything; here the browser is bound and sent on. The cookie's name is `__Host-koikoi-sign-in`: browsers
take a name that begins so only with Secure, Path=/ and no Domain, so no other host can set it. Browsers differ about
Secure on plain http to a loopback address; there, and never in production, the name is `koikoi-sign-in` without Secure.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from koikoi.auth.v1 import auth_service_pb2 as pb

from services.gateway.answers import HTTP_STATUS, code_of, failed, reason_of, retry_after_s
from services.gateway.backends import Backends, CallFailed
from services.gateway.incoming import Networks, address_of
from services.gateway.methods import Method
from services.gateway.pages import page_headers
from services.kit import log
from services.kit.metrics import Metrics

SECURE_COOKIE = "__Host-koikoi-sign-in"
PLAIN_COOKIE = "koikoi-sign-in"
_SERVICE = pb.DESCRIPTOR.services_by_name["AuthService"].full_name
_PARAMETER = re.compile(r"[!-~]{1,2048}")
# Not one of the secrets in these addresses may reach another page, a cache or a search engine.
_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex"}


@dataclass(frozen=True, slots=True)
class _Page:
    """A private method of auth, and the name it is counted under."""

    label: str
    method: Method


def _page(label: str, name: str, request_type: type[Message], response_type: type[Message]) -> _Page:
    method = Method("auth", f"/{_SERVICE}/{name}", name, request_type, response_type, is_streaming=False, is_safe=False)
    return _Page(label, method)


_START = _page("SignInStart", "StartRedirectSignIn", pb.StartRedirectSignInRequest, pb.StartRedirectSignInResponse)
_FINISH = _page(
    "SignInCallback", "FinishRedirectSignIn", pb.FinishRedirectSignInRequest, pb.FinishRedirectSignInResponse
)


class SignInPages:
    """Sends browsers to the identity provider and back to the client.

    Args:
        backends: Where auth is.
        metrics: Counts the pages.
        trusted_proxies: Whose x-forwarded-for counts.
        call_limit_s: Longest time for auth's answer.
        is_production: Then no other cookie is set or read than the `__Host-` one.
    """

    def __init__(
        self,
        backends: Backends,
        metrics: Metrics,
        *,
        trusted_proxies: Networks,
        call_limit_s: float,
        is_production: bool,
    ) -> None:
        self._backends = backends
        self._metrics = metrics
        self._trusted_proxies = trusted_proxies
        self._call_limit_s = call_limit_s
        self._is_production = is_production

    async def start(self, request: web.Request) -> web.Response:
        """Answer `/sign-in/start`: set the cookie and go to the provider."""
        asked = pb.StartRedirectSignInRequest(ticket=_parameter(request, "ticket"))

        def leave(content: bytes) -> web.Response:
            departure = pb.StartRedirectSignInResponse.FromString(content)
            response = _redirect(departure.location)
            is_secure = self._is_production or departure.is_secure
            response.set_cookie(
                SECURE_COOKIE if is_secure else PLAIN_COOKIE,
                departure.cookie,
                max_age=departure.cookie_lifetime_s,
                path="/",
                secure=is_secure,
                httponly=True,
                samesite="Lax",
            )
            return response

        return await self._answer(_START, request, asked, leave)

    async def callback(self, request: web.Request) -> web.Response:
        """Answer `/sign-in/callback`: forget the cookie and go back to the client."""
        cookies = request.cookies
        plain = "" if self._is_production else cookies.get(PLAIN_COOKIE, "")
        cookie = cookies.get(SECURE_COOKIE, plain)
        asked = pb.FinishRedirectSignInRequest(
            state=_parameter(request, "state"),
            code=_parameter(request, "code"),
            error=_parameter(request, "error"),
            issuer=_parameter(request, "iss"),
            cookie=cookie if _PARAMETER.fullmatch(cookie) else "",
        )

        def leave(content: bytes) -> web.Response:
            response = _redirect(pb.FinishRedirectSignInResponse.FromString(content).location)
            for name in {SECURE_COOKIE, PLAIN_COOKIE} & set(cookies):
                response.del_cookie(name, path="/", secure=name == SECURE_COOKIE, httponly=True, samesite="Lax")
            return response

        return await self._answer(_FINISH, request, asked, leave)

    async def _answer(
        self, page: _Page, request: web.Request, asked: Message, leave: Callable[[bytes], web.Response]
    ) -> web.Response:
        """Ask auth and go where it says; what it refuses is a page for the person who reads it."""
        started, outcome = time.perf_counter(), "OK"
        address = address_of(request, self._trusted_proxies)
        metadata = {"x-forwarded-for": address} if address else {}
        try:
            response = leave(
                await self._backends.call(page.method, asked.SerializeToString(), metadata, self._call_limit_s)
            )
        except CallFailed as error:
            response, outcome = _refusal(error.status), code_of(error.status).name
        except Exception as error:  # noqa: BLE001 - a person is shown a page, whatever happened
            status = failed(error)
            response, outcome = _refusal(status), code_of(status).name
        elapsed_s = time.perf_counter() - started
        self._metrics.rpcs.labels(page.label, outcome).inc()
        self._metrics.rpc_seconds.labels(page.label).observe(elapsed_s)
        ms = round(elapsed_s * 1000, 1)
        log.get().info("gateway.page", page=page.label, outcome=outcome, status=response.status, ms=ms)
        return response


def _parameter(request: web.Request, name: str) -> str:
    """Give a parameter that is there once and is printable ASCII, else nothing (RFC 6749 section 3.1)."""
    values = request.query.getall(name, [])
    return values[0] if len(values) == 1 and _PARAMETER.fullmatch(values[0]) else ""


def _redirect(location: str) -> web.Response:
    return web.Response(status=303, headers={**_HEADERS, "Location": location})


def _refusal(status: Status) -> web.Response:
    """Write a page that says in two languages what to do. It names nothing of what the browser brought."""
    japanese, english = _SENTENCES.get(reason_of(status), _OTHERWISE)
    headers = {**page_headers(_STYLE), **_HEADERS}
    if (seconds := retry_after_s(status)) is not None:
        headers["Retry-After"] = str(seconds)
    text = _PAGE.format(style=_STYLE, japanese=japanese, english=english)
    return web.Response(status=HTTP_STATUS[code_of(status)], text=text, content_type="text/html", headers=headers)


_SENTENCES = {
    "REDIRECT_INVALID": (
        "このサインインは無効です。すでに使われたか、10分以上たったか、別のブラウザーで始められたものです。"
        "アプリに戻って、もう一度サインインしてください。",
        "This sign-in is not valid: it was used already, is older than 10 minutes, or was begun in another browser. "
        "Go back to the app and sign in again.",
    ),
    "RATE_LIMITED": (
        "サインインの回数が多すぎます。1分ほど待ってから、もう一度お試しください。",
        "Too many sign-ins from your address. Wait a minute, then try again.",
    ),
}
_OTHERWISE = (
    "いまはサインインできません。しばらくしてから、アプリに戻ってもう一度サインインしてください。",
    "Signing in does not work right now. Go back to the app in a while and sign in again.",
)
_STYLE = "body{font:1rem/1.8 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}"
_PAGE = """<!doctype html>
<html lang="ja">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>花札こいこい Koi-Koi Online</title>
<style>{style}</style></head>
<body>
<h1>サインインできませんでした</h1>
<p>{japanese}</p>
<div lang="en"><h2>You are not signed in</h2>
<p>{english}</p></div>
</body>
</html>
"""
