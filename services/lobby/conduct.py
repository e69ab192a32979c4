"""Conduct: outcomes are counted as the relay tells them, and who left matches waits before the next ranked one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import ceil

from redis.exceptions import RedisError

from services.kit import log
from services.kit.clock import Clock
from services.kit.postgres import OUTAGES
from services.lobby.domain.conduct import Conduct, judge, marks_of
from services.lobby.domain.errors import CoolingDown
from services.lobby.ports import Marks, OutcomeEntry, Outcomes

CACHE_S = 5.0
_MOST_CACHED = 10_000
_PATIENCE_S = 2.0
_PAUSE_S = 1.0
_CLAIM_EVERY_S = 5.0


class Conducts:
    """What is known of each account's conduct.

    Args:
        marks: The truth.
        cool_down_s: The shortest cool-down; 0 for none.
        clock: Time.
    """

    def __init__(self, marks: Marks, cool_down_s: float, clock: Clock) -> None:
        self._marks, self._cool_down_ms, self._clock = marks, int(cool_down_s * 1000), clock
        self._known: dict[str, tuple[float, Conduct]] = {}

    async def read(self, account_id: str) -> Conduct:
        """Give an account's conduct; what other processes counted shows after 5 s at the latest."""
        now = self._clock.monotonic()
        known = self._known.get(account_id)
        if known is None or known[0] <= now:
            if len(self._known) >= _MOST_CACHED:
                self._known.clear()
            known = now + CACHE_S, judge(await self._marks.read(account_id), self._cool_down_ms)
            self._known[account_id] = known
        return known[1]

    async def glimpse(self, account_id: str) -> Conduct:
        """Give an account's conduct, or a blank one while Postgres is away: an outage stops nobody from playing."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self.read(account_id)
        except OUTAGES as error:
            log.get().warning("lobby.conduct.unread", error=type(error).__name__)
            return Conduct()

    async def check(self, account_id: str) -> Conduct:
        """Let an account go on to a ranked room; gives its conduct.

        Raises:
            CoolingDown: It left matches and has to wait.
        """
        conduct = await self.glimpse(account_id)
        wait_s = conduct.cool_down_until / 1000 - self._clock.now()
        if wait_s > 0:
            raise cooling_down(conduct.cool_down_until, wait_s)
        return conduct

    def forget(self, account_ids: Sequence[str]) -> None:
        """Read these accounts anew the next time."""
        for account_id in account_ids:
            self._known.pop(account_id, None)


class Counting:
    """Counts outcomes, each match once."""

    def __init__(self, outcomes: Outcomes, marks: Marks, conducts: Conducts, count: Callable[[str], None]) -> None:
        self._outcomes, self._marks, self._conducts, self._count = outcomes, marks, conducts, count
        self._pause_s = _PAUSE_S

    async def run(self) -> None:
        """Count until cancelled; what fails stays unacknowledged and comes again."""
        loop = asyncio.get_running_loop()
        claim_at = loop.time()
        while True:
            try:
                if loop.time() >= claim_at:
                    claim_at = loop.time() + _CLAIM_EVERY_S
                    await self.take(await self._outcomes.claim())
                await self.take(await self._outcomes.read())
            except (RedisError, *OUTAGES) as error:
                log.get().warning("lobby.outcomes.unread", error=type(error).__name__)
                await asyncio.sleep(self._pause_s)
            except Exception as error:  # noqa: BLE001 - one batch that cannot be counted must not end all counting
                log.get().error("lobby.outcomes.failed", error=type(error).__name__)
                await asyncio.sleep(self._pause_s)

    async def take(self, entries: Sequence[OutcomeEntry]) -> None:
        """Count entries and acknowledge them."""
        found = [outcome for _, outcome in entries if outcome is not None]
        marks = [mark for outcome in found for mark in marks_of(outcome)]
        fresh = await self._marks.add(marks) if marks else set()
        self._conducts.forget([mark.account_id for mark in marks])
        await self._outcomes.acknowledge(entries)
        self._report(entries, {mark.match_id for mark in marks}, fresh)

    def _report(self, entries: Sequence[OutcomeEntry], counting: set[str], fresh: set[str]) -> None:
        malformed = 0
        for _, outcome in entries:
            if outcome is None:
                malformed += 1
                self._count("malformed")
            elif outcome.match_id not in counting:
                self._count("neutral")
            elif outcome.match_id in fresh:
                fresh.discard(outcome.match_id)
                self._count("counted")
            else:
                self._count("repeated")
        if malformed:
            log.get().warning("lobby.outcomes.malformed", entries=malformed)


def cooling_down(until: int, wait_s: float) -> CoolingDown:
    """Say until when an account has to wait."""
    time = datetime.fromtimestamp(ceil(until / 1000), UTC)
    return CoolingDown(
        f"You left matches before their end; ranked rooms are open to you again from {time:%Y-%m-%d %H:%M:%S} UTC. "
        "Unranked ones are open.",
        metadata={"until": f"{time:%Y-%m-%dT%H:%M:%SZ}"},
        retry_after_s=ceil(wait_s),
    )
