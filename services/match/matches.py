"""The matches of which this process holds connections, and the four steps of every change.

Take the newest state, decide purely, store it if nothing changed meanwhile, bring all connections here up to date.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass, field

from services.kit import log
from services.match.delivery import Session
from services.match.domain import relay
from services.match.domain.contract import Contract
from services.match.domain.deadlines import Limits
from services.match.domain.errors import RelayError, StoreUnavailable
from services.match.domain.match import Match, Presence
from services.match.metrics import RelayMetrics
from services.match.ports import Conflict, MatchStore, News, Stored

__all__ = ["Decide", "Held", "Matches"]

Decide = Callable[[Match], Match]
_MOST_TRIES = 32
_WARN_BEFORE_MS = 10_000


@dataclass(eq=False)
class Held:
    """One match held here.

    `lock` orders what this process does to it; `contract` is known from the first join on; `stored` is the newest
    state it knows, None while that must be read again.
    """

    match_id: str
    contract: Contract | None = None
    stored: Stored | None = None
    sessions: set[Session] = field(default_factory=set)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    is_watched: bool = False
    warning: asyncio.TimerHandle | None = None


class Matches:
    """Holds matches and changes them.

    Args:
        store: Running matches.
        news: Changes by other processes.
        limits: The relay's times.
        metrics: Counts.
        now_ms: The relay's clock.
        on_closed: Told every match that this process closed.
    """

    def __init__(
        self,
        store: MatchStore,
        news: News,
        limits: Limits,
        metrics: RelayMetrics,
        now_ms: Callable[[], int],
        on_closed: Callable[[Stored], None],
    ) -> None:
        self._store, self._news, self._limits, self._metrics, self._now_ms = store, news, limits, metrics, now_ms
        self._on_closed = on_closed
        self._held: dict[str, Held] = {}
        self._unsaid: list[tuple[str, Decide]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def all(self) -> list[Held]:
        """Return every match held here."""
        return list(self._held.values())

    async def hold(self, match_id: str) -> Held:
        """Begin to hold a match: from now on, changes by other processes are heard. Pair with `release`."""
        held = self._held.setdefault(match_id, Held(match_id))
        held.users += 1
        try:
            async with held.lock:
                if not held.is_watched:
                    await self._news.watch(match_id)
                    held.is_watched = True
        except BaseException:
            await self.release(held)
            raise
        return held

    async def release(self, held: Held) -> None:
        """Stop holding a match when nobody here needs it any more."""
        held.users -= 1
        if held.users:
            return
        self._held.pop(held.match_id, None)
        if held.warning is not None:
            held.warning.cancel()
        if held.is_watched:
            held.is_watched = False
            await self._news.unwatch(held.match_id)

    async def change(
        self, held: Held, decide: Decide, *, acknowledging: tuple[Session, int] | None = None
    ) -> Match | None:
        """Change a match; the caller holds its lock. Returns the state after, None when the store has none.

        A decision that changes nothing, or refuses, counts only if it was made on a state read just now.

        Args:
            held: The match.
            decide: Pure; may be called several times.
            acknowledging: A session, and the number of its envelope to acknowledge when the decision was taken.

        Raises:
            RelayError: What `decide` raises, or StoreUnavailable.
        """
        after = await self._change(held, decide, acknowledging)
        return after if after is None else await self._speak_up(held, after)

    async def _change(
        self, held: Held, decide: Decide, acknowledging: tuple[Session, int] | None = None
    ) -> Match | None:
        is_fresh = False
        for _ in range(_MOST_TRIES):
            if held.stored is None:
                held.stored, is_fresh = await self._store.load(held.match_id), True
            if (before := held.stored) is None:
                self.show(held)
                return None
            try:
                after = decide(before.match)
            except RelayError:
                if is_fresh:
                    self.show(held)
                    raise
                held.stored = None
                continue
            if after is before.match and not is_fresh:
                held.stored = None
            elif after is before.match or await self._commit(held, before, after):
                if acknowledging is not None:
                    acknowledging[0].acknowledge(acknowledging[1])
                self.show(held)
                return after
            else:
                is_fresh = held.stored is not None
        raise StoreUnavailable("The match changes too fast; connect again.", retry_after_s=1.0)

    async def _commit(self, held: Held, before: Stored, after: Match) -> bool:
        """Store a decision; when it was made on an old state, take the newest one instead and say False."""
        answer = await self._store.commit(before, before.contract, after)
        if isinstance(answer, Conflict):
            held.stored = answer.stored
            return False
        held.stored = answer
        if after.ending is not None:
            self._metrics.ended(before.match, after.ending)
            self._on_closed(answer)
        return True

    async def change_anywhere(self, match_id: str, decide: Decide) -> None:
        """Change a match whether or not it is held here; one that is gone is left alone."""
        held = self._held.get(match_id) or Held(match_id)
        async with held.lock:
            await self.change(held, decide)

    def change_later(self, match_id: str, decide: Decide) -> None:
        """Make a change that the store could not take now at the next `settle`."""
        self._unsaid.append((match_id, decide))

    async def settle(self) -> None:
        """Make the changes that were put off, read what could not be read, and tell the gauges."""
        unsaid, self._unsaid = self._unsaid, []
        for match_id, decide in unsaid:
            try:
                await self.change_anywhere(match_id, decide)
            except RelayError:
                self._unsaid.append((match_id, decide))
        for entry in self.all():
            if entry.stored is None and not entry.lock.locked():
                await self._refresh(entry, None)
        held = [entry for entry in self._held.values() if entry.sessions]
        two = sum(len(entry.sessions) > 1 for entry in held)
        both = sum(
            entry.stored is not None and all(seat.is_connected for seat in entry.stored.match.seats) for entry in held
        )
        self._metrics.served(len(held) - two, two, both)

    def show(self, held: Held) -> None:
        """Bring every connection here up to date, and set the warning before the deadline."""
        for session in list(held.sessions):
            session.show(held.stored)
        if held.warning is not None:
            held.warning.cancel()
            held.warning = None
        if held.stored is None or not held.sessions:
            return
        left_ms = held.stored.match.shown_left_ms(self._now_ms(), self._limits)
        if left_ms is not None and left_ms > _WARN_BEFORE_MS:
            delay_s = (left_ms - _WARN_BEFORE_MS) / 1000
            held.warning = asyncio.get_running_loop().call_later(delay_s, self._warn, held)

    @staticmethod
    def _warn(held: Held) -> None:
        for session in list(held.sessions):
            session.remind()

    def hear(self, match_id: str, revision: bytes) -> None:
        """Note that some process changed a match."""
        held = self._held.get(match_id)
        if held is not None and (held.stored is None or held.stored.revision != revision):
            self._spawn(self._refresh(held, revision))

    async def refresh(self, match_ids: Collection[str]) -> None:
        """Read matches again of which a change may not have been heard."""
        for match_id in match_ids:
            if (held := self._held.get(match_id)) is not None:
                await self._refresh(held, None)

    async def _refresh(self, held: Held, revision: bytes | None) -> None:
        async with held.lock:
            if not held.sessions or (held.stored is not None and held.stored.revision == revision):
                return
            try:
                held.stored = await self._store.load(held.match_id)
                self.show(held)
                if held.stored is not None:
                    await self._speak_up(held, held.stored.match)
            except Exception as error:  # noqa: BLE001 - one match that cannot be read must not keep the others waiting
                log.get().warning("match.refresh.failed", error=type(error).__name__)
                held.stored = None

    async def _speak_up(self, held: Held, match: Match) -> Match:
        """Say for the connections here what others cannot know: that they live, and how far they are."""
        for session in list(held.sessions):
            while not session.is_over and (decide := self._plea(session, match)) is not None:
                after = await self._change(held, decide)
                if after is None or after is match:
                    break
                match = after
        return match

    def _plea(self, session: Session, match: Match) -> Decide | None:
        seat, speaker, now_ms = session.seat, session.connection, self._now_ms()
        attendance = match.seats[seat]
        if match.ending is not None or attendance.connection != speaker:
            return None
        if attendance.presence is Presence.UNKNOWN:  # another process took this one for dead
            return lambda match: relay.summon(match, seat, speaker, now_ms)
        if match.is_recovering and match.recovery is not None and match.recovery.positions[seat] is None:
            position, epoch = session.position, secrets.token_bytes(8)
            return lambda match: relay.vouch(match, seat, speaker, position, now_ms, epoch, self._limits)
        return None

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
