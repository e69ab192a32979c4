"""Room passwords: argon2id in two threads with a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from services.lobby.domain.errors import Busy

THREADS = 2
MAX_WAITING = 64
"""At some 30 ms each the last in the queue waits about a second."""
T = TypeVar("T")


class ArgonPasswords:
    """Hashes with the OWASP parameters for argon2id: 19 MiB, 2 passes, 1 lane. Close it to stop its threads."""

    def __init__(self, max_waiting: int = MAX_WAITING) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="argon2")
        self._max = max_waiting + THREADS
        self._pending = 0

    async def hash(self, password: str) -> str:
        """Hash a new password with a fresh salt."""
        return await self._run(lambda: self._hasher.hash(password))

    async def verify(self, password: str, password_hash: str) -> bool:
        """Tell whether this is the password; right and wrong ones take the same time."""

        def check() -> bool:
            try:
                return self._hasher.verify(password_hash, password)
            except VerifyMismatchError:
                return False

        return await self._run(check)

    def close(self) -> None:
        """Stop the threads after what they are doing now."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._pending >= self._max:
            raise Busy("Too many passwords are waiting to be checked; try again.", retry_after_s=1.0)
        self._pending += 1
        future = self._pool.submit(work)
        # Counted until the thread is done, not until the caller gives up: a cancelled call still costs its work.
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(self._done))
        return await asyncio.wrap_future(future)

    def _done(self) -> None:
        self._pending -= 1
