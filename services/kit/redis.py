"""Redis: one client per use, scripts by their hash."""

from collections.abc import Sequence
from hashlib import sha1
from typing import Any, Protocol

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import Pipeline
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from services.kit import trace
from services.kit.settings import SettingsError

__all__ = ["Script", "is_outage", "load_script", "open_client"]

_OUTAGES = (
    exceptions.ConnectionError, exceptions.TimeoutError, exceptions.BusyLoadingError, exceptions.ClusterDownError,
    exceptions.MasterDownError, exceptions.OutOfMemoryError, exceptions.ReadOnlyError, exceptions.TryAgainError,
)  # fmt: skip
_REFUSALS = ("BUSY ", "MISCONF ", "NOREPLICAS ")
Argument = bytes | str | int | float


class Script(Protocol):
    """One atomic step on Redis."""

    async def __call__(self, keys: Sequence[bytes | str], args: Sequence[Argument] = ()) -> Any:
        """Run the script; all keys share one hash tag."""
        ...


def is_outage(error: Exception) -> bool:
    """Say whether Redis cannot serve now: away, starting, failing over, full, busy, or without its disk or replicas."""
    is_refusal = isinstance(error, exceptions.RedisError) and str(error).startswith(_REFUSALS)
    return is_refusal or isinstance(error, _OUTAGES)


def open_client(url: str, *, max_connections: int = 32) -> Redis:
    """Make a client for `redis://`, `rediss://` or `unix://` URLs; connects at the first command.

    Answers are bytes. A command waits at most 5 s for a free connection, as long for its answer, and is repeated once
    only when the connection was refused or dropped, so every script must be safe to run twice. Close with
    `await client.aclose()`.

    Raises:
        SettingsError: The URL is none of Redis.
    """
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=max_connections,
            timeout=5,
            socket_timeout=5.0,
            socket_connect_timeout=2.0,
            health_check_interval=15,
            retry=Retry(ExponentialBackoff(cap=0.2, base=0.05), 1),
            retry_on_error=[exceptions.ConnectionError],
        )
    except ValueError:  # which quotes the URL, and that may hold a password
        raise SettingsError("The URL of Redis must be like redis://HOST:PORT/0 or unix:///PATH.") from None
    return (_TracedRedis if trace.is_exporting() else Redis).from_pool(pool)


class _TracedRedis(Redis):
    """Tells the trace of the call in progress which commands it gave: their names, nothing else."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        with trace.current().ask("redis", str(args[0])):
            return await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:
        return _TracedPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)


class _TracedPipeline(Pipeline):
    async def execute(self, raise_on_error: bool = True) -> list[Any]:
        with trace.current().ask("redis", "MULTI" if self.is_transaction else "PIPELINE"):
            return await super().execute(raise_on_error)


def load_script(client: Redis, text: str) -> Script:
    """Prepare a Lua script: sent by hash, and in full only to a server that does not know it yet."""
    digest = sha1(text.encode(), usedforsecurity=False).hexdigest()

    async def run(keys: Sequence[bytes | str], args: Sequence[Argument] = ()) -> Any:
        try:
            return await client.evalsha(digest, len(keys), *keys, *args)
        except exceptions.NoScriptError:
            return await client.eval(text, len(keys), *keys, *args)

    return run
