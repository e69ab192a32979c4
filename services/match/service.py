"""The relay: what a connection may do, over the rules (`domain`) and the held matches (`matches`)."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from services.kit import log
from services.kit.clock import Clock
from services.match.delivery import Session
from services.match.domain import recovery, relay
from services.match.domain.contract import Contract
from services.match.domain.deadlines import Limits
from services.match.domain.envelope import Envelope
from services.match.domain.errors import (
    ContractInvalid,
    Draining,
    FrameInvalid,
    MatchUnknown,
    RelayError,
    ResultProofInvalid,
    StoreUnavailable,
)
from services.match.domain.match import Match
from services.match.domain.outcomes import Ending, Outcome
from services.match.doorkeeper import Doorkeeper, proves_result
from services.match.matches import Decide, Held, Matches
from services.match.metrics import RelayMetrics
from services.match.ports import (
    Close,
    Conflict,
    Ended,
    Incoming,
    Join,
    MatchStore,
    Outlet,
    Receipt,
    ReceiptRequest,
    Records,
    Refusal,
    Status,
    Welcome,
)

__all__ = ["Connection", "Relay"]

_REVOCATION_LIFE_MS = 3 * 3_600_000  # the life of a contract
_DRAIN_JITTER_MS = 2000


@dataclass(frozen=True, eq=False, slots=True)
class Connection:
    """A joined connection: what its door hands back with every frame."""

    held: Held
    session: Session
    contract: Contract


class Relay:
    """Serves the connections of one process.

    Args:
        process: A random name of this process.
        store: Running matches.
        matches: Those held here.
        records: Ended matches.
        doorkeeper: Checks joins.
        sign_receipt: Writes a receipt of a contract's match at a time in ms.
        clock: Time.
        limits: The relay's times.
        metrics: Counts.
        min_client_version: Told in every welcome.
        notices: Told in every welcome.
    """

    def __init__(
        self,
        *,
        process: str,
        store: MatchStore,
        matches: Matches,
        records: Records,
        doorkeeper: Doorkeeper,
        sign_receipt: Callable[[Contract, Match, int], str],
        clock: Clock,
        limits: Limits,
        metrics: RelayMetrics,
        min_client_version: str = "",
        notices: tuple[str, ...] = (),
    ) -> None:
        self._process, self._store, self._matches, self._records = process, store, matches, records
        self._doorkeeper, self._sign_receipt, self._clock = doorkeeper, sign_receipt, clock
        self._limits, self._metrics = limits, metrics
        self._min_client_version, self._notices = min_client_version, notices
        self._revoked: dict[bytes, int] = {}
        self._is_draining = False

    def _now_ms(self) -> int:
        return int(self._clock.now() * 1000)

    # --- joining and leaving -----------------------------------------------------------------------------------------

    async def join(self, join: Join, challenge: bytes, match_id: str | None, outlet: Outlet) -> Connection | None:
        """Connect a seat; everything it missed has been sent when this returns. None: told how the match had ended.

        Raises:
            RelayError: With the close code for the door.
        """
        try:
            connection = await self._join(join, challenge, match_id, outlet)
        except RelayError as error:
            self._metrics.joined(error.reason.lower())
            raise
        self._metrics.joined("ok")
        return connection

    async def _join(self, join: Join, challenge: bytes, match_id: str | None, outlet: Outlet) -> Connection | None:
        if self._is_draining:
            raise self.draining()
        contract = await self._doorkeeper.check(join, challenge, match_id)
        session = Session(
            join.seat, secrets.token_hex(8), outlet, join.epoch, join.position, self._limits, self._greet, self._now_ms
        )
        connection = Connection(await self._matches.hold(contract.match_id), session, contract)
        try:
            async with connection.held.lock:
                await self._enter(connection, join)
        except BaseException:
            await asyncio.shield(self.leave(connection))  # its presence may have been stored
            raise
        if session.is_over:
            await self.leave(connection)
            return None
        return connection

    async def _enter(self, connection: Connection, join: Join) -> None:
        """Store the seat's arrival, making the state if that is still allowed; or show the recorded ending."""
        held, session, contract = connection.held, connection.session, connection.contract
        if self._is_draining:  # since the first look; `drain` has passed this match
            raise self.draining()
        held.stored = await self._store.load(held.match_id)
        if held.stored is None:
            if (recorded := await self._records.find(held.match_id)) is not None:
                self._show_recorded(session, join, *recorded)
                return
            await self._create(held, join, contract)
        elif held.stored.contract != contract:
            raise ContractInvalid("Another contract was shown for this match.", field="join.contract")
        elif (
            join.position > held.stored.match.counter
            and held.stored.match.ending is None
            and (recorded := await self._records.find(held.match_id)) is not None
        ):
            self._show_recorded(session, join, *recorded)  # Redis fell back behind the match's end
            return
        held.contract = contract
        if self._is_revoked(contract, join.seat):
            await self._matches.change(held, partial(relay.revoke, seat=join.seat, now_ms=self._now_ms()))
        speaker = (session.connection, self._process)
        new_epoch = secrets.token_bytes(8)

        def arrive(match: Match) -> Match:
            after = relay.join(match, join.seat, speaker, join.position, self._now_ms(), new_epoch, self._limits)
            session.joins = after.seats[join.seat].joins
            return after

        held.sessions.add(session)
        match = await self._matches.change(held, arrive)
        if match is not None and join.epoch:
            self._metrics.resumed(is_known=join.epoch == match.epoch)

    async def _create(self, held: Held, join: Join, contract: Contract) -> None:
        now_ms, epoch = self._now_ms(), secrets.token_bytes(8)
        limit_ms = min(now_ms + self._limits.match_ms, contract.expires_s * 1000)
        if join.position == 0 and now_ms <= contract.issued_s * 1000 + self._limits.creation_ms:
            match = relay.create(contract.first_seat, now_ms, limit_ms, epoch, self._limits)
        elif join.position > 0 or join.epoch:
            match = recovery.blank(contract.first_seat, now_ms, limit_ms, epoch, self._limits)
        else:
            raise MatchUnknown("This match was not begun in time after its contract.")
        answer = await self._store.commit(None, contract, match)
        if isinstance(answer, Conflict):
            held.stored = answer.stored
        else:
            held.stored = answer
            self._metrics.created(is_recovery=match.recovery is not None)

    def _show_recorded(self, session: Session, join: Join, ending: Ending, counter: int) -> None:
        status = Status(None, None, (False, False))
        session.send(self._welcome(join.epoch or bytes(8), counter, bool(join.epoch), False, status))
        session.conclude(Ended(ending))

    def _greet(self, match: Match, is_known: bool, status: Status) -> Welcome:
        return self._welcome(match.epoch, match.counter, is_known, match.is_recovering, status)

    def _welcome(self, epoch: bytes, counter: int, is_known: bool, is_recovering: bool, status: Status) -> Welcome:
        return Welcome(epoch, counter, is_known, is_recovering, status, self._min_client_version, self._notices)

    async def leave(self, connection: Connection) -> None:
        """Note that a connection ended. Presence that cannot be written now is written later."""
        session, held, now_ms = connection.session, connection.held, self._now_ms()
        session.end()
        held.sessions.discard(session)

        def decide(match: Match) -> Match:
            if session.is_relays_fault:
                later_ms = self._now_ms()
                return relay.doubt(match, session.seat, session.connection, now_ms, later_ms, self._limits)
            return relay.depart(match, session.seat, session.connection, now_ms)

        try:
            async with held.lock:
                if held.stored is None or held.stored.match.ending is None:
                    await self._matches.change(held, decide)
        except RelayError:
            self._matches.change_later(held.match_id, decide)
        finally:
            await self._matches.release(held)

    # --- frames ------------------------------------------------------------------------------------------------------

    async def handle(self, connection: Connection, frame: Incoming) -> None:
        """Do what a frame of a joined connection asks. Answers are sent, and so are refusals of one frame.

        Raises:
            RelayError: The connection must close; the error holds the code.
        """
        held, session = connection.held, connection.session
        async with held.lock:
            if session.is_over:
                return
            try:
                await self._do(connection, frame)
            except RelayError as error:
                if isinstance(frame, Envelope):
                    self._metrics.envelope(error.reason.lower())
                if error.close_code:
                    session.close(error)  # so that what is the relay's fault is not taken for the device's
                    raise
                log.get().info("match.frame.refused", reason=error.reason)
                session.send(Refusal(error, 0 if held.stored is None else held.stored.match.counter))

    async def _do(self, connection: Connection, frame: Incoming) -> None:
        held, session = connection.held, connection.session
        match frame:
            case Envelope():
                await self._accept(held, session, frame)
            case Close():
                await self._matches.change(held, self._claim(connection, frame))
            case ReceiptRequest():
                held.stored = await self._store.load(held.match_id)
                self._matches.show(held)  # or its news would be taken for old
                if held.stored is not None:
                    session.send(Receipt(self._sign_receipt(connection.contract, held.stored.match, self._now_ms())))
            case _:
                raise FrameInvalid("A connection joins once.")

    async def _accept(self, held: Held, session: Session, envelope: Envelope) -> None:
        known = None if held.stored is None else held.stored.match

        def accept(match: Match) -> Match:
            nonlocal known
            known = match
            return relay.accept(match, session.seat, session.connection, envelope, self._now_ms(), self._limits)

        after = await self._matches.change(held, accept, acknowledging=(session, envelope.counter))
        if after is not None:
            is_new = after is not known
            self._metrics.envelope("accepted" if is_new else "repeated", envelope.phase if is_new else None)

    def _claim(self, connection: Connection, close: Close) -> Decide:
        seat, speaker, now_ms = connection.session.seat, connection.session.connection, self._now_ms()
        if close.outcome is Outcome.RESIGNED:
            return lambda match: relay.resign(match, seat, speaker, now_ms, self._limits)
        if close.outcome is Outcome.DISPUTED:
            return lambda match: relay.dispute(match, seat, speaker, close.dispute_reason, now_ms)
        if close.outcome is not Outcome.FINISHED:
            raise FrameInvalid("A seat can say finished, resigned or disputed.", field="close.outcome")
        is_shown = bool(close.result_digest or close.result_signatures)
        if is_shown and not proves_result(close, connection.contract):
            raise ResultProofInvalid("The shown result signatures do not verify.", field="close.result_signatures")
        return lambda match: relay.finish(match, seat, speaker, now_ms, is_proved=is_shown)

    # --- what time and other services do -----------------------------------------------------------------------------

    async def expire(self, match_id: str) -> None:
        """Close a match if its time is over."""
        await self._matches.change_anywhere(match_id, lambda match: relay.expire(match, self._now_ms()))

    async def lose_processes(self, match_id: str, last_heard_ms: dict[str, int]) -> None:
        """Doubt the presence that dead processes wrote."""
        await self._matches.change_anywhere(
            match_id, lambda match: relay.lose_processes(match, last_heard_ms, self._now_ms(), self._limits)
        )

    def _is_revoked(self, contract: Contract, seat: int) -> bool:
        return self._revoked.get(contract.keys[seat], 0) > contract.issued_s * 1000

    async def revoke(self, device_key: bytes, time_ms: int) -> None:
        """Note that a device was signed out: matches it plays here end, others when it joins."""
        now_ms = self._now_ms()
        self._revoked = {key: at_ms for key, at_ms in self._revoked.items() if at_ms > now_ms - _REVOCATION_LIFE_MS}
        self._revoked[device_key] = max(time_ms, self._revoked.get(device_key, 0))
        for held in self._matches.all():
            if (contract := held.contract) is None or device_key not in contract.keys:
                continue
            seat = contract.keys.index(device_key)
            if self._is_revoked(contract, seat):
                decide = partial(relay.revoke, seat=seat, now_ms=now_ms)
                try:
                    await self._matches.change_anywhere(held.match_id, decide)
                except StoreUnavailable:
                    self._matches.change_later(held.match_id, decide)

    def draining(self) -> Draining:
        """Return the error that moves a client elsewhere, with a random delay so that not all come at once."""
        delay_s = secrets.randbelow(_DRAIN_JITTER_MS) / 1000
        return Draining("The relay is shutting down; connect again.", retry_after_s=delay_s)

    async def drain(self) -> None:
        """Take no more joins and tell every connection to move."""
        self._is_draining = True
        for held in self._matches.all():
            async with held.lock:  # what was being done is answered first
                for session in list(held.sessions):
                    session.close(self.draining())
