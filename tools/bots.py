"""Two bots play one match through the public API only: sign in, a room, the relay, the ranking.

What `make demo` shows and what `make run` checks itself with. Nothing here knows a service's inside.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from koikoi.lobby.v1 import lobby_service_pb2 as lobby_messages
from koikoi.match.v1 import match_service_pb2 as match_messages
from koikoi.ranking.v1 import ranking_service_pb2 as ranking_messages
from koikoi_sdk.client.account import Account
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.contract import SignedContract
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.lobby import Lobby
from koikoi_sdk.client.match import hand_in, play_match, sit_down
from koikoi_sdk.client.openid import fetch_id_token
from koikoi_sdk.client.players import Player, SimpleBot
from koikoi_sdk.client.ranking import Ranking
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.client.transport import open_transport
from koikoi_sdk.table import View

from tools.plan import PROVIDER_CLIENT_ID, Plan

__all__ = ["Bot", "Played", "play_one_match", "signed_in_bot"]


@dataclass(frozen=True)
class Bot:
    """A signed-in device that plays by itself."""

    name: str
    home: Home
    account: Account
    lobby: Lobby
    ranking: Ranking


@dataclass(frozen=True)
class Played:
    """What came of a match: the receipt of the ranking, and how long things took.

    Times are wall-clock milliseconds of both devices in one process: `deal_ms` the median from a round's start to its
    first play, `move_ms_p50` the median of a whole turn.
    """

    outcome: str
    receipt: ranking_messages.MatchResult | None
    deal_ms: float
    move_ms_p50: float


@dataclass
class Stopwatch:
    """Times deals and moves from what one seat sees."""

    deals: list[float] = field(default_factory=list)
    moves: list[float] = field(default_factory=list)
    _last: tuple[int, int] | None = None
    _since: float = field(default_factory=time.perf_counter)
    _audited: float = field(default_factory=time.perf_counter)

    def see(self, view: View) -> None:
        """Note a step; the first plays of a round end its deal, each further turn a move."""
        now = time.perf_counter()
        if view.round is None or view.round.result is not None:
            self._audited = now
            return
        place = (view.round.number, view.round.turn)
        if place == self._last:
            return
        if self._last is None or self._last[0] != place[0]:
            self.deals.append(now - self._audited)
        else:
            self.moves.append(now - self._since)
        self._last, self._since = place, now


@asynccontextmanager
async def signed_in_bot(plan: Plan, directory: Path, name: str) -> AsyncIterator[Bot]:
    """Sign a bot in at the local provider; its device lives in `directory`."""
    home = Home(directory)
    async with ConnectClient(plan.gateway_url) as client:
        account = Account(client, home)
        await account.sign_in_with(
            lambda nonce: fetch_id_token(
                plan.provider_url, client_id=PROVIDER_CLIENT_ID, login_hint=f"{name}@example.test", nonce=nonce
            ),
            display_name=name,
        )
        yield Bot(name, home, account, Lobby(client, account), Ranking(client))


async def play_one_match(
    plan: Plan,
    directory: Path,
    relay_url: str,
    *,
    rules: lobby_messages.Rules,
    seed: int = 0,
    say: Callable[[str], None],
) -> Played:
    """Play a match between two bots and hand the result in, from both sides at once."""
    async with (
        signed_in_bot(plan, directory / "tsuru", "Tsuru") as host,
        signed_in_bot(plan, directory / "kame", "Kame") as guest,
    ):
        room = await host.lobby.create_room(rules, is_public=False, leave_other=True)
        say(f"{host.name} opened room {room.code}: {room.rules.preset}, {room.rules.rounds} rounds")
        contract = await guest.lobby.join_room(room.code, leave_other=True)
        await host.lobby.wait_for_contract(room.code)
        say(f"{guest.name} took the second seat; match {contract.match_id} over {relay_url}")
        watch = Stopwatch()
        commentary = Commentary((host.name, guest.name), say)

        def observe(view: View) -> None:
            watch.see(view)
            commentary.see(view)

        (end, receipt), _ = await asyncio.gather(
            _play(host, contract, relay_url, SimpleBot(seed), observe),
            _play(guest, contract, relay_url, SimpleBot(seed + 1)),
        )
    deal, move = (statistics.median(times or [0.0]) * 1000 for times in (watch.deals, watch.moves))
    name = match_messages.Outcome.Name(end.outcome).removeprefix("OUTCOME_").lower()
    return Played(name, receipt, round(deal, 1), round(move, 2))


async def _play(
    bot: Bot,
    contract: SignedContract,
    relay_url: str,
    player: Player,
    observe: Callable[[View], None] = lambda view: None,
) -> tuple[MatchEnd, ranking_messages.MatchResult | None]:
    outbox = sit_down(bot.home, contract, bot.account.key)
    end = await play_match(outbox, bot.account.key, open_transport(relay_url), player, observe=observe)
    return end, await hand_in(outbox, bot.ranking)


class Commentary:
    """Says a line at the start and at the end of each round, as seat 0 sees it."""

    def __init__(self, names: tuple[str, str], say: Callable[[str], None]) -> None:
        self._names = names
        self._say = say
        self._results = 0
        self._begun = 0

    def see(self, view: View) -> None:
        """Note a step."""
        if view.round is not None and view.round.number > self._begun:
            self._begun = view.round.number
            self._say(f"round {view.round.number}: {self._names[view.round.dealer]} deals")
        for result in view.results[self._results :]:
            winner = "nobody" if result.winner is None else self._names[result.winner]
            yaku = ", ".join(name for name, _ in result.yaku) or "-"
            points = " : ".join(str(number) for number in result.points_after)
            self._say(f"  {result.kind}: {winner} wins {result.payment} ({yaku}); points {points}")
        self._results = len(view.results)
