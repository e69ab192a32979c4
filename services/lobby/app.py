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

from services.kit import log, postgres
from services.kit.app import App, start_task
from services.kit.clock import Clock, SystemClock
from services.kit.grpc_server import open_channel, start_server
from services.kit.health import Health, serve_http
from services.kit.limits import Limiter
from services.kit.metrics import Metrics
from services.kit.redis import open_client
from services.kit.settings import load
from services.kit.tokens import AccessTokenVerifier, KeySet, SigningKeys
from services.lobby.board import Board
from services.lobby.conduct import Conducts, Counting
from services.lobby.doorkeeper import Doorkeeper
from services.lobby.feeds import Feeds
from services.lobby.holds import Holds
from services.lobby.hosting import Hosting
from services.lobby.notices import Notices
from services.lobby.passwords import ArgonPasswords
from services.lobby.rpc.convert import write_room
from services.lobby.rpc.handlers import ANONYMOUS, LobbyHandlers
from services.lobby.seating import Seating
from services.lobby.service import ROOM_LIFE_MS, Lobby
from services.lobby.settings import Settings
from services.lobby.store.blocks import MIGRATIONS, SCHEMA, PostgresBlocks
from services.lobby.store.conduct import PostgresMarks
from services.lobby.store.index import RedisIndex
from services.lobby.store.news import RedisNews
from services.lobby.store.outcomes import RedisOutcomes
from services.lobby.store.presence import RedisPresence
from services.lobby.store.revocations import Revocations
from services.lobby.store.rooms import RedisRooms
from services.lobby.streams import Streams
from services.lobby.sweeper import Sweeper
from services.lobby.watching import Watching

_START_LIMIT_S = 2.0


@asynccontextmanager
async def build(environ: Mapping[str, str], *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Start lobby as the settings say; leaving the context closes everything in reverse."""
    settings = load(Settings, "KOIKOI_LOBBY", environ)
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        keys = SigningKeys(settings.key_directory, clock, create=settings.environment == "development")
        client, metrics = _connect(stack, settings.redis_url), Metrics("lobby")
        handlers, streams = await _make_handlers(stack, settings, clock, client, keys, metrics)
        # Without Postgres no room is opened, but those that are open go on: it says nothing about readiness.
        health = Health({"redis": lambda: cast("Awaitable[object]", client.ping())})
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
        yield App("lobby", health, {"grpc": grpc_port, "metrics": http_port}, drains=[streams.drain])


async def migrate(environ: Mapping[str, str]) -> None:
    """Bring the schema up to date."""
    await postgres.migrate(load(Settings, "KOIKOI_LOBBY", environ).database_url, SCHEMA, MIGRATIONS)


async def _make_handlers(
    stack: AsyncExitStack, settings: Settings, clock: Clock, client: Redis, keys: SigningKeys, metrics: Metrics
) -> tuple[LobbyHandlers, Streams]:
    events = metrics.counter("rooms_total", "Rooms by what happened to them.", ["event"])
    passwords = ArgonPasswords()
    stack.callback(passwords.close)
    blocks, conducts = await _open_books(stack, settings, clock, metrics)
    rooms, index = RedisRooms(client, ROOM_LIFE_MS), RedisIndex(client, ROOM_LIFE_MS)
    presence, limits = RedisPresence(client, ROOM_LIFE_MS), Limiter(client, clock, "lobby:limit:")
    holds, doorkeeper = Holds(rooms, index, clock), Doorkeeper(rooms, passwords, limits, clock)

    def count(event: str) -> None:
        events.labels(event).inc()

    seating = Seating(
        issuer=settings.issuer_of_contracts, rooms=rooms, index=index, holds=holds, signer=keys, clock=clock,
        count=count,
    )  # fmt: skip
    lobby = Lobby(
        rooms=rooms, index=index, blocks=blocks, passwords=passwords, doorkeeper=doorkeeper, holds=holds,
        seating=seating, conducts=conducts, clock=clock, count=count,
    )  # fmt: skip
    hosting = Hosting(
        rooms=rooms, presence=presence, blocks=blocks, limits=limits, holds=holds, seating=seating, clock=clock,
        count=count,
    )  # fmt: skip
    revocations = Revocations(_connect(stack, settings.revocations_redis_url or settings.redis_url), clock)
    open_streams = metrics.gauge("open_streams", "Streams open now.").set
    streams = Streams(settings.stream_limits(), revocations.is_revoked, open_streams)
    notices = Notices(settings.bulletin(), settings.bulletin_path, streams.wake_all)
    feeds, board = Feeds(rooms, index, presence, clock), Board(rooms, index, clock, write_room)
    stack.push_async_callback(feeds.aclose)
    await _follow_revocations(stack, revocations, streams)
    _start_chores(stack, settings, Sweeper(rooms, index, clock), index, feeds, board, notices)
    watching = Watching(
        doorkeeper=doorkeeper, holds=holds, seating=seating, feeds=feeds, board=board, streams=streams,
        conducts=conducts, bulletin=lambda: notices.bulletin,
    )  # fmt: skip
    handlers = LobbyHandlers(
        lobby=lobby, hosting=hosting, watching=watching, conducts=conducts, keys=keys,
        is_revoked=revocations.is_revoked, bulletin=lambda: notices.bulletin, invite_base_url=settings.invite_base_url,
    )  # fmt: skip
    return handlers, streams


async def _open_books(
    stack: AsyncExitStack, settings: Settings, clock: Clock, metrics: Metrics
) -> tuple[PostgresBlocks, Conducts]:
    """Open what is in Postgres, and count outcomes from now on."""
    pool = await _open_pool(stack, settings.database_url)
    marks = PostgresMarks(pool)
    counted = metrics.counter("outcomes_total", "Outcomes told by match, by what became of them.", ["result"])
    conducts = Conducts(marks, settings.cool_down_s, clock)
    outcomes = RedisOutcomes(_connect(stack, settings.outcomes_redis_url or settings.redis_url))
    counting = Counting(outcomes, marks, conducts, lambda result: counted.labels(result).inc())
    start_task(stack, counting.run())
    return PostgresBlocks(pool), conducts


async def _open_pool(stack: AsyncExitStack, url: str) -> postgres.Pool:
    pool = await postgres.open_pool(url, schema=SCHEMA)
    stack.push_async_callback(pool.close)
    await postgres.check_migrations(pool, SCHEMA, MIGRATIONS)
    return pool


async def _follow_revocations(stack: AsyncExitStack, revocations: Revocations, streams: Streams) -> None:
    """Know the devices that were signed out before the first call; a stream that cannot be read yet only delays."""
    with suppress(RedisError, TimeoutError):
        async with asyncio.timeout(_START_LIMIT_S):
            await revocations.read_on()
    start_task(stack, revocations.follow(streams.wake_all))


def _start_chores(
    stack: AsyncExitStack,
    settings: Settings,
    sweeper: Sweeper,
    index: RedisIndex,
    feeds: Feeds,
    board: Board,
    notices: Notices,
) -> None:
    def hear(code: str) -> None:
        feeds.hear(code)
        board.hear(code)

    start_task(stack, RedisNews(_connect(stack, settings.redis_url)).follow(hear, feeds.hear_all))
    start_task(stack, feeds.run(settings.presence_period_s))
    start_task(stack, board.run())
    start_task(stack, notices.follow(settings.bulletin_period_s))
    start_task(stack, _sweep(sweeper, index, settings.sweep_period_s))


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
