"""Watching rooms: one room as its members and those at its door see it, and the list."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeVar, cast

from services.lobby.board import Board, Step
from services.lobby.conduct import Conducts
from services.lobby.domain.bulletin import NOTHING, Bulletin, check_entry
from services.lobby.domain.choices import check_preset
from services.lobby.domain.codes import read_code
from services.lobby.domain.errors import MembersOnly, RoomFull, SameDeviceKey
from services.lobby.domain.filters import Filter
from services.lobby.domain.invites import read_secret
from services.lobby.domain.rooms import Knock, Player, Room, RoomState, Standing, read_password
from services.lobby.doorkeeper import Doorkeeper
from services.lobby.feeds import Feeds, Glimpse
from services.lobby.holds import Holds
from services.lobby.ports import Attendance
from services.lobby.seating import Seating
from services.lobby.streams import Stream, Streams

WATCHES_A_MINUTE, WATCHES_OF_ADDRESS = 60, 300


class Closed(Enum):
    """Says why a room is closed to the one who watches it."""

    LEFT = 1
    EXPIRED = 2
    KICKED = 3
    FULL = 4


class Ping(Enum):
    """Says that a stream is alive."""

    PING = 0


@dataclass(frozen=True, slots=True)
class View:
    """A room as one of those who watch it sees it; the contract is there once both seats are taken."""

    room: Room
    contract: str = ""
    knocks: tuple[Knock, ...] = ()
    is_host: bool = False

    @property
    def is_host_away(self) -> bool:
        """Tell whether this is the host's view, and yet says that the host is away."""
        return self.is_host and not self.contract and not self.room.is_host_present


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who watches, from where, with what."""

    player: Player
    device_id: str
    address: str
    client_version: str = ""


@dataclass(frozen=True, slots=True)
class Door:
    """What somebody shows at the door of a room."""

    code: str
    password: str = ""
    secret: str = ""
    leave_other: bool = False


Event = View | Closed | Bulletin | Ping
T = TypeVar("T")


class Watching:
    """The use cases that answer with a stream."""

    def __init__(
        self,
        *,
        doorkeeper: Doorkeeper,
        holds: Holds,
        seating: Seating,
        feeds: Feeds,
        board: Board,
        streams: Streams,
        conducts: Conducts,
        bulletin: Callable[[], Bulletin],
    ) -> None:
        self._doorkeeper = doorkeeper
        self._holds = holds
        self._seating = seating
        self._feeds = feeds
        self._board = board
        self._streams = streams
        self._conducts = conducts
        self._bulletin = bulletin

    async def watch_room(self, watcher: Watcher, door: Door) -> AsyncIterator[Event]:
        """Follow a room to its end: the contract, or its closing. The host's stream is its presence."""
        code, account_id = read_code(door.code), watcher.player.account_id
        attendance = await self._admit(watcher, code, door)
        async with AsyncExitStack() as stack:
            stream = stack.enter_context(self._streams.open(account_id, watcher.device_id))
            if attendance is not None:
                await stack.enter_async_context(self._feeds.attend(attendance))
            feed = await stack.enter_async_context(self._feeds.follow(code, stream))

            async def look(_seen: int) -> View | Closed | None:
                event = await self._event(feed.glimpse, account_id)
                if attendance is not None and isinstance(event, View) and event.is_host_away:
                    await self._feeds.stand_in(attendance)
                return event

            async with aclosing(self._tell(stream, lambda: feed.version, look)) as events:
                async for event in events:
                    yield cast("Event", event)
                    if isinstance(event, Closed) or (isinstance(event, View) and event.contract):
                        return

    async def watch_rooms(self, watcher: Watcher, wanted: Filter) -> AsyncIterator[Step | Bulletin | Ping]:
        """Follow the list of open public rooms, without those that are hidden from the caller."""
        if wanted.preset:
            check_preset(wanted.preset)
        await self._take(watcher)
        account_id = watcher.player.account_id
        with self._streams.open(account_id, watcher.device_id) as stream:
            async with self._board.follow(wanted, stream) as view:

                async def look(seen: int) -> Step | None:
                    return view.step(seen, account_id)

                async with aclosing(self._tell(stream, lambda: view.version, look)) as events:
                    async for event in events:
                        yield event

    async def _tell(
        self, stream: Stream, version: Callable[[], int], look: Callable[[int], Awaitable[T | None]]
    ) -> AsyncGenerator[T | Bulletin | Ping, None]:
        """Tell the newest state whenever it changed, what the service has to say, and else that all is well."""
        told, seen, is_news = NOTHING, 0, True
        while True:
            if version() != seen:
                before, seen = seen, version()
                event = await look(before)
                if event is not None:
                    yield event
            elif not is_news:
                yield Ping.PING
            if self._bulletin() != told:
                told = self._bulletin()
                yield told
            is_news = version() != seen or await self._streams.wait(stream)

    async def _admit(self, watcher: Watcher, code: str, door: Door) -> Attendance | None:
        """Let a watcher near a room; gives what the stream stands for there, if for anything."""
        who, account_id = watcher.player, watcher.player.account_id
        door = replace(door, password=read_password(door.password), secret=read_secret(door.secret))
        await self._take(watcher)
        room, stands, is_invited = await self._doorkeeper.look(account_id, watcher.address, code, door.secret)
        if stands is Standing.LATE:
            raise RoomFull("Somebody else took the seat; choose another room.")
        if room.contract is not None:
            return None
        attendance = self._feeds.new_attendance(code, account_id)
        if stands is Standing.HOST:
            return attendance
        await self._let_knock(room, watcher, door, is_invited=is_invited)
        return replace(attendance, knocker=who)

    async def _take(self, watcher: Watcher) -> None:
        await self._doorkeeper.take(
            "watch", WATCHES_A_MINUTE, watcher.player.account_id, watcher.address, WATCHES_OF_ADDRESS
        )

    async def _let_knock(self, room: Room, watcher: Watcher, door: Door, *, is_invited: bool) -> None:
        who = watcher.player
        if not room.needs_approval:
            raise MembersOnly("Only host and guest watch this room; join it.")
        check_entry(self._bulletin(), watcher.client_version)
        if room.host.device_key == who.device_key:
            raise SameDeviceKey("Host and guest need different devices.")
        if room.rules.is_ranked:
            await self._conducts.check(who.account_id)
        if not is_invited:
            await self._doorkeeper.check_password(room, who.account_id, watcher.address, door.password)
        await self._holds.free(who.account_id, entering=room.code, leave=door.leave_other, request_id=room.room_id)

    async def _event(self, glimpse: Glimpse, account_id: str) -> View | Closed:
        """Say what a glimpse of a room means to somebody who was let near it."""
        room = glimpse.room
        if room is None:
            return Closed.EXPIRED
        is_host = room.host.account_id == account_id
        if room.guest is not None and (is_host or room.guest.account_id == account_id):
            return View(room, await self._seating.hand_over(room), is_host=is_host)
        closed = _why_closed(glimpse, room, account_id)
        return closed or View(room, knocks=glimpse.knocks if is_host else (), is_host=is_host)


def _why_closed(glimpse: Glimpse, room: Room, account_id: str) -> Closed | None:
    """Say why a room is closed to somebody who has no seat of a contract in it."""
    if account_id in room.barred:
        return Closed.KICKED
    if room.contract is not None:
        return Closed.FULL
    if room.state is RoomState.CLOSED:
        return Closed.LEFT
    return None if glimpse.is_open else Closed.EXPIRED
