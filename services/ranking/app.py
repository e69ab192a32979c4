"""Wires ranking together: settings, stores, service, handlers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import grpc
from koikoi.ranking.v1 import ranking_service_pb2_grpc

from services.kit import log
from services.kit.app import App
from services.kit.clock import Clock, SystemClock
from services.kit.grpc_server import open_channel, start_server
from services.kit.health import Health, serve_http
from services.kit.limits import Limiter
from services.kit.metrics import Metrics
from services.kit.postgres import Pool, check_migrations, migrate, open_pool
from services.kit.redis import open_client
from services.kit.settings import load
from services.kit.tokens import AccessTokenVerifier, KeySet
from services.ranking.rpc.contracts import LobbyContracts
from services.ranking.rpc.handlers import ANONYMOUS, RankingHandlers
from services.ranking.rpc.keys import fetch_auth_keys, fetch_lobby_keys
from services.ranking.service import Ranking
from services.ranking.settings import Settings
from services.ranking.store.histories import PostgresHistories
from services.ranking.store.limits import CallLimits, PerMinute
from services.ranking.store.postgres import MIGRATIONS, SCHEMA, PostgresLog
from services.ranking.store.rebuild import rebuild
from services.ranking.store.standings import PostgresStandings

PREFIX = "KOIKOI_RANKING"


@asynccontextmanager
async def build(environ: Mapping[str, str], *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Start ranking; leaving stops it in reverse."""
    settings, clock = load(Settings, PREFIX, environ), clock or SystemClock()
    health, metrics = Health(), Metrics("ranking")
    async with AsyncExitStack() as stack:
        pool = await open_pool(settings.database_url, max_size=settings.pool_size, schema=SCHEMA)
        stack.push_async_callback(pool.close)
        await check_migrations(pool, SCHEMA, MIGRATIONS)
        redis = open_client(settings.redis_url)
        stack.push_async_callback(redis.aclose)
        lobby = await stack.enter_async_context(open_channel(settings.lobby_target))
        auth = await stack.enter_async_context(open_channel(settings.auth_target))
        issuer = settings.issuer_of_contracts
        ranking = Ranking(
            log=PostgresLog(pool),
            standings=PostgresStandings(pool),
            histories=PostgresHistories(pool),
            contracts=LobbyContracts(KeySet(issuer, partial(fetch_lobby_keys, lobby), clock)),
            limits=_limits(settings, Limiter(redis, clock, "ranking:limit:"), auth, clock),
            clock=clock,
            lobby_issuer=issuer,
        )
        health.checks = {"postgres": partial(pool.fetchval, "SELECT 1"), "redis": redis.ping}
        handlers = RankingHandlers(ranking)
        metrics_port = await stack.enter_async_context(serve_http(settings.metrics_address, health, metrics))
        port = await stack.enter_async_context(
            start_server(
                address=settings.grpc_address,
                services=[partial(ranking_service_pb2_grpc.add_RankingServiceServicer_to_server, handlers)],
                health=health,
                metrics=metrics,
                verifier=None,
                anonymous=ANONYMOUS,
                trusted_proxies=settings.trusted_proxies,
            )
        )
        yield App("ranking", health, ports={"grpc": port, "metrics": metrics_port})


def _limits(settings: Settings, limiter: Limiter, auth: grpc.aio.Channel, clock: Clock) -> CallLimits:
    keys = KeySet(settings.issuer_of_tokens, partial(fetch_auth_keys, auth), clock)
    verifier = AccessTokenVerifier(keys, f"koikoi/{settings.environment}", clock)
    per_minute = PerMinute(
        submissions=settings.submissions_per_minute,
        reads_of_address=settings.reads_per_minute,
        reads_of_account=settings.account_reads_per_minute,
    )
    return CallLimits(limiter, verifier, per_minute)


async def migrate_schema(environ: Mapping[str, str]) -> None:
    """Bring the schema `ranking` up to date."""
    await migrate(load(Settings, PREFIX, environ).database_url, SCHEMA, MIGRATIONS)


async def rebuild_ratings(environ: Mapping[str, str]) -> None:
    """Make all ratings anew from the log of results and mend what differs."""
    await _rebuild(environ, repair=True)


async def verify_ratings(environ: Mapping[str, str]) -> None:
    """Make all ratings anew from the log of results and only compare; exit status 1 when any differs."""
    if not await _rebuild(environ, repair=False):
        raise SystemExit(1)


async def _rebuild(environ: Mapping[str, str], *, repair: bool) -> bool:
    pool: Pool = await open_pool(load(Settings, PREFIX, environ).database_url, max_size=1, schema=SCHEMA)
    try:
        report = await rebuild(pool, repair=repair)
    finally:
        await pool.close()
    log.get().info(
        "ranking.rebuilt" if repair else "ranking.verified",
        results=report.results,
        accounts=report.accounts,
        seats_wrong=report.seats_wrong,
        accounts_wrong=report.accounts_wrong,
        appearances_wrong=report.appearances_wrong,
    )
    return report.is_clean
