"""Fixtures for all tests. Servers are real, started once per test process, and die with it."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from redis import Redis

from tests.harness import FakeClock, Issuer, Stores
from tools.embedded import Postgres, Valkey

settings.register_profile("koikoi", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("koikoi")


@pytest.fixture(scope="session")
def stores() -> Iterator[Stores]:
    # Not pytest's own temporary folder: its names are too long for unix sockets.
    directory = Path(tempfile.mkdtemp(prefix="koikoi-test-"))
    stores = Stores(directory)
    yield stores
    stores.stop()
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(stores: Stores) -> Postgres:
    """The running Postgres of this test process."""
    return stores.postgres


@pytest.fixture(scope="session")
def valkey(stores: Stores) -> Valkey:
    """The running Valkey of this test process."""
    return stores.valkey


@pytest.fixture
def database_url(stores: Stores) -> Iterator[Callable[..., str]]:
    """`database_url("auth")`: a fresh database with auth's migrations, reached as the service's own role.

    `role="auth_owner"` (or `postgres`) reaches it as somebody else; a second call for the same service gives the
    same database.
    """
    names: dict[str, str] = {}

    def url(service: str, role: str | None = None) -> str:
        if service not in names:
            names[service] = stores.new_database(service)
        return stores.postgres.url(role or service, names[service])

    yield url
    for name in names.values():
        stores.drop_database(name)


@pytest.fixture
def redis_url(valkey: Valkey) -> str:
    """An empty Redis."""
    with Redis.from_url(valkey.url) as client:
        client.flushall()
    return valkey.url


@pytest.fixture
def fake_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def issuer(tmp_path: Path, fake_clock: FakeClock) -> Issuer:
    """auth's stand-in on the fake clock; `issuer.bearer(caller)` is gRPC metadata with an access token."""
    return Issuer(tmp_path / "auth-keys", fake_clock)
