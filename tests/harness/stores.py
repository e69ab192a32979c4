"""A real Postgres and a real Valkey per test process; a fresh database per test."""

import asyncio
import itertools
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from services.kit.postgres import migrate
from tools.embedded import Postgres, Valkey

SERVICES = Path(__file__).parents[2] / "services"


class Stores:
    """Starts the servers when first used."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._postgres: Postgres | None = None
        self._valkey: Valkey | None = None
        self._templates: set[str] = set()
        self._numbers = itertools.count(1)

    @property
    def postgres(self) -> Postgres:
        if self._postgres is None:
            self._postgres = Postgres(self._directory, durable=False)
            self._postgres.start()
        return self._postgres

    @property
    def valkey(self) -> Valkey:
        if self._valkey is None:
            self._valkey = Valkey(self._directory, durable=False)
            self._valkey.start()
        return self._valkey

    def new_database(self, service: str) -> str:
        """Make a database with the service's migrations applied (a clone of a template); returns its name."""
        template = f"template_{service}"
        if service not in self._templates:
            self._clone("koikoi", template)
            directory = SERVICES / service / "store" / "sql"
            if directory.is_dir():
                in_thread(migrate(self.postgres.url(f"{service}_owner", template), service, directory))
            self._templates.add(service)
        name = f"test_{next(self._numbers)}"
        self._clone(template, name)
        return name

    def drop_database(self, name: str) -> None:
        self.postgres.execute(f"DROP DATABASE {name} WITH (FORCE)", database=None)

    def stop(self) -> None:
        if self._postgres is not None:
            self._postgres.kill()
        if self._valkey is not None:
            self._valkey.kill()

    def _clone(self, source: str, name: str) -> None:
        owners = f"REVOKE ALL ON DATABASE {name} FROM PUBLIC; "
        owners += " ".join(
            f"GRANT CONNECT ON DATABASE {name} TO {role}, {role}_owner;"
            for role in ("auth", "lobby", "match", "ranking")
        )
        self.postgres.execute(f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY FILE_COPY;\n{owners}", database=None)


def in_thread(work: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine to its end, whether or not this thread already runs a loop."""
    failure: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
