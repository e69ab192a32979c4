"""The provider's HTTP side."""

import asyncio
import gzip
import json
import re
import secrets
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import unquote_plus, urlencode, urlsplit

from aiohttp import web

from services.kit.clock import Clock, SystemClock
from services.kit.settings import host_port
from tools.oidc_provider.faults import FaultInvalid, Faults, parse_faults
from tools.oidc_provider.grants import (
    ID_TOKEN_LIFETIME_S,
    AuthorizationRequest,
    Codes,
    GrantRefused,
    Person,
    RequestRefused,
    check_client,
    check_redirect,
    check_request,
    id_token_claims,
)
from tools.oidc_provider.keys import ProviderKeys
from tools.oidc_provider.pages import HEADERS, login_page, refusal_page
from tools.oidc_provider.settings import PREFIX, ProviderSettings, check

_EMAIL = re.compile(r"[^@\s\x00-\x1f]{1,100}@[^@\s\x00-\x1f]{1,100}")
_OVERSIZE_BYTES = 200_000
_TOKEN_ERRORS = {
    "outage": (503, "temporarily_unavailable"),
    "refused": (400, "invalid_grant"),
    "invalid_client": (401, "invalid_client"),
}


class Provider:
    """A running provider. `faults` may be replaced at any time."""

    def __init__(self, settings: ProviderSettings, clock: Clock) -> None:
        self._clock = clock
        self._clients = {client: secret for client, _, secret in (one.partition(":") for one in settings.clients)}
        self._redirect_uris = frozenset(settings.redirect_uris)
        self._codes = Codes(clock)
        self.keys = ProviderKeys(settings.directory)
        self.faults = Faults()
        self.issuer = ""
        self.key_set_fetches = 0

    @property
    def key_set_url(self) -> str:
        """Return where the public keys are."""
        return f"{self.issuer}/jwks"

    @property
    def port(self) -> int:
        """Return the bound port."""
        return urlsplit(self.issuer).port or 80

    def id_token(self, email: str, nonce: str, *, client_id: str | None = None) -> str:
        """Return an ID token without the detour over a code, for tests; the present faults apply."""
        request = AuthorizationRequest(client_id or next(iter(self._clients)), "", "", nonce, "")
        person = Person(email, email.partition("@")[0])
        return self.keys.sign(id_token_claims(self.issuer, request, person, self._clock.now()), self.faults)

    def routes(self) -> list[web.RouteDef]:
        """Return what is served where."""
        return [
            web.get("/.well-known/openid-configuration", self._discovery),
            web.get("/authorize", self._authorize),
            web.post("/authorize", self._log_in),
            web.post("/token", self._token),
            web.get("/jwks", self._key_set),
            web.post("/admin/faults", self._set_faults),
            web.post("/admin/rotate", self._rotate),
        ]

    async def _discovery(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": self.key_set_url,
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "scopes_supported": ["openid", "email", "profile"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def _authorize(self, request: web.Request) -> web.Response:
        parameters = _only_once(request.query.items())
        return self._checked(parameters) or self._greet(parameters)

    async def _log_in(self, request: web.Request) -> web.Response:
        parameters = _only_once(_texts(await request.post()))
        refused = self._checked(parameters)
        if refused is not None:
            return refused
        return self._let_in(parameters, parameters.get("email", "").strip(), parameters.get("name", "").strip())

    def _checked(self, parameters: Mapping[str, str]) -> web.Response | None:
        """Return the refusal of an authorization request, or nothing."""
        try:
            check_redirect(parameters, self._clients, self._redirect_uris)
            check_request(parameters)
        except RequestRefused as refusal:
            return web.Response(status=400, text=refusal_page(str(refusal)), content_type="text/html", headers=HEADERS)
        except GrantRefused as refusal:
            return self._redirect(parameters, {"error": refusal.error, "error_description": str(refusal)})
        return None

    def _greet(self, parameters: Mapping[str, str]) -> web.Response:
        hint = parameters.get("login_hint", "")
        if parameters.get("prompt") != "none":
            return web.Response(text=login_page(parameters), content_type="text/html", headers=HEADERS)
        if not hint:
            return self._redirect(parameters, {"error": "login_required", "error_description": "no login_hint"})
        return self._let_in(parameters, hint if "@" in hint else f"{hint}@localhost", "")

    def _let_in(self, parameters: Mapping[str, str], email: str, name: str) -> web.Response:
        if not _EMAIL.fullmatch(email):
            return self._redirect(parameters, {"error": "access_denied", "error_description": "no e-mail address"})
        person = Person(email, name[:100] or email.partition("@")[0])
        try:
            return self._redirect(parameters, {"code": self._codes.give(check_request(parameters), person)})
        except GrantRefused as refusal:
            return self._redirect(parameters, {"error": refusal.error, "error_description": str(refusal)})

    def _redirect(self, parameters: Mapping[str, str], answer: Mapping[str, str]) -> web.Response:
        uri = parameters["redirect_uri"]
        query = urlencode({**answer, "state": parameters.get("state", ""), "iss": self.issuer})
        location = f"{uri}{'&' if '?' in uri else '?'}{query}"
        return web.Response(status=303, headers={**HEADERS, "Location": location})

    async def _token(self, request: web.Request) -> web.Response:
        headers = {"Cache-Control": "no-store"}
        faults = self.faults
        await asyncio.sleep(faults.token_delay_s)
        if faults.token in _TOKEN_ERRORS:
            status, error = _TOKEN_ERRORS[faults.token]
            return web.json_response({"error": error}, status=status, headers=headers)
        try:
            granted, person = self._grant(request, _only_once(_texts(await request.post())))
        except GrantRefused as refusal:
            status = 401 if refusal.error == "invalid_client" else 400
            body = {"error": refusal.error, "error_description": str(refusal)}
            return web.json_response(body, status=status, headers=headers)
        claims = id_token_claims(self.issuer, granted, person, self._clock.now())
        answer: dict[str, object] = {
            "access_token": secrets.token_urlsafe(32),  # opens nothing; OAuth wants one
            "token_type": "Bearer",
            "expires_in": ID_TOKEN_LIFETIME_S,
            "id_token": self.keys.sign(claims, self.faults),
        }
        return self._token_answer(request, answer, headers)

    def _token_answer(
        self, request: web.Request, answer: dict[str, object], headers: Mapping[str, str]
    ) -> web.Response:
        body = json.dumps(answer)
        match self.faults.token:
            case "no_id_token":
                body = json.dumps({name: value for name, value in answer.items() if name != "id_token"})
            case "redirect":
                return web.Response(status=307, headers={"Location": f"{self.issuer}/token?again"})
            case "oversize":
                body += " " * _OVERSIZE_BYTES
            case "garbage":
                body = "<html>" + body
            case "hang_up":
                assert request.transport is not None
                request.transport.close()
        return web.Response(text=body, content_type="application/json", headers=headers)

    def _grant(self, request: web.Request, form: Mapping[str, str]) -> tuple[AuthorizationRequest, Person]:
        client_id, secret = _client(request, form)
        check_client(self._clients, client_id, secret)
        if form.get("grant_type") != "authorization_code":
            raise GrantRefused("unsupported_grant_type", "grant_type must be authorization_code")
        code, redirect_uri = form.get("code", ""), form.get("redirect_uri", "")
        return self._codes.take(code, client_id, redirect_uri, form.get("code_verifier", ""))

    async def _key_set(self, request: web.Request) -> web.StreamResponse:
        self.key_set_fetches += 1
        faults = self.faults
        await asyncio.sleep(faults.key_set_delay_s)
        body = json.dumps(self.keys.key_set(faults)).encode()
        headers = {"Cache-Control": faults.cache_control, "Content-Type": "application/json"}
        match faults.key_set:
            case "outage":
                return web.Response(status=503)
            case "redirect":
                return web.Response(status=302, headers={"Location": f"{self.issuer}/jwks?again"})
            case "oversize":
                body += b" " * _OVERSIZE_BYTES
            case "garbage":
                body = b"<html>" + body
            case "compressed":
                body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
            case "hang_up":
                assert request.transport is not None
                request.transport.close()
        return web.Response(body=body, headers=headers)

    async def _set_faults(self, request: web.Request) -> web.Response:
        try:
            self.faults = parse_faults(await _json(request))
        except FaultInvalid as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response({})

    async def _rotate(self, request: web.Request) -> web.Response:
        body = await _json(request)
        forget_old = isinstance(body, dict) and body.get("forget_old") is True
        return web.json_response({"kid": self.keys.rotate(forget_old=forget_old)})


@asynccontextmanager
async def open_provider(settings: ProviderSettings, clock: Clock | None = None) -> AsyncIterator[Provider]:
    """Serve a provider until the context is left.

    Raises:
        SettingsError: The settings try to use it for more than development.
    """
    check(settings)
    provider = Provider(settings, clock or SystemClock())
    app = web.Application(client_max_size=64 * 1024)
    app.add_routes(provider.routes())
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        host, port = host_port(settings.address, f"{PREFIX}_ADDRESS")
        await web.TCPSite(runner, host, port).start()
        bound = int(runner.addresses[0][1])
        provider.issuer = f"http://[{host}]:{bound}" if ":" in host else f"http://{host}:{bound}"
        yield provider
    finally:
        await runner.cleanup()


def _only_once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return parameters by name; a repeated one is invalid (RFC 6749 section 3.1) and is left out altogether."""
    listed = list(pairs)
    names = [name for name, _ in listed]
    return {name: value for name, value in listed if names.count(name) == 1}


def _texts(form: Mapping[str, object]) -> list[tuple[str, str]]:
    items = form.items()  # of a multidict: repeated names come repeatedly
    return [(name, str(value)) for name, value in items]


def _client(request: web.Request, form: Mapping[str, str]) -> tuple[str, str]:
    """Return client id and secret, from the Authorization header (RFC 6749 section 2.3.1) or the form, not both."""
    header = request.headers.get("Authorization")
    if header is None:
        return form.get("client_id", ""), form.get("client_secret", "")
    scheme, _, encoded = header.partition(" ")
    try:
        client_id, colon, secret = b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        colon = client_id = secret = ""
    if scheme.lower() != "basic" or not colon or "client_secret" in form:
        raise GrantRefused("invalid_client", "send Basic authentication or client_secret, not both")
    return unquote_plus(client_id), unquote_plus(secret)


async def _json(request: web.Request) -> object:
    """Return a JSON body. Only that type is taken: a foreign web page cannot send it without asking first (CORS)."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json")
    try:
        return await request.json()
    except ValueError:
        raise web.HTTPBadRequest(text="the body is no JSON") from None
