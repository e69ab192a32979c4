"""A running auth and its surroundings, as auth's tests use them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
from koikoi.auth.v1.auth_service_pb2_grpc import AuthServiceStub

from services.auth.app import build
from services.kit.app import App
from tests.harness import FakeClock
from tests.integration.auth.device import Device
from tools.oidc_provider import Provider

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
