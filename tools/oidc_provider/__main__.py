"""`python -m tools.oidc_provider`."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from services.kit.app import App, run
from services.kit.health import Health
from tools.oidc_provider.server import open_provider
from tools.oidc_provider.settings import read_settings


@asynccontextmanager
async def build(environ: Mapping[str, str]) -> AsyncIterator[App]:
    """Run the provider until the context is left."""
    async with open_provider(read_settings(environ)) as provider:
        warning = "WARNING: for development only - the local OpenID provider lets anybody sign in as anybody"
        print(f"{warning} ({provider.issuer})", file=sys.stderr, flush=True)
        yield App("provider", Health(), {"http": provider.port}, grace_s=5.0)


if __name__ == "__main__":
    run("provider", build)
