"""Two devices that live as at the command line: sign in, host or join, play, hand in; resume when killed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from koikoi.lobby.v1 import lobby_service_pb2 as lobby_messages
from koikoi.match.v1 import match_service_pb2 as match
from koikoi.ranking.v1 import ranking_service_pb2 as ranking_messages
from koikoi_sdk.client.account import Account
from koikoi_sdk.client.errors import RelayClosed, ServerError
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.lobby import Lobby
from koikoi_sdk.client.match import hand_in, is_young, play_match, sit_down
from koikoi_sdk.client.openid import fetch_id_token
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.client.players import Resign, SimpleBot
from koikoi_sdk.client.ranking import Ranking
from koikoi_sdk.table import Choice, View

from tests.crash.scenario import Phase
from tests.crash.strokes import Striker
from tests.crash.wires import Door, Gateway, Journal
from tools.plan import PROVIDER_CLIENT_ID
from tools.stack import Stack

SHORT = lobby_messages.Rules(preset="boardgameland", rounds=3)
"""Played to its end; not rated."""
RATED = lobby_messages.Rules(preset="house", rounds=6)
"""Its host resigns once every stroke up to the audit has fallen."""
MOST_MATCHES = 5
_POLL_S = 0.02
_RETRY_S = 0.3
_PATIENCE_S = 1.5
"""Seconds after which a player whose opponent has another room, or none, gives up a match that cannot begin."""
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Seen:
    """One refusal or loss that a player was told of, and how many strokes had fallen by then."""

    phase: Phase
    reason: str
    strokes: int


@dataclass(frozen=True)
class End:
    """How a match ended for one device; `receipt` is None where it died before it could keep it."""

    outcome: int
    receipt: ranking_messages.MatchResult | None


@dataclass
class Table:
    """What the two people tell each other, beside all services: the room's code, and whether to play once more."""

    striker: Striker
    rules: lobby_messages.Rules
    code: str = ""
    players: list[Player] = field(default_factory=list)
    decided: dict[str, bool] = field(default_factory=dict)

    def goes_on(self, match_id: str) -> bool:
        is_enough = self.striker.is_done or len(self.decided) + 1 >= MOST_MATCHES
        return self.decided.setdefault(match_id, not is_enough)


class Resigner:
    """Plays like the simple bot, and resigns as soon as what must be played through was."""

    def __init__(self, striker: Striker) -> None:
        self._bot, self._striker = SimpleBot(1), striker

    async def choose(self, view: View) -> Choice | Resign:
        return await self._bot.choose(view) if self._striker.awaits_play else Resign()


