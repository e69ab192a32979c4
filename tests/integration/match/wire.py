"""A wire to Redis with faults: it withholds answers, or goes dead without a word."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class Wire:
    """Carries connections to a Redis behind a unix socket."""

    def __init__(self, redis_url: str) -> None:
        self._target = redis_url.removeprefix("unix://").partition("?")[0]
        self._dead_below = self._links = 0
        self._answers = asyncio.Event()
        self._answers.set()
        self._withhold_at: bytes | None = None

    @asynccontextmanager
    async def serving(self, path: Path) -> AsyncIterator[str]:
        """Serve at a path; gives its URL."""
        server = await asyncio.start_unix_server(self._link, path)
        try:
            yield f"unix://{path}"
        finally:
            server.close()

    def go_dead(self) -> None:
        """Carry nothing more over the connections there are; new ones work."""
        self._dead_below = self._links

    def withhold_answers_at(self, command: bytes) -> None:
        """Carry no answers once a command holds these bytes, until told to go on."""
        self._withhold_at = command

    async def wait_until_withheld(self) -> None:
        async with asyncio.timeout(5):
            while self._answers.is_set():
                await asyncio.sleep(0.01)

    def go_on(self) -> None:
        self._withhold_at = None
        self._answers.set()

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_redis, to_redis = await asyncio.open_unix_connection(self._target)
        number, self._links = self._links, self._links + 1

        async def carry_commands() -> None:
            while data := await reader.read(65_536):
                if self._withhold_at is not None and self._withhold_at in data:
                    self._answers.clear()
                if number >= self._dead_below:
                    to_redis.write(data)

        async def carry_answers() -> None:
            while data := await from_redis.read(65_536):
                await self._answers.wait()
                if number >= self._dead_below:
                    writer.write(data)

        tasks = [asyncio.create_task(carry_commands()), asyncio.create_task(carry_answers())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            to_redis.close()
            writer.close()
