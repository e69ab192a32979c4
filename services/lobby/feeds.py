"""What this process knows of the rooms that are watched here, and who is here for them.

One reader for all: it reads a room when somebody says that it changed, and all of them once a period, after it renewed
the presence of every host and knock that has a stream here. Streams hold no queue: they look at the newest state.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from services.kit import log
from services.kit.clock import Clock
from services.kit.redis import is_outage
from services.lobby.domain.errors import Draining, RoomNotFound, StreamOver, TooManyKnocks
from services.lobby.domain.rooms import Hold, Knock, Room
from services.lobby.ports import Attendance, Attended, Index, Presence, Rooms
from services.lobby.streams import Stream

_PAUSE_S = 0.5
_DOOR_RETRY_S = 10.0
_BATCH = 200


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A room as it was read last, without the times that change with every renewal."""

    room: Room | None = None
    is_open: bool = False
    knocks: tuple[Knock, ...] = ()


@dataclass(eq=False, slots=True)
class Feed:
    """The newest glimpse of one room, and the streams that follow it."""

    glimpse: Glimpse = field(default_factory=Glimpse)
    version: int = 0
    streams: set[Stream] = field(default_factory=set)

    def show(self, glimpse: Glimpse) -> None:
        """Keep a new glimpse; wakes the streams when it differs."""
        if glimpse != self.glimpse or not self.version:
            self.glimpse = glimpse
            self.version += 1
            for stream in self.streams:
                stream.wake()


class Feeds:
    """All rooms that are watched in this process."""

    def __init__(self, rooms: Rooms, index: Index, presence: Presence, clock: Clock) -> None:
        self._rooms, self._index, self._presence, self._clock = rooms, index, presence, clock
        self._feeds: dict[str, Feed] = {}
        self._attendances: set[Attendance] = set()
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._goodbyes: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def follow(self, code: str, stream: Stream) -> AsyncIterator[Feed]:
        """Follow a room; begins with how it is now."""
        feed = self._feeds.setdefault(code, Feed())
        feed.streams.add(stream)
        try:
            await self._read([code])
            yield feed
        finally:
            feed.streams.discard(stream)
            if not feed.streams and self._feeds.get(code) is feed:
                del self._feeds[code]

    @asynccontextmanager
    async def attend(self, attendance: Attendance) -> AsyncIterator[None]:
        """Be there for a room: as its host, or as somebody who knocks.

        Raises:
            RoomNotFound: The room is no such room any more.
            TooManyKnocks: Too many are at its door.
        """
        answer = await self._presence.attend(attendance, self._now(), "open")
        if answer is Attended.CROWDED:
            raise TooManyKnocks("Too many wait at this door; choose another room.", retry_after_s=_DOOR_RETRY_S)
        if answer is not Attended.HERE and attendance.knocker is not None:
            raise RoomNotFound("No open room has this code; it may have expired or be full.")
        self._attendances.add(attendance)
        is_over = True
        try:
            yield
        except (Draining, StreamOver):  # its client comes back in a moment
            is_over = False
            raise
        finally:
            self._attendances.discard(attendance)
            if is_over:
                self._part(attendance)

    async def stand_in(self, attendance: Attendance) -> None:
        """Be there again, when an older stream's end made it look as if nobody were."""
        await self._presence.attend(attendance, self._now(), "renew")

    def new_attendance(self, code: str, account_id: str) -> Attendance:
        """Make an attendance of a host."""
        return Attendance(code, account_id, self._presence.new_generation(), self._now())

    def hear(self, code: str) -> None:
        """Note that a room changed."""
        if code in self._feeds:
            self._dirty.add(code)
            self._wake.set()

    def hear_all(self) -> None:
        """Note that any room may have changed."""
        self._dirty |= self._feeds.keys()
        self._wake.set()

    async def run(self, period_s: float) -> None:
        """Renew and read until cancelled; an outage is waited out, and nothing is concluded from it."""
        due = 0.0
        while True:
            try:
                if time.monotonic() >= due:
                    await self.renew()
                    await self._read(list(self._feeds))
                    due = time.monotonic() + period_s
                elif self._dirty:
                    codes, self._dirty = list(self._dirty), set()
                    await self._read(codes)
            except Exception as error:
                if not is_outage(error):
                    raise
                log.get().warning("lobby.feeds.unread", error=type(error).__name__)
                due = 0.0
                await asyncio.sleep(_PAUSE_S)
            self._wake.clear()
            if not self._dirty:
                try:
                    async with asyncio.timeout(max(0.0, due - time.monotonic())):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    async def renew(self) -> None:
        """Keep everything alive that somebody is here for."""
        attendances = list(self._attendances)
        for start in range(0, len(attendances), _BATCH):
            batch = attendances[start : start + _BATCH]
            for one, answer in zip(batch, await self._presence.renew(batch, self._now()), strict=True):
                if answer is Attended.DEAD:
                    await self._revive(one)

    async def aclose(self) -> None:
        """Wait for the last goodbyes."""
        if self._goodbyes:
            await asyncio.wait(self._goodbyes, timeout=2.0)

    async def _revive(self, attendance: Attendance) -> None:
        """Bring a room back whose host was here while nobody could write it down, unless the host entered another."""
        hold = await self._index.hold(attendance.account_id)
        if hold is not None and hold.code != attendance.code:
            return
        if await self._index.claim_hold(attendance.account_id, Hold(attendance.code), hold):
            await self._presence.attend(attendance, self._now(), "revive")
            now = self._now()
            for room in await self._rooms.read([attendance.code]):
                if room.is_listed(now):
                    await self._index.add_room(room)

    async def _read(self, codes: list[str]) -> None:
        for start in range(0, len(codes), _BATCH):
            batch = codes[start : start + _BATCH]
            rooms = {room.code: room for room in await self._rooms.read(batch)}
            now = self._now()
            doors = [code for code, room in rooms.items() if room.needs_approval and room.is_open(now)]
            knocks = dict(zip(doors, await self._presence.knocks(doors, now), strict=True))
            for code in batch:
                if feed := self._feeds.get(code):
                    room = rooms.get(code)
                    seen = tuple(replace(knock, alive_until=0) for knock in knocks.get(code, ()))
                    feed.show(
                        Glimpse(replace(room, alive_until=0), room.is_open(now), seen)
                        if room is not None
                        else Glimpse()
                    )

    def _part(self, attendance: Attendance) -> None:
        """Say goodbye in a task of its own: a stream that is cancelled has no time for it."""
        goodbye = asyncio.get_running_loop().create_task(self._say_goodbye(attendance))
        self._goodbyes.add(goodbye)
        goodbye.add_done_callback(self._goodbyes.discard)

    async def _say_goodbye(self, attendance: Attendance) -> None:
        try:
            await self._presence.end(attendance)
        except Exception as error:
            if not is_outage(error):
                raise
            log.get().warning("lobby.feeds.unsaid", error=type(error).__name__)  # its life runs out by itself

    def _now(self) -> int:
        return int(self._clock.now() * 1000)
