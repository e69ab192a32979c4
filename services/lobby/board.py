"""The list of open rooms, for all who watch it: read once a second for the whole process, then compared.

Everybody with the same filter shares one view. A stream that is slow finds that it missed a step and takes the whole
list instead, so nothing is queued for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from services.kit import log
from services.kit.clock import Clock
from services.kit.redis import is_outage
from services.lobby.domain.filters import Filter
from services.lobby.domain.rooms import Room
from services.lobby.ports import Index, Rooms
from services.lobby.streams import Stream

PERIOD_S = 1.0
MOST_ROOMS = 200
_READ_ALL_EVERY = 5
_REACH = 1000
_BATCH = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A room of the list and the message about it, which is written once for all who see it."""

    room: Room
    message: Any

    def is_seen_by(self, account_id: str) -> bool:
        """Tell whether the host hides from this account."""
        return account_id not in self.room.barred


@dataclass(frozen=True, slots=True)
class Step:
    """The whole list, or what changed since the step before."""

    is_snapshot: bool
    added: tuple[Any, ...]
    changed: tuple[Any, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class BoardView:
    """The newest rooms that pass one filter, and those of one step before."""

    wanted: Filter
    version: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)
    before: dict[str, Entry] = field(default_factory=dict)
    streams: set[Stream] = field(default_factory=set)

    def show(self, entries: Iterable[Entry]) -> None:
        """Keep the rooms of now, newest first; wakes the streams when anything differs."""
        after: dict[str, Entry] = {}
        for entry in entries:
            if self.wanted.passes(entry.room):
                after[entry.room.code] = entry
                if len(after) == MOST_ROOMS:
                    break
        if after != self.entries or not self.version:
            self.before, self.entries = self.entries, after
            self.version += 1
            for stream in self.streams:
                stream.wake()

    def step(self, seen: int, account_id: str) -> Step | None:
        """Give what somebody has to hear who saw version `seen` (0 for none); None when nothing of it is for them."""
        if seen == 0 or self.version != seen + 1:
            return Step(True, tuple(one.message for one in self.entries.values() if one.is_seen_by(account_id)))
        before, after = self._seen(self.before, account_id), self._seen(self.entries, account_id)
        step = Step(
            False,
            added=tuple(one.message for code, one in after.items() if code not in before),
            changed=tuple(one.message for code, one in after.items() if _looks_different(before.get(code, one), one)),
            removed=tuple(code for code in before if code not in after),
        )
        return step if step.added or step.changed or step.removed else None

    def _seen(self, entries: dict[str, Entry], account_id: str) -> dict[str, Entry]:
        return {code: entry for code, entry in entries.items() if entry.is_seen_by(account_id)}


def _looks_different(before: Entry, after: Entry) -> bool:
    return before is not after and bool(before.message != after.message)


class Board:
    """The list as this process shows it.

    Args:
        rooms: The rooms.
        index: Where to find them.
        clock: Time.
        write: Makes the message about a room.
    """

    def __init__(self, rooms: Rooms, index: Index, clock: Clock, write: Callable[[Room], Any]) -> None:
        self._rooms, self._index, self._clock, self._write = rooms, index, clock, write
        self._entries: dict[str, Entry] = {}
        self._views: dict[Filter, BoardView] = {}
        self._heard: set[str] = set()
        self._round = 0
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def follow(self, wanted: Filter, stream: Stream) -> AsyncIterator[BoardView]:
        """Follow the list through a filter; begins with how it is now."""
        is_first = not self._views
        view = self._views.setdefault(wanted, BoardView(wanted))
        view.streams.add(stream)
        try:
            if is_first:
                await self.refresh(is_whole=True)
            elif not view.version:
                async with self._lock:
                    view.show(self._entries.values())
            yield view
        finally:
            view.streams.discard(stream)
            if not view.streams and self._views.get(wanted) is view:
                del self._views[wanted]

    def hear(self, code: str) -> None:
        """Note that a room changed."""
        if self._views:
            self._heard.add(code)

    async def run(self, period_s: float = PERIOD_S) -> None:
        """Look once a period, while somebody watches, until cancelled; an outage shows the list as it was."""
        while True:
            await asyncio.sleep(period_s)
            if not self._views:
                self._heard.clear()
                continue
            try:
                self._round += 1
                await self.refresh(is_whole=self._round % _READ_ALL_EVERY == 0)
            except Exception as error:
                if not is_outage(error):
                    raise
                log.get().warning("lobby.board.unread", error=type(error).__name__)

    async def refresh(self, *, is_whole: bool) -> None:
        """Read what is new, what was heard of, or everything, and show every view its rooms."""
        async with self._lock:
            codes = await self._index.newest(0, _REACH)
            heard, self._heard = self._heard, set()
            wanted = [code for code in codes if is_whole or code in heard or code not in self._entries]
            fresh: dict[str, Room] = {}
            for start in range(0, len(wanted), _BATCH):
                fresh |= {room.code: room for room in await self._rooms.read(wanted[start : start + _BATCH])}
            now = int(self._clock.now() * 1000)
            entries: dict[str, Entry] = {}
            asked = set(wanted)
            for code in codes:
                entry = self._entries.get(code)
                if code in asked:
                    entry = self._entry(fresh.get(code), entry, now)
                if entry is not None:
                    entries[code] = entry
            self._entries = entries
            for view in self._views.values():
                view.show(entries.values())

    def _entry(self, room: Room | None, known: Entry | None, now: int) -> Entry | None:
        """Give a room's entry; the same one as before when nothing of it changed that anybody sees."""
        if room is None or not room.is_listed(now):
            return None
        room = replace(room, alive_until=0)
        if known is not None and known.room == room:
            return known
        return Entry(room, self._write(room))
