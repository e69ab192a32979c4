"""Auth on real stores beside the real local provider, both on a clock that tests move by hand."""

import shutil
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.harness import FakeClock, running_app
from tests.harness.browser import Browser, open_browser
from tests.integration.auth.redirecting import Place, redirect_settings
from tests.integration.auth.world import CLIENT_SECRET, World
from tools.oidc_provider import Provider, ProviderSettings, open_provider
from tools.oidc_provider.keys import ProviderKeys


@pytest.fixture(scope="session")
def provider_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys made once: RSA keys are slow to make."""
    directory = tmp_path_factory.mktemp("provider-keys")
    ProviderKeys(directory)
    return directory


@pytest.fixture
async def provider(provider_keys: Path, tmp_path: Path, fake_clock: FakeClock) -> AsyncIterator[Provider]:
    directory = tmp_path / "provider"
    shutil.copytree(provider_keys, directory)
    clients = ("koikoi-development", f"koikoi-web:{CLIENT_SECRET}")
    settings = ProviderSettings(address="127.0.0.1:0", directory=directory, clients=clients)
    async with open_provider(settings, fake_clock) as provider:
        yield provider


@pytest.fixture
async def world(
    provider: Provider, tmp_path: Path, fake_clock: FakeClock, database_url: Callable[..., str], redis_url: str
) -> AsyncIterator[World]:
    environ = {
        "KOIKOI_ENVIRONMENT": "development",
        "KOIKOI_AUTH_DATABASE_URL": database_url("auth"),
        "KOIKOI_AUTH_REDIS_URL": redis_url,
        "KOIKOI_AUTH_KEY_DIRECTORY": str(tmp_path / "auth-keys"),
        "KOIKOI_AUTH_GRPC_ADDRESS": "127.0.0.1:0",
        "KOIKOI_AUTH_METRICS_ADDRESS": "127.0.0.1:0",
        "KOIKOI_AUTH_OIDC_ISSUER": provider.issuer,
        "KOIKOI_AUTH_OIDC_JWKS_URL": provider.key_set_url,
        "KOIKOI_AUTH_OIDC_CLIENT_IDS": "koikoi-development",
    }
    world = World(fake_clock, provider, environ)
    async with world.running():
        yield world


@pytest.fixture
async def place(world: World) -> AsyncIterator[Place]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        auth_address = f"127.0.0.1:{listener.getsockname()[1]}"
    async with running_app("gateway", auth_target=auth_address) as gateway:
        url = f"http://127.0.0.1:{gateway.ports['http']}"
        async with world.running(grpc_address=auth_address, **redirect_settings(world, url)):
            yield Place(world, url)


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened
