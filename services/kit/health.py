"""Is this process alive, and should it get calls? Over HTTP for probes and over the standard gRPC health service.

`/healthz` answers while the event loop turns. `/readyz` and gRPC say "serving" only when every check passes and the
process is not draining. `/metrics` is served from the same port.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from aiohttp import web

from services.kit.metrics import CONTENT_TYPE, Metrics
from services.kit.settings import host_port

__all__ = ["Health", "register_grpc_health", "serve_http"]

Check = Callable[[], Awaitable[object]]
_CHECK_LIMIT_S = 2.0
_WATCH_PERIOD_S = 1.0
_SERVING, _NOT_SERVING = b"\x08\x01", b"\x08\x02"  # grpc.health.v1.HealthCheckResponse: one enum field


class Health:
    """The readiness of one process.

    Args:
        checks: By name, a callable that raises when the thing it asks (a pool, a client) does not answer.
    """

    def __init__(self, checks: dict[str, Check] | None = None) -> None:
        self.checks: dict[str, Check] = dict(checks or {})
        self.draining = False

    async def faults(self) -> list[str]:
        """Return the names of what keeps this process from serving; empty means ready."""
        if self.draining:
            return ["draining"]
        names = list(self.checks)
        answers = await asyncio.gather(*(self._ask(check) for check in self.checks.values()))
        return [name for name, ok in zip(names, answers, strict=True) if not ok]

    @staticmethod
    async def _ask(check: Check) -> bool:
        try:
            async with asyncio.timeout(_CHECK_LIMIT_S):
                await check()
        except Exception:  # noqa: BLE001 - whatever it raises, the dependency does not answer
            return False
        return True


@asynccontextmanager
async def serve_http(address: str, health: Health, metrics: Metrics) -> AsyncIterator[int]:
    """Serve `/healthz`, `/readyz` and `/metrics` on host:port; gives the bound port."""

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"status": "alive"})

    async def readyz(_request: web.Request) -> web.Response:
        faults = await health.faults()
        body = {"status": "not ready" if faults else "ready", "faults": faults}
        return web.json_response(body, status=503 if faults else 200)

    async def exposition(_request: web.Request) -> web.Response:
        return web.Response(body=metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application(client_max_size=1024)
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", exposition)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        host, port = host_port(address, "the metrics address")
        await web.TCPSite(runner, host, port).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def register_grpc_health(server: grpc.aio.Server, health: Health) -> None:
    """Add `grpc.health.v1.Health` for the whole process; the service name of a request makes no difference.

    Its two messages are one field each, so they are written here as bytes.
    """

    async def state() -> bytes:
        return _NOT_SERVING if await health.faults() else _SERVING

    async def check(_request: bytes, _context: Any) -> bytes:
        return await state()

    async def watch(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
        last = b""
        while True:
            if (current := await state()) != last:
                last = current
                yield current
            await asyncio.sleep(_WATCH_PERIOD_S)

    handlers: dict[str, Any] = {
        "Check": grpc.unary_unary_rpc_method_handler(check),
        "Watch": grpc.unary_stream_rpc_method_handler(watch),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", handlers),))
