"""Wires lobby together; the only file of it that calls constructors."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import cast

import grpc
from koikoi.auth.v1 import auth_service_pb2 as auth_pb
from koikoi.auth.v1 import auth_service_pb2_grpc as auth_grpc
from koikoi.lobby.v1 import lobby_service_pb2_grpc as lobby_grpc
from redis.asyncio import Redis
from redis.exceptions import RedisError

from services.kit import log
from services.kit.app import App, start_task
from services.kit.clock import Clock, SystemClock
from services.kit.grpc_server import open_channel, start_server
from services.kit.health import Health, serve_http
from services.kit.limits import Limiter
from services.kit.metrics import Metrics
from services.kit.redis import open_client
from services.kit.settings import load
from services.kit.tokens import AccessTokenVerifier, KeySet, SigningKeys
from services.lobby.passwords import ArgonPasswords
from services.lobby.rpc.handlers import ANONYMOUS, LobbyHandlers
from services.lobby.service import ROOM_LIFE_MS, Lobby
from services.lobby.settings import Settings
from services.lobby.store.index import RedisIndex
from services.lobby.store.revocations import Revocations
from services.lobby.store.rooms import RedisRooms
from services.lobby.sweeper import Sweeper

_START_LIMIT_S = 2.0


@asynccontextmanager
async def build(environ: Mapping[str, str], *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Start lobby as the settings say; leaving the context closes everything in reverse."""
    settings = load(Settings, "KOIKOI_LOBBY", environ)
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        client = _connect(stack, settings.redis_url)
        keys = SigningKeys(settings.key_directory, clock, create=settings.environment == "development")
        passwords = ArgonPasswords()
        stack.callback(passwords.close)
        metrics = Metrics("lobby")
        events = metrics.counter("rooms_total", "Rooms by what happened to them.", ["event"])
        rooms, index = RedisRooms(client, ROOM_LIFE_MS), RedisIndex(client, ROOM_LIFE_MS)
        lobby = Lobby(
            issuer=settings.issuer_of_contracts,
            rooms=rooms,
            index=index,
            passwords=passwords,
            limits=Limiter(client, clock, "lobby:limit:"),
            signer=keys,
            clock=clock,
            count=lambda event: events.labels(event).inc(),
        )
        revocations = await _follow_revocations(stack, settings, clock)
        start_task(stack, _sweep(Sweeper(rooms, index, clock), index, settings.sweep_period_s))
        health = Health({"redis": lambda: cast("Awaitable[object]", client.ping())})
        handlers = LobbyHandlers(lobby, keys, revocations.is_revoked)
        channel = await stack.enter_async_context(open_channel(settings.auth_target))
        auth_keys = KeySet(settings.issuer_of_tokens, _fetch_keys(channel), clock)
        grpc_port = await stack.enter_async_context(
            start_server(
                address=settings.grpc_address,
                services=[lambda server: lobby_grpc.add_LobbyServiceServicer_to_server(handlers, server)],
                health=health,
                metrics=metrics,
                verifier=AccessTokenVerifier(auth_keys, f"koikoi/{settings.environment}", clock),
                anonymous=ANONYMOUS,
                trusted_proxies=settings.trusted_proxies,
            )
        )
        http_port = await stack.enter_async_context(serve_http(settings.metrics_address, health, metrics))
        yield App("lobby", health, {"grpc": grpc_port, "metrics": http_port})


async def migrate(_environ: Mapping[str, str]) -> None:
    """Do nothing: lobby keeps all it has in Redis. The command exists so that every service is deployed alike."""


async def _follow_revocations(stack: AsyncExitStack, settings: Settings, clock: Clock) -> Revocations:
    """Know the devices that were signed out before the first call; a stream that cannot be read yet only delays."""
    revocations = Revocations(_connect(stack, settings.revocations_redis_url or settings.redis_url), clock)
    with suppress(RedisError, TimeoutError):
        async with asyncio.timeout(_START_LIMIT_S):
            await revocations.read_on()
    start_task(stack, revocations.follow())
    return revocations


async def _sweep(sweeper: Sweeper, index: RedisIndex, period_s: float) -> None:
    """Sweep once a period over all processes; a failure is one missed period."""
    while True:
        await asyncio.sleep(period_s * random.uniform(0.9, 1.1))  # noqa: S311 - spreads processes, hides nothing
        try:
            if await index.lease_sweep(period_s * 0.8):
                await sweeper.sweep()
        except RedisError as error:
            log.get().warning("lobby.sweep.failed", error=type(error).__name__)


def _connect(stack: AsyncExitStack, url: str) -> Redis:
    client = open_client(url)
    stack.push_async_callback(client.aclose)
    return client


def _fetch_keys(channel: grpc.aio.Channel) -> Callable[[], Awaitable[str]]:
    stub = auth_grpc.AuthServiceStub(channel)

    async def fetch() -> str:
        return (await stub.GetKeySet(auth_pb.GetKeySetRequest(), timeout=3.0)).jwks

    return fetch
