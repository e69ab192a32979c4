"""Finds what time has brought: deadlines, dead processes, closed matches that are not yet recorded.

Every process sweeps all buckets; the store lets one of them do a bucket's work per interval.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from services.kit import log
from services.kit.clock import Clock
from services.match.matches import Matches
from services.match.metrics import RelayMetrics
from services.match.ports import Due, MatchStore
from services.match.recorder import Recorder
from services.match.service import Relay

__all__ = ["Sweeper"]

_SLICES = 16  # so that no sweep holds the event loop for long


class Sweeper:
    """Sweeps.

    Args:
        process: The name of this process.
        buckets: How many buckets there are.
        interval_s: How often this process visits each bucket.
        store: Running matches.
        relay: Closes matches.
        matches: Those held here.
        recorder: Records closed matches.
        clock: Time.
        adjust: Sets that clock by the store's.
        metrics: Counts.
    """

    def __init__(
        self,
        *,
        process: str,
        buckets: int,
        interval_s: float,
        store: MatchStore,
        relay: Relay,
        matches: Matches,
        recorder: Recorder,
        clock: Clock,
        adjust: Callable[[], Awaitable[None]],
        metrics: RelayMetrics,
    ) -> None:
        self._process, self._buckets, self._interval_s = process, buckets, interval_s
        self._store, self._relay, self._matches, self._recorder = store, relay, matches, recorder
        self._clock, self._adjust, self._metrics = clock, adjust, metrics

    async def run(self) -> None:
        """Sweep until cancelled; what fails is tried again by the next sweep."""
        while True:
            started = self._clock.monotonic()
            for slice_ in range(_SLICES):
                await self._attempt(self._sweep(range(slice_, self._buckets, _SLICES)))
                next_s = started + self._interval_s * (slice_ + 1) / _SLICES
                await asyncio.sleep(max(0.0, next_s - self._clock.monotonic()))
            await self._attempt(self._matches.settle())
            self._recorder.try_again()

    async def sweep_all(self) -> None:
        """Sweep every bucket once.

        Raises:
            StoreUnavailable: The store cannot be reached.
        """
        await self._sweep(range(self._buckets))

    async def _sweep(self, buckets: range) -> None:
        await self._adjust()
        now_ms = int(self._clock.now() * 1000)
        for bucket, due in await self._store.sweep(buckets, self._process, now_ms):
            await self._work(bucket, due)

    async def _work(self, bucket: int, due: Due) -> None:
        """Do what a sweep found; presence of dead processes comes first, so that it is not charged."""
        if due.gap_ms:
            self._metrics.unserved(due.gap_ms)
        unsure: set[str] = set()
        if due.dead:
            unsure = await self._mourn(bucket, due.dead, due.doubtful)
        for match_id in due.matches:
            if match_id not in unsure:
                await self._attempt(self._relay.expire(match_id))
        for match_id in due.closed:
            self._recorder.find(match_id)

    async def _mourn(self, bucket: int, dead: dict[str, int], doubtful: Sequence[str]) -> set[str]:
        """Doubt the presence that dead processes wrote; returns the matches where that failed."""
        unsure = {
            match_id for match_id in doubtful if not await self._attempt(self._relay.lose_processes(match_id, dead))
        }
        if not unsure:
            for process, last_heard_ms in dead.items():
                await self._attempt(self._store.bury(bucket, process, last_heard_ms))
        return unsure

    @staticmethod
    async def _attempt(work: Awaitable[None]) -> bool:
        """Say whether it went well: one match that cannot be read must not keep the others waiting."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - see above
            log.get().warning("match.sweep.failed", error=type(error).__name__)
            return False
        return True
