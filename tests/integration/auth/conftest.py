"""Auth on real stores beside the real local provider, both on a clock that tests move by hand."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from koikoi.auth.v1.auth_service_pb2_grpc import AuthServiceStub

from services.auth.app import build
from services.kit.app import App
from tests.harness import FakeClock
from tests.integration.auth.device import Device
from tools.oidc_provider import Provider, ProviderSettings, open_provider
from tools.oidc_provider.keys import ProviderKeys

CLIENT_SECRET = "development-secret-of-the-web-client"


@dataclass
class World:
    """A running auth and its surroundings."""

    clock: FakeClock
    provider: Provider
    environ: dict[str, str]
    apps: list[App] = field(default_factory=list)
    stubs: list[AuthServiceStub] = field(default_factory=list)

    @property
    def app(self) -> App:
        return self.apps[0]

    @property
    def stub(self) -> AuthServiceStub:
        return self.stubs[0]

    def device(self, email: str = "hana@example.org", process: int = 0) -> Device:
        return Device(self.stubs[process], self.provider, email)

    @asynccontextmanager
    async def running(self, **settings: str) -> AsyncIterator[App]:
        """Run one more auth process on the same stores."""
        overrides = {f"KOIKOI_AUTH_{name.upper()}": value for name, value in settings.items()}
        async with (
            build({**self.environ, **overrides}, clock=self.clock) as app,
            grpc.aio.insecure_channel(f"127.0.0.1:{app.ports['grpc']}") as channel,
        ):
            self.apps.append(app)
            self.stubs.append(AuthServiceStub(channel))
            yield app


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
