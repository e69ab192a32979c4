"""Open streams: how many there may be, what wakes them, and what ends them."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from services.lobby.domain.errors import AccessTokenInvalid, Draining, StreamOver, TooManyStreams

RETRY_AFTER_S = 5.0
_SPREAD_S = 5.0


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """How many streams there may be and how long."""

    most: int = 2000
    most_per_account: int = 8
    life_s: float = 900.0
    """As long as an access token lives, so that nobody listens longer than they could call."""
    ping_s: float = 15.0


@dataclass(eq=False, slots=True)
class Stream:
    """One open stream; whoever has news for it wakes it, and it looks for itself what there is."""

    account_id: str
    device_id: str
    ends_at: float
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Let it look."""
        self.woken.set()


class Streams:
    """All streams of this process.

    Args:
        limits: See there.
        is_revoked: Says whether a device was signed out.
        on_count: Told the number of open streams.
    """

    def __init__(
        self, limits: StreamLimits, is_revoked: Callable[[str], bool], on_count: Callable[[int], None]
    ) -> None:
        self._limits, self._is_revoked, self._on_count = limits, is_revoked, on_count
        self._open: set[Stream] = set()
        self._by_account: Counter[str] = Counter()
        self._chance = random.SystemRandom()
        self.is_draining = False

    @contextmanager
    def open(self, account_id: str, device_id: str) -> Iterator[Stream]:
        """Hold a place for a stream.

        Raises:
            Draining: The process is about to end.
            TooManyStreams: The account, or the process, has as many as it may.
        """
        self._refuse(account_id)
        life_s = self._limits.life_s * self._chance.uniform(0.9, 1.0)
        stream = Stream(account_id, device_id, asyncio.get_running_loop().time() + life_s)
        self._open.add(stream)
        self._by_account[account_id] += 1
        self._on_count(len(self._open))
        try:
            yield stream
        finally:
            self._open.discard(stream)
            self._by_account[account_id] -= 1
            if not self._by_account[account_id]:
                del self._by_account[account_id]
            self._on_count(len(self._open))

    async def wait(self, stream: Stream) -> bool:
        """Wait until there may be news; False when there was none for so long that a ping is due.

        Raises:
            Draining: The process is about to end; come back.
            StreamOver: The stream was open long enough; come back.
            AccessTokenInvalid: The device was signed out.
        """
        self._check(stream)
        left_s = stream.ends_at - asyncio.get_running_loop().time()
        is_news = True
        try:
            async with asyncio.timeout(min(self._limits.ping_s, max(left_s, 0.0))):
                await stream.woken.wait()
        except TimeoutError:
            is_news = False
        stream.woken.clear()
        self._check(stream)
        return is_news

    def wake_all(self) -> None:
        """Let every stream look."""
        for stream in self._open:
            stream.wake()

    async def drain(self) -> None:
        """End every stream, and let none begin."""
        self.is_draining = True
        self.wake_all()

    def _check(self, stream: Stream) -> None:
        if self._is_revoked(stream.device_id):
            raise AccessTokenInvalid("This device has been signed out; sign in again.")
        if self.is_draining:
            raise self._going_away()
        if asyncio.get_running_loop().time() >= stream.ends_at:
            raise StreamOver(
                "The stream was open as long as one may be; open it again.", retry_after_s=self._chance.uniform(0.1, 2)
            )

    def _refuse(self, account_id: str) -> None:
        if self.is_draining:
            raise self._going_away()
        if self._by_account[account_id] >= self._limits.most_per_account:
            most = self._limits.most_per_account
            raise TooManyStreams(
                f"An account may hold {most} open streams.", metadata={"limit": str(most)}, retry_after_s=RETRY_AFTER_S
            )
        if len(self._open) >= self._limits.most:
            raise TooManyStreams("There is no room for another stream here now.", retry_after_s=RETRY_AFTER_S)

    def _going_away(self) -> Draining:
        wait_s = 0.5 + self._chance.random() * _SPREAD_S
        return Draining("This process is going away; open the stream again.", retry_after_s=wait_s)
