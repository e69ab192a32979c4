"""Postgres: small pools that survive PgBouncer, and forward-only migrations.

PgBouncer in transaction mode lends another connection to each transaction, so nothing may live in a session: no
prepared statements, no session locks, no `SET`. The schema is found by the role's own search_path (`ALTER ROLE auth
SET search_path = auth`), or asked for at connection start on a direct connection.
"""

import hashlib
import re
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg

from services.kit import trace
from services.kit.settings import SettingsError

__all__ = ["OUTAGES", "MigrationError", "Pool", "check_migrations", "migrate", "open_pool"]

OUTAGES = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InterfaceError,
)
"""What a pool raises while Postgres cannot serve: away, starting, stopping, full, or a standby."""
Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
_FILE_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")
_SCHEMA_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


class MigrationError(SettingsError):
    """The schema and the migration files do not fit; the text is one sentence that says what to do."""


async def open_pool(url: str, *, min_size: int = 1, max_size: int = 4, schema: str) -> Pool:
    """Open a pool whose unqualified names mean tables of `schema`. Close with `await pool.close()`.

    A statement takes at most 10 s. Transactions never span a network call.

    Raises:
        ConnectionError: There is no Postgres, or it refuses us; one sentence that names the setting.
    """
    probe = await _connect(url, schema)
    try:
        current = await probe.fetchval("SELECT current_schema()")
    finally:
        await probe.close()
    pool: Pool = await asyncpg.create_pool(
        url,
        min_size=min_size,
        max_size=max_size,
        statement_cache_size=0,
        command_timeout=10,
        timeout=10,
        connection_class=_TracedConnection if trace.is_exporting() else asyncpg.Connection,
        # A start parameter that PgBouncer refuses by default, so it is sent only where the role does not set it.
        server_settings=None if current == schema else {"search_path": schema},
    )
    return pool


async def migrate(url: str, schema: str, directory: Path) -> list[str]:
    """Bring `schema` up to date with the numbered files of `directory`; returns the names of those it applied.

    All or nothing, in one transaction under an advisory lock, so any number of processes may call it at once.

    Raises:
        ConnectionError: There is no Postgres, or it refuses us; one sentence that names the setting.
        MigrationError: A file that was applied has changed, or the numbers have a gap.
    """
    files = _files(directory)
    connection = await _connect(url, schema)
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", f"koikoi-migrate/{schema}")
            await _create_log(connection, schema)
            done = await _applied(connection, schema, files)
            fresh = [file for number, file in files.items() if number not in done]
            await connection.execute(f"SET LOCAL search_path = {_quoted(schema)}")
            for file in fresh:
                text = file.read_text(encoding="utf-8")
                await connection.execute(text)
                await connection.execute(
                    f"INSERT INTO {_quoted(schema)}.migration (number, name, checksum) VALUES ($1, $2, $3)",  # noqa: S608
                    int(file.name[:4]),
                    file.name,
                    _checksum(text),
                )
            return [file.name for file in fresh]
    finally:
        await connection.close()


async def check_migrations(pool: Pool, schema: str, directory: Path) -> None:
    """Check that every file of `directory` was applied; a newer schema is fine, old code tolerates it.

    Raises:
        MigrationError: One is missing or differs.
    """
    files = _files(directory)
    async with pool.acquire() as connection:
        if await connection.fetchval("SELECT to_regclass($1)", f"{schema}.migration") is None:
            raise MigrationError(f"The schema {schema} is empty; run `python -m services.{schema} migrate` first.")
        done = await _applied(connection, schema, files)
    missing = [file.name for number, file in files.items() if number not in done]
    if missing:
        raise MigrationError(
            f"The schema {schema} lacks {', '.join(missing)}; run `python -m services.{schema} migrate` first."
        )


class _TracedConnection(asyncpg.Connection):
    """Tells the trace of the call in progress what it asked: the first word of each query, nothing else."""


def _traced(name: str) -> Any:
    ask = getattr(asyncpg.Connection, name)

    async def run(self: Any, query: str, *args: Any, **options: Any) -> Any:
        with trace.current().ask("postgresql", query):
            return await ask(self, query, *args, **options)

    return run


for _name in ("execute", "executemany", "fetch", "fetchrow", "fetchval"):
    setattr(_TracedConnection, _name, _traced(_name))


async def _connect(url: str, schema: str) -> "asyncpg.Connection[asyncpg.Record]":
    try:
        return await asyncpg.connect(url, statement_cache_size=0, timeout=10)
    except (OSError, asyncpg.PostgresError) as error:
        why = str(error).partition("\n")[0] or "it does not answer"
    except (ValueError, asyncpg.InterfaceError):  # which quotes the URL, and that may hold a password
        why = "the URL cannot be read"
    raise ConnectionError(f"KOIKOI_{schema.upper()}_DATABASE_URL leads to no Postgres that serves us: {why}.")


def _files(directory: Path) -> dict[int, Path]:
    files: dict[int, Path] = {}
    for expected, path in enumerate(sorted(directory.glob("*.sql")), start=1):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None or int(match[1]) != expected:
            raise MigrationError(f"The migration {path.name} should be named {expected:04d}_what.sql.")
        files[expected] = path
    return files


async def _create_log(connection: "asyncpg.Connection[asyncpg.Record]", schema: str) -> None:
    # Existence is asked first: a role that may not create anything can still run a migration with nothing to do.
    if await connection.fetchval("SELECT to_regnamespace($1)", schema) is None:
        await connection.execute(f"CREATE SCHEMA {_quoted(schema)}")
    if await connection.fetchval("SELECT to_regclass($1)", f"{schema}.migration") is None:
        await connection.execute(
            f"CREATE TABLE {_quoted(schema)}.migration (number integer PRIMARY KEY, name text NOT NULL, "
            "checksum text NOT NULL, apply_time timestamptz NOT NULL DEFAULT now())"
        )


async def _applied(
    connection: "asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]",
    schema: str,
    files: dict[int, Path],
) -> set[int]:
    rows = await connection.fetch(f"SELECT number, checksum FROM {_quoted(schema)}.migration")  # noqa: S608
    for row in rows:
        file = files.get(row["number"])
        if file is not None and _checksum(file.read_text(encoding="utf-8")) != row["checksum"]:
            raise MigrationError(f"The migration {file.name} was changed after it was applied; add a new file instead.")
    return {row["number"] for row in rows}


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _quoted(schema: str) -> str:
    if not _SCHEMA_NAME.fullmatch(schema):
        raise MigrationError(f"{schema!r} is not a schema name.")
    return f'"{schema}"'
