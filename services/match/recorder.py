"""Records how matches ended, beside everything else: neither play nor deadlines wait for Postgres.

The process that closed a match records it from its own memory, so that the store may fall back behind the end and the
record still says what both devices were told. If that process dies first, another one finds the match closed.
"""

import asyncio

from services.kit import log
from services.match.ports import MatchStore, Record, Records, Stored

__all__ = ["Recorder"]

_PAUSE_S = 1.0


class Recorder:
    """Records closed matches.

    Args:
        store: Running matches.
        records: Ended matches.
    """

    def __init__(self, store: MatchStore, records: Records) -> None:
        self._store, self._records = store, records
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._queued: set[str] = set()
        self._closed_here: dict[str, Record] = {}

    def note(self, stored: Stored) -> None:
        """Note that this process closed a match."""
        if (record := _record_of(stored)) is not None:
            self._closed_here[record.contract.match_id] = record
            self.find(record.contract.match_id)

    def find(self, match_id: str) -> None:
        """Note that the store holds a closed match that is not yet recorded."""
        if match_id not in self._queued:
            self._queued.add(match_id)
            self._queue.put_nowait(match_id)

    def try_again(self) -> None:
        """Take up again what was closed here and could not be recorded."""
        for match_id in self._closed_here:
            self.find(match_id)

    async def run(self) -> None:
        """Record until cancelled; what fails comes again."""
        while True:
            match_id = await self._queue.get()
            try:
                await self._record(match_id)
            except Exception as error:  # noqa: BLE001 - one match that cannot be recorded must not keep the others waiting
                log.get().warning("match.record.failed", error=type(error).__name__)
                await asyncio.sleep(_PAUSE_S)
            self._queued.discard(match_id)

    async def _record(self, match_id: str) -> None:
        record = self._closed_here.get(match_id) or _record_of(await self._store.load(match_id))
        if record is None:
            await self._store.forget(match_id, 0)  # lost after it was recorded, or never whole: nothing to say
            return
        await self._records.add(record)
        self._closed_here.pop(match_id, None)
        await self._store.forget(match_id, record.contract.expires_s)
        log.get().info("match.ended", match_id=match_id, outcome=record.ending.outcome.value)


def _record_of(stored: Stored | None) -> Record | None:
    if stored is None or stored.match.ending is None:
        return None
    match, ending = stored.match, stored.match.ending
    return Record(stored.contract, ending, match.counter, match.phase, match.created_ms)
