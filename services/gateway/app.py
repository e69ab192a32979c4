"""Wires the gateway together: settings, channels, doors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from services.gateway.backends import OPTIONS, Backends
from services.gateway.connect import ConnectDoor, speak_json
from services.gateway.methods import public_methods
from services.gateway.pages import FrontPage, KeySets, Probes
from services.gateway.settings import Settings
from services.kit.app import App
from services.kit.clock import Clock, SystemClock
from services.kit.grpc_server import open_channel
from services.kit.health import Health, serve_http
from services.kit.metrics import Metrics
from services.kit.settings import host_port, load

PREFIX = "KOIKOI_GATEWAY"
_IDLE_S = 30.0
_LINGER_S = 2.0
_CLOSE_S = 5.0


@asynccontextmanager
async def build(environ: Mapping[str, str], *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Start the gateway; leaving finishes the calls in flight and stops it."""
    settings, clock = load(Settings, PREFIX, environ), clock or SystemClock()
    health, metrics = Health(), Metrics("gateway")
    async with AsyncExitStack() as stack:
        channels = {
            name: await stack.enter_async_context(open_channel(target, OPTIONS))
            for name, target in settings.targets.items()
        }
        application = _application(settings, Backends(channels), health, metrics, clock)
        metrics_port = await stack.enter_async_context(serve_http(settings.metrics_address, health, metrics))
        http_port = await stack.enter_async_context(_serve(settings.http_address, application))
        yield App("gateway", health, ports={"http": http_port, "metrics": metrics_port})


def _application(
    settings: Settings, backends: Backends, health: Health, metrics: Metrics, clock: Clock
) -> web.Application:
    methods = public_methods()
    door = ConnectDoor(
        methods,
        backends,
        metrics,
        trusted_proxies=settings.trusted_proxies,
        call_limit_s=settings.call_limit_s,
    )
    probes, key_sets = Probes(health), KeySets(backends, clock, settings.key_set_age_s)
    application = web.Application(middlewares=[speak_json])
    application.on_response_prepare.append(_hide_server)
    application.add_routes(
        [
            web.get("/", FrontPage(methods).answer),
            web.get("/healthz", probes.healthz),
            web.get("/readyz", probes.readyz),
            web.get("/.well-known/{issuer}/jwks.json", key_sets.answer),
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
        auto_decompress=False,  # compressed bodies are refused, not unpacked
        keepalive_timeout=_IDLE_S,
        lingering_time=_LINGER_S,
        shutdown_timeout=_CLOSE_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
