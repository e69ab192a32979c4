"""auth and the local provider as processes of their own: start, refuse, stop."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import grpc
import pytest
from koikoi.auth.v1.auth_service_pb2_grpc import AuthServiceStub

from services.kit.clock import SystemClock
from tests.integration.auth.device import Device
from tools.oidc_provider import ProviderSettings, open_provider

ROOT = Path(__file__).parents[3]
PATHS = ":".join(str(ROOT / part) for part in ("sdk/python", "gen", "."))


async def start(module: str, environ: dict[str, str], *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": PATHS, **environ},
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip


async def output(process: asyncio.subprocess.Process) -> str:
    async with asyncio.timeout(30):
        text, _ = await process.communicate()
    return text.decode()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def environ(tmp_path: Path, database_url: Callable[..., str], redis_url: str) -> dict[str, str]:
    return {
        "KOIKOI_AUTH_DATABASE_URL": database_url("auth"),
        "KOIKOI_AUTH_REDIS_URL": redis_url,
        "KOIKOI_AUTH_KEY_DIRECTORY": str(tmp_path / "auth-keys"),
        "KOIKOI_AUTH_GRPC_ADDRESS": f"127.0.0.1:{free_port()}",
        "KOIKOI_AUTH_METRICS_ADDRESS": f"127.0.0.1:{free_port()}",
        "KOIKOI_AUTH_OIDC_CLIENT_IDS": "koikoi-development",
    }


async def test_auth_starts_serves_and_stops(environ: dict[str, str], tmp_path: Path):
    settings = ProviderSettings(address="127.0.0.1:0", directory=tmp_path / "provider")
    async with open_provider(settings, SystemClock()) as provider:
        urls = {"KOIKOI_AUTH_OIDC_ISSUER": provider.issuer, "KOIKOI_AUTH_OIDC_JWKS_URL": provider.key_set_url}
        process = await start("services.auth", {**environ, **urls})
        try:
            async with aiohttp.ClientSession() as http, asyncio.timeout(30):
                while not await _is_ready(http, f"http://{environ['KOIKOI_AUTH_METRICS_ADDRESS']}/readyz"):
                    await asyncio.sleep(0.1)
            async with grpc.aio.insecure_channel(environ["KOIKOI_AUTH_GRPC_ADDRESS"]) as channel:
                device = Device(AuthServiceStub(channel), provider)
                await device.sign_in()
                await device.refresh()
        finally:
            process.send_signal(signal.SIGTERM)
            text = await output(process)
    assert process.returncode == 0, text
    assert '"event": "auth.stopped"' in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"KOIKOI_AUTH_OIDC_ISSUER": "http://127.0.0.1:1"}, "KOIKOI_AUTH_OIDC_ISSUER must be"),
        ({}, "KOIKOI_AUTH_TOKEN_SECRET must be"),
        ({"KOIKOI_AUTH_OIDC_CLIENT_IDS": ""}, "KOIKOI_AUTH_OIDC_CLIENT_IDS must name"),
    ],
)
async def test_production_refuses_to_start_with_one_sentence(
    environ: dict[str, str], changes: dict[str, str], words: str
):
    process = await start("services.auth", {**environ, "KOIKOI_ENVIRONMENT": "production", **changes})
    text = await output(process)
    assert process.returncode == 2
    assert text.startswith(words)
    assert text.count("\n") == 1


async def test_migrating_twice_is_fine(environ: dict[str, str], database_url: Callable[..., str]):
    owner = {"KOIKOI_AUTH_DATABASE_URL": database_url("auth", role="auth_owner")}
    for _ in range(2):
        process = await start("services.auth", {**environ, **owner}, "migrate")
        assert (await output(process), process.returncode) == ("", 0)


async def test_the_provider_warns_and_stops(tmp_path: Path):
    port = free_port()
    environ = {"KOIKOI_PROVIDER_ADDRESS": f"127.0.0.1:{port}", "KOIKOI_PROVIDER_DIRECTORY": str(tmp_path / "keys")}
    process = await start("tools.oidc_provider", environ)
    async with aiohttp.ClientSession() as http, asyncio.timeout(30):
        while not await _is_ready(http, f"http://127.0.0.1:{port}/jwks"):
            await asyncio.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    text = await output(process)
    assert process.returncode == 0
    assert "WARNING: for development only" in text
    refused = await start("tools.oidc_provider", {**environ, "KOIKOI_ENVIRONMENT": "production"})
    assert "does not run in production" in await output(refused)
    assert refused.returncode == 2


async def _is_ready(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
