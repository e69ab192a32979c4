"""Runs a service inside the test process, on free ports."""

import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.kit.app import App


@asynccontextmanager
async def running_app(service: str, **settings: str) -> AsyncIterator[App]:
    """Start `services.<service>.app.build`; `app.ports` tells where it listens.

    Settings are given without prefix and in lower case: `database_url=...` is `KOIKOI_AUTH_DATABASE_URL`.
    Every `*_address` the service has defaults should be overridden with port 0; grpc and metrics are already.
    """
    prefix = f"KOIKOI_{service.upper()}_"
    addresses = {"metrics_address": "127.0.0.1:0"}
    addresses["http_address" if service == "gateway" else "grpc_address"] = "127.0.0.1:0"
    if service == "match":
        addresses["websocket_address"] = "127.0.0.1:0"
    environ = {f"{prefix}{name.upper()}": value for name, value in {**addresses, **settings}.items()}
    build = importlib.import_module(f"services.{service}.app").build
    async with build({"KOIKOI_ENVIRONMENT": "development", **environ}) as app:
        yield app
