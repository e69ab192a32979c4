"""Wires auth: settings, stores, service, handlers. The only file that calls constructors."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import ClientSession
from koikoi.auth.v1.auth_service_pb2_grpc import add_AuthServiceServicer_to_server
from redis.asyncio import Redis

from services.auth.chance import SystemChance
from services.auth.domain.identity import ProviderRules
from services.auth.domain.sessions import RefreshTokens
from services.auth.issuance import Issuance, Policy
from services.auth.oidc.code_exchange import HttpCodeExchange
from services.auth.oidc.key_cache import KeyCache
from services.auth.oidc.key_source import HttpKeySource, open_http_session
from services.auth.oidc.verifier import IdTokenVerifier
from services.auth.redirects import RedirectPolicy, RedirectSignIn
from services.auth.rpc.handlers import ANONYMOUS, AuthHandlers
from services.auth.service import AuthService
from services.auth.settings import GENERATED_MARK, PREFIX, Settings, read_settings
from services.auth.store.postgres import MIGRATIONS, SCHEMA, PostgresAccounts
from services.auth.store.redirects import RedisRedirects
from services.auth.store.redis import Rates, RedisChallenges, RedisLimits, RevocationStream
from services.kit import log, postgres
from services.kit.app import App, start_task
from services.kit.clock import Clock, SystemClock
from services.kit.grpc_server import start_server
from services.kit.health import Health, serve_http
from services.kit.metrics import Metrics
from services.kit.redis import open_client
from services.kit.settings import load
from services.kit.tokens import AccessTokenVerifier, KeySet, SigningKeys

_ANNOUNCE_PERIOD_S = 1.0
_PURGE_PERIOD_S = 600.0


@asynccontextmanager
async def build(environ: Mapping[str, str], *, clock: Clock | None = None) -> AsyncIterator[App]:
    """Run auth until the context is left; `app.ports` tells the bound ports."""
    settings, clock = read_settings(environ), clock or SystemClock()
    async with AsyncExitStack() as stack:
        pool = await postgres.open_pool(settings.database_url, schema=SCHEMA)
        stack.push_async_callback(pool.close)
        await postgres.check_migrations(pool, SCHEMA, MIGRATIONS)
        redis = await _open_redis(stack, settings.redis_url)
        stream = await _open_redis(stack, settings.revocations_redis_url or settings.redis_url)
        http = open_http_session()
        stack.push_async_callback(http.close)
        keys = SigningKeys(settings.key_directory, clock, create=settings.environment != "production")
        accounts = PostgresAccounts(pool)
        shared = _Shared(
            policy=_policy(settings),
            accounts=accounts,
            limits=RedisLimits(redis, clock, _rates(settings)),
            provider=IdTokenVerifier(_open_key_cache(stack, http, settings, clock)),
            signer=keys,
            refresh_tokens=RefreshTokens(_token_secret(settings).encode()),
            clock=clock,
        )
        service = shared.auth_service(RedisChallenges(redis, clock), RevocationStream(stream))
        redirects = shared.redirect_sign_in(settings, RedisRedirects(redis, clock), http)
        _start_chores(stack, service, accounts, clock)
        health, metrics = Health({"postgres": lambda: pool.fetchval("SELECT 1"), "redis": redis.ping}), Metrics("auth")
        metrics_port = await stack.enter_async_context(serve_http(settings.metrics_address, health, metrics))
        grpc_port = await stack.enter_async_context(
            start_server(
                address=settings.grpc_address,
                services=[lambda server: add_AuthServiceServicer_to_server(AuthHandlers(service, redirects), server)],
                health=health,
                metrics=metrics,
                verifier=AccessTokenVerifier(_own_keys(settings, keys, clock), settings.audience, clock),
                anonymous=ANONYMOUS,
                trusted_proxies=settings.trusted_proxies,
            )
        )
        yield App("auth", health, {"grpc": grpc_port, "metrics": metrics_port})


async def migrate(environ: Mapping[str, str]) -> None:
    """Bring the schema up to date."""
    await postgres.migrate(load(Settings, PREFIX, environ).database_url, SCHEMA, MIGRATIONS)


@dataclass(frozen=True)
class _Shared:
    """Holds what both groups of use cases take."""

    policy: Policy
    accounts: PostgresAccounts
    limits: RedisLimits
    provider: IdTokenVerifier
    signer: SigningKeys
    refresh_tokens: RefreshTokens
    clock: Clock
    chance: SystemChance = field(default_factory=SystemChance)

    @property
    def issuance(self) -> Issuance:
        return Issuance(
            policy=self.policy,
            accounts=self.accounts,
            signer=self.signer,
            refresh_tokens=self.refresh_tokens,
            chance=self.chance,
            clock=self.clock,
        )

    def auth_service(self, challenges: RedisChallenges, announcements: RevocationStream) -> AuthService:
        return AuthService(
            policy=self.policy,
            accounts=self.accounts,
            challenges=challenges,
            limits=self.limits,
            provider=self.provider,
            issuance=self.issuance,
            signer=self.signer,
            announcements=announcements,
            refresh_tokens=self.refresh_tokens,
            chance=self.chance,
            clock=self.clock,
        )

    def redirect_sign_in(self, settings: Settings, redirects: RedisRedirects, http: ClientSession) -> RedirectSignIn:
        policy = RedirectPolicy(
            public_url=settings.public_url,
            authorize_url=settings.oidc_authorize_url,
            client_id=settings.redirect_client_id,
            redirect_uris=frozenset(settings.redirect_uris),
        )
        exchange = HttpCodeExchange(
            http,
            settings.oidc_token_url,
            client_id=settings.redirect_client_id,
            client_secret=settings.oidc_client_secret,
            callback_url=policy.callback_url,
        )
        return RedirectSignIn(
            policy=self.policy,
            redirect_policy=policy,
            redirects=redirects,
            limits=self.limits,
            provider=self.provider,
            exchange=exchange,
            issuance=self.issuance,
            chance=self.chance,
            clock=self.clock,
        )


def _rates(settings: Settings) -> Rates:
    return Rates(settings.address_per_minute, settings.account_per_minute, settings.device_per_minute)


def _policy(settings: Settings) -> Policy:
    rules = ProviderRules(settings.oidc_issuer, frozenset(settings.oidc_client_ids), settings.oidc_skew_s)
    return Policy(
        issuer=settings.issuer_name,
        audience=settings.audience,
        provider=rules,
        refresh_lifetime_s=settings.refresh_lifetime_s,
        picture_host=settings.picture_host,
    )


async def _open_redis(stack: AsyncExitStack, url: str) -> Redis:
    client = open_client(url)
    stack.push_async_callback(client.aclose)
    return client


def _open_key_cache(stack: AsyncExitStack, http: ClientSession, settings: Settings, clock: Clock) -> KeyCache:
    cache = KeyCache(HttpKeySource(http, settings.oidc_jwks_url), clock)
    stack.push_async_callback(cache.close)
    return cache


def _own_keys(settings: Settings, keys: SigningKeys, clock: Clock) -> KeySet:
    async def fetch() -> str:
        return keys.jwks()

    return KeySet(settings.issuer_name, fetch, clock)


def _start_chores(stack: AsyncExitStack, service: AuthService, accounts: PostgresAccounts, clock: Clock) -> None:
    """Announce sign-outs and delete what is old, again and again, until the stack is left."""

    async def purge() -> None:
        await accounts.purge(clock.now())

    for name, chore, period_s in (
        ("announce", service.announce_sign_outs, _ANNOUNCE_PERIOD_S),
        ("purge", purge, _PURGE_PERIOD_S),
    ):
        start_task(stack, _repeat(name, chore, period_s))


async def _repeat(name: str, chore: Callable[[], Awaitable[object]], period_s: float) -> None:
    while True:
        try:
            await chore()
        except Exception as error:  # noqa: BLE001 - a store that is away must not end the chore; the next turn tries again
            log.get().warning(f"auth.{name}.failed", error=type(error).__name__)
        await asyncio.sleep(period_s)


def _token_secret(settings: Settings) -> str:
    """Return the key of refresh tokens; in development one is made once and kept beside the signing keys."""
    if settings.token_secret:
        return settings.token_secret
    path = settings.key_directory / "refresh-token.secret"
    draft = settings.key_directory / f".{secrets.token_hex(8)}.draft"
    draft.touch(mode=0o600)
    draft.write_text(GENERATED_MARK + secrets.token_urlsafe(32), encoding="utf-8")
    try:
        path.hardlink_to(draft)  # appears whole or not at all; the first of several processes wins
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text(encoding="utf-8")
