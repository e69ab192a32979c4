"""Wires match together; the only file of it that calls constructors."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import grpc
from koikoi.lobby.v1 import lobby_service_pb2 as lobby_pb
from koikoi.lobby.v1 import lobby_service_pb2_grpc as lobby_grpc
from redis.asyncio import Redis

from services.kit import postgres
from services.kit.app import App, start_task
from services.kit.clock import Clock, SystemClock
from services.kit.grpc_server import open_channel, start_server
from services.kit.health import Health, serve_http
from services.kit.metrics import Metrics
from services.kit.redis import open_client
from services.kit.settings import load
from services.kit.tokens import KeySet, SigningKeys
from services.match.doorkeeper import Doorkeeper
from services.match.edge.grpc import ANONYMOUS, GrpcDoor
from services.match.edge.limits import Gate
from services.match.edge.visit import Porter
from services.match.edge.websocket import serve_websocket
from services.match.matches import Matches
from services.match.metrics import RelayMetrics
from services.match.receipts import write_receipt
from services.match.recorder import Recorder
from services.match.service import Relay
from services.match.settings import Settings
from services.match.store.clock import RedisClock
from services.match.store.news import RedisNews
from services.match.store.postgres import MIGRATIONS, SCHEMA, PostgresRecords
from services.match.store.redis import BUCKETS, RedisMatches
from services.match.store.revocations import RedisRevocations
from services.match.sweeper import Sweeper


@asynccontextmanager
async def build(environ: Mapping[str, str], *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Start match as the settings say; leaving the context closes everything in reverse."""
    settings = load(Settings, "KOIKOI_MATCH", environ)
    async with AsyncExitStack() as stack:
        clock = RedisClock(_client(stack, settings.redis_url), clock or SystemClock())
        await clock.adjust()
        metrics = Metrics("match")
        counts = RelayMetrics(metrics)
        keys = SigningKeys(settings.key_directory, clock, create=settings.environment == "development")
        process = secrets.token_hex(8)
        store, records = await _open_stores(stack, settings, clock, counts, process)
        relay = await _make_relay(stack, settings, clock, counts, store, records, keys, process)
        health = Health({"redis": store.ping, "postgres": records.ping})
        ports = await _open_doors(stack, settings, clock, relay, keys, health, metrics, counts)
        yield App("match", health, ports, drains=[relay.drain])


async def migrate(environ: Mapping[str, str]) -> None:
    """Bring the schema up to date."""
    await postgres.migrate(load(Settings, "KOIKOI_MATCH", environ).database_url, SCHEMA, MIGRATIONS)


async def _open_stores(
    stack: AsyncExitStack, settings: Settings, clock: Clock, counts: RelayMetrics, process: str
) -> tuple[RedisMatches, PostgresRecords]:
    pool = await postgres.open_pool(settings.database_url, schema=SCHEMA)
    stack.push_async_callback(pool.close)
    await postgres.check_migrations(pool, SCHEMA, MIGRATIONS)
    store = RedisMatches(
        _client(stack, settings.redis_url),
        clock,
        process=process,
        sweep_interval_ms=round(settings.sweep_s * 900),  # a little less than a period, so that none is skipped
        silence_ms=round(settings.silence_s * 1000),
        observe_commit=counts.commit_seconds.observe,
    )
    return store, PostgresRecords(pool, _client(stack, settings.outcomes_redis_url or settings.redis_url))


async def _make_relay(
    stack: AsyncExitStack,
    settings: Settings,
    clock: RedisClock,
    counts: RelayMetrics,
    store: RedisMatches,
    records: PostgresRecords,
    keys: SigningKeys,
    process: str,
) -> Relay:
    news = RedisNews(_client(stack, settings.redis_url))
    stack.push_async_callback(news.aclose)
    recorder = Recorder(store, records)
    matches = Matches(store, news, settings.limits(), counts, lambda: int(clock.now() * 1000), recorder.note)
    channel = await stack.enter_async_context(open_channel(settings.lobby_target))
    lobby_keys = KeySet(settings.issuer_of_contracts, _fetch_keys(channel), clock)
    relay = Relay(
        process=process,
        store=store,
        matches=matches,
        records=records,
        doorkeeper=Doorkeeper(lobby_keys, settings.door_names, clock),
        sign_receipt=partial(write_receipt, keys, settings.issuer_of_receipts),
        clock=clock,
        limits=settings.limits(),
        metrics=counts,
        min_client_version=settings.min_client_version,
        notices=settings.notices,
    )
    sweeper = Sweeper(
        process=process, buckets=BUCKETS, interval_s=settings.sweep_s, store=store, relay=relay, matches=matches,
        recorder=recorder, clock=clock, adjust=clock.adjust, metrics=counts,
    )  # fmt: skip
    await sweeper.sweep_all()  # this process is known to live before anybody can connect to it
    revocations = RedisRevocations(
        _client(stack, settings.revocations_redis_url or settings.redis_url), clock, relay.revoke
    )
    start_task(stack, news.follow(matches.hear, matches.refresh))
    start_task(stack, sweeper.run())
    start_task(stack, recorder.run())
    start_task(stack, revocations.follow())
    return relay


async def _open_doors(
    stack: AsyncExitStack,
    settings: Settings,
    clock: Clock,
    relay: Relay,
    keys: SigningKeys,
    health: Health,
    metrics: Metrics,
    counts: RelayMetrics,
) -> dict[str, int]:
    limits = settings.door_limits()
    gate, porter = Gate(limits, clock), Porter(relay, limits, clock, counts)
    grpc_port = await stack.enter_async_context(
        start_server(
            address=settings.grpc_address,
            services=[GrpcDoor(porter, gate, limits, keys.jwks).register],
            health=health,
            metrics=metrics,
            verifier=None,
            anonymous=ANONYMOUS,
        )
    )
    websocket_port = await stack.enter_async_context(serve_websocket(settings.websocket_address, porter, gate, limits))
    metrics_port = await stack.enter_async_context(serve_http(settings.metrics_address, health, metrics))
    return {"grpc": grpc_port, "websocket": websocket_port, "metrics": metrics_port}


def _client(stack: AsyncExitStack, url: str) -> Redis:
    client = open_client(url)
    stack.push_async_callback(client.aclose)
    return client


def _fetch_keys(channel: grpc.aio.Channel) -> Callable[[], Awaitable[str]]:
    stub = lobby_grpc.LobbyServiceStub(channel)

    async def fetch() -> str:
        return (await stub.GetKeySet(lobby_pb.GetKeySetRequest(), timeout=3.0)).jwks

    return fetch
