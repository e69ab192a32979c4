"""Channels between our services."""

import asyncio

from services.kit.grpc_server import open_channel, start_server
from services.kit.health import Health
from services.kit.metrics import Metrics

CHECK = "/grpc.health.v1.Health/Check"
SERVING = b"\x08\x01"


def serve(address: str):
    health, metrics = Health(), Metrics("things")
    return start_server(address=address, services=[], health=health, metrics=metrics, verifier=None, grace_s=0.1)


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch):
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    async with serve("127.0.0.1:0") as port, open_channel(f"127.0.0.1:{port}") as channel:
        assert await channel.unary_unary(CHECK)(b"", timeout=5) == SERVING


async def test_a_service_that_comes_back_is_found_soon():
    async with serve("127.0.0.1:0") as port:
        channel = open_channel(f"127.0.0.1:{port}")
        assert await channel.unary_unary(CHECK)(b"", timeout=5) == SERVING
    await asyncio.sleep(4)  # long enough for some failed attempts to connect
    async with serve(f"127.0.0.1:{port}"):
        assert await channel.unary_unary(CHECK)(b"", timeout=2, wait_for_ready=True) == SERVING
    await channel.close()