class Player:
    """One device and the person before it; `ends` and `journals` are by match id."""

    def __init__(self, role: str, name: str, stack: Stack, directory: Path, table: Table) -> None:
        self.role, self.name = role, name
        self.home = Home(directory)
        self.seen: list[Seen] = []
        self.ends: dict[str, End] = {}
        self.deserted: set[str] = set()
        self.journals: dict[str, Journal] = {}
        self.deaths = 0
        self.playing = ""
        self._last = ""
        self.account_id = ""
        self._joined = self._refused = ""
        self._stack, self._table = stack, table
        self._pause_s: float | None = None
        self._life: asyncio.Task[None] | None = None
        table.players.append(self)
        self._is_alive = asyncio.Event()
        table.striker.clients[role] = self

    def die(self, pause_s: float) -> None:
        assert self._life is not None
        self._pause_s = pause_s
        self._is_alive.clear()
        self._life.cancel()

    async def is_alive_again(self) -> None:
        await self._is_alive.wait()

    async def run(self) -> None:
        """Live, and live again after every death, from nothing but the disk."""
        while True:
            self._life = asyncio.create_task(self._live())
            self._is_alive.set()
            try:
                await self._life
            except asyncio.CancelledError:
                if self._pause_s is None:
                    self._life.cancel()
                    raise
                pause_s, self._pause_s = self._pause_s, None
                self.deaths += 1
                await asyncio.sleep(pause_s)
            else:
                return

    @property
    def _other(self) -> Player:
        return next(player for player in self._table.players if player is not self)

    async def _live(self) -> None:
        async with Gateway(self._stack.plan.gateway_url, self._table.striker) as client:
            account = Account(client, self.home)
            while not account.issuer:
                await self._try(Phase.SIGN_IN, self._sign_in(account))
            self.account_id = self.account_id or account.account_id
            lobby, ranking = Lobby(client, account), Ranking(client)
            while True:
                if self.playing and not self._is_pending(self.playing):  # died after the last step
                    self._end(self.playing, End(match.OUTCOME_UNSPECIFIED, None))
                if self._last and not await self._goes_on():
                    return
                outbox = self._stored() or await self._take_up(lobby, account)
                if outbox is None:
                    outbox = await self._find_match(lobby, account)
                if outbox is not None:
                    await self._play(outbox, account, ranking)

    async def _goes_on(self) -> bool:
        """Wait for the other's end of the last match; tell whether both want another."""
        while self._other.playing == self._last:
            await asyncio.sleep(_POLL_S)
        goes_on = self._table.goes_on(self._last)
        self._last = ""
        return goes_on

    async def _sign_in(self, account: Account) -> object:
        url, login = self._stack.plan.provider_url, f"{self.name}@example.test"
        return await account.sign_in_with(
            lambda nonce: fetch_id_token(url, client_id=PROVIDER_CLIENT_ID, login_hint=login, nonce=nonce),
            display_name=self.name,
        )

    async def _try(self, phase: Phase, work: Awaitable[Answer]) -> Answer | None:
        """Do one thing; a refusal is noted, and the person tries again a moment later."""
        try:
            return await work
        except ServerError as error:
            self._see(phase, error.reason or error.code)
            await asyncio.sleep(_RETRY_S)
            return None

    def _see(self, phase: Phase, reason: str) -> None:
        self.seen.append(Seen(phase, reason, len(self._table.striker.fallen)))

    def _is_pending(self, match_id: str) -> bool:
        return Outbox(self.home.matches / match_id).is_pending

    def _stored(self) -> Outbox | None:
        stored = [outbox for outbox in Outbox.stored(self.home.matches) if outbox.is_pending]
        return stored[0] if stored else None

    async def _take_up(self, lobby: Lobby, account: Account) -> Outbox | None:
        """Sit down at a match that this device died before storing, as `koikoi resume` does."""
        if not self.deaths:
            return None
        for contract in await self._try(Phase.JOIN, lobby.list_my_matches()) or []:
            if is_young(contract.payload) and not Outbox.knows(self.home.matches, contract.match_id):
                self._joined = self._table.code
                return sit_down(self.home, contract, account.key)
        return None

    async def _find_match(self, lobby: Lobby, account: Account) -> Outbox | None:
        if self.role == "host":
            return await self._try(Phase.ROOM, self._host(lobby, account))
        return await self._try(Phase.JOIN, self._join(lobby, account))

    async def _host(self, lobby: Lobby, account: Account) -> Outbox:
        room = await lobby.create_room(self._table.rules, is_public=False, leave_other=True)
        self._table.code = room.code
        return sit_down(self.home, await lobby.wait_for_contract(room.code), account.key)

    async def _join(self, lobby: Lobby, account: Account) -> Outbox:
        while self._table.code in ("", self._joined):
            await asyncio.sleep(_POLL_S)
        code = self._table.code
        try:
            contract = await lobby.join_room(code, leave_other=True)
        except ServerError as error:
            self._refused = code if error.reason == "ROOM_NOT_FOUND" else ""
            raise
        self._joined = code
        return sit_down(self.home, contract, account.key)

    async def _play(self, outbox: Outbox, account: Account, ranking: Ranking) -> None:
        """Play a match and hand it in, or give it up before it began."""
        match_id = self.playing = outbox.match_id
        playing = asyncio.create_task(self._play_to_the_end(outbox, account, ranking))
        leaving = asyncio.create_task(self._wait_for_desertion(match_id))
        try:
            await asyncio.wait([playing, leaving], return_when=asyncio.FIRST_COMPLETED)
            if playing.done():
                self._end(match_id, playing.result())
                return
        finally:
            for task in (playing, leaving):
                task.cancel()
            await asyncio.gather(playing, leaving, return_exceptions=True)
        self._see(Phase.JOIN, "DESERTED")
        outbox.remove()
        self.deserted.add(match_id)
        self.playing = ""

    def _end(self, match_id: str, end: End) -> None:
        self.ends[match_id] = end
        print(f"  {self.role}: {match_id} ends {end.outcome}")
        self.playing, self._last = "", match_id

    def _is_elsewhere(self) -> bool:
        """Tell whether the other can have no contract of this match any more, unless it has it."""
        if self.role == "host":
            return self._other._refused == self._table.code
        return self._joined != self._table.code

    async def _wait_for_desertion(self, match_id: str) -> None:
        since = 0
        while since * _POLL_S < _PATIENCE_S:
            await asyncio.sleep(_POLL_S)
            is_alone = self._is_elsewhere() and not Outbox.knows(self._other.home.matches, match_id)
            since = since + 1 if is_alone else 0

    async def _play_to_the_end(self, outbox: Outbox, account: Account, ranking: Ranking) -> End:
        outcome: int = match.OUTCOME_UNSPECIFIED
        plan = self._stack.plan
        url = plan.websocket_url if self.role == "host" else plan.grpc_url
        journal = self.journals.setdefault(outbox.match_id, Journal())
        if outbox.is_open:
            door = Door(url, journal, self._table.striker)
            resigns = self.role == "host" and self._table.rules == RATED
            player = Resigner(self._table.striker) if resigns else SimpleBot(1)
            try:
                outcome = (await play_match(outbox, account.key, door, player)).outcome
            except RelayClosed as closed:
                self._see(Phase.PLAY, closed.reason or str(closed.close_code))
                return End(outcome, None)
        while outbox.is_pending:
            receipt = await self._try(Phase.SUBMIT, hand_in(outbox, ranking))
            if receipt is not None:
                return End(outcome, receipt)
        return End(outcome, None)
