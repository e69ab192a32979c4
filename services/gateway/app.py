"""Wires the gateway together: settings, channels, doors."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from services.gateway.backends import Backends
from services.gateway.connect import ConnectDoor, begin_trace, finish_calls, name_trace, speak_json
from services.gateway.cors import CrossOrigin
from services.gateway.documents import ApiDocument
from services.gateway.methods import Method, public_methods
from services.gateway.pages import FrontPage, KeySets, Probes
from services.gateway.settings import Settings
from services.gateway.signin import SignInPages
from services.gateway.streaming import StreamDoor, StreamPlaces
from services.gateway.unary import UnaryDoor
from services.kit.app import App
from services.kit.clock import Clock, SystemClock
from services.kit.health import Health, serve_http
from services.kit.metrics import Metrics
from services.kit.settings import host_port, load

PREFIX = "KOIKOI_GATEWAY"
_BACKLOG = 1024
_DEAD_MS = 60_000
_IDLE_S = 30.0
_LINGER_S = 2.0
_CLOSE_S = 5.0


@asynccontextmanager
async def build(
    environ: Mapping[str, str], *, clock: Clock | None = None, methods: Mapping[str, Method] | None = None
) -> AsyncIterator[App]:
    """Start the gateway; leaving finishes the calls in flight and stops it."""
    settings, clock = load(Settings, PREFIX, environ), clock or SystemClock()
    methods = public_methods() if methods is None else methods
    health, metrics = Health(), Metrics("gateway")
    async with AsyncExitStack() as stack:
        backends = Backends(settings.targets)
        stack.push_async_callback(backends.close)
        places = StreamPlaces(metrics, settings.most_streams, settings.most_streams_per_address)
        application = _application(settings, backends, places, health, metrics, clock, methods)
        metrics_port = await stack.enter_async_context(serve_http(settings.metrics_address, health, metrics))
        http_port = await stack.enter_async_context(_serve(settings.http_address, application))
        ports = {"http": http_port, "metrics": metrics_port}
        yield App("gateway", health, ports=ports, drains=[places.drain])


def _application(
    settings: Settings,
    backends: Backends,
    places: StreamPlaces,
    health: Health,
    metrics: Metrics,
    clock: Clock,
    methods: Mapping[str, Method],
) -> web.Application:
    unary = UnaryDoor(backends, trusted_proxies=settings.trusted_proxies, call_limit_s=settings.call_limit_s)
    streams = StreamDoor(
        backends,
        places,
        trusted_proxies=settings.trusted_proxies,
        body_limit_s=settings.call_limit_s,
        stall_limit_s=settings.stall_limit_s,
    )
    door, cross_origin = ConnectDoor(methods, unary, streams, metrics), CrossOrigin(settings.allowed_origins)
    document = ApiDocument()
    sign_in = SignInPages(
        backends,
        metrics,
        trusted_proxies=settings.trusted_proxies,
        call_limit_s=settings.call_limit_s,
        is_production=settings.environment == "production",
    )
    probes, key_sets = Probes(health), KeySets(backends, clock, settings.key_set_age_s)
    application = web.Application(middlewares=[begin_trace, finish_calls, speak_json, cross_origin.preflight])
    application.on_response_prepare.extend([_hide_server, name_trace, cross_origin.mark])
    application.add_routes(
        [
            web.get("/", FrontPage(methods).answer),
            web.get("/api", document.answer_page),
            web.get("/openapi.json", document.answer_json),
            web.get("/healthz", probes.healthz),
            web.get("/readyz", probes.readyz),
            web.get("/.well-known/{issuer}/jwks.json", key_sets.answer),
            web.get("/sign-in/start", sign_in.start, allow_head=False),  # a look ahead must not use it up
            web.get("/sign-in/callback", sign_in.callback, allow_head=False),
            web.route("*", "/{service}/{method}", door.answer),
        ]
    )
    return application


async def _hide_server(_request: web.Request, response: web.StreamResponse) -> None:
    """Do not tell strangers which versions run here."""
    response.headers["Server"] = "koikoi"


@asynccontextmanager
async def _serve(address: str, application: web.Application) -> AsyncIterator[int]:
    host, port = host_port(address, f"{PREFIX}_HTTP_ADDRESS")
    runner = web.AppRunner(
        application,
        access_log=None,
        handle_signals=False,
        auto_decompress=False,  # we unpack ourselves, up to a limit
        handler_cancellation=True,  # a stream ends with its reader; `finish_calls` keeps the others going
        keepalive_timeout=_IDLE_S,
        lingering_time=_LINGER_S,
        shutdown_timeout=_CLOSE_S,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, _listen(host, port)).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def _listen(host: str, port: int) -> socket.socket:
    """Listen; a connection whose peer acknowledges nothing for a minute is dead (else a stream to it lives on)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; accepted connections inherit it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_MS)
    return listener
