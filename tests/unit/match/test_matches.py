"""The matches that a process holds, when the store is away for a moment."""

import secrets
from typing import Any, cast

from services.kit.metrics import Metrics
from services.match.domain import relay
from services.match.domain.contract import Contract
from services.match.domain.deadlines import Limits
from services.match.domain.errors import StoreUnavailable
from services.match.domain.match import Match
from services.match.domain.outcomes import Ending, Outcome
from services.match.matches import Matches
from services.match.metrics import RelayMetrics
from services.match.ports import Stored
from services.match.service import Relay
from tests.harness import FakeClock

NOW = 1_800_000_000_000
CONTRACT = Contract("m", bytes(32), (bytes(32), bytes([1] * 32)), ("x", "y"), NOW // 1000, NOW // 1000 + 10_800)


class Store:
    """Gives one state; away when told so."""

    def __init__(self, stored: Stored) -> None:
        self.stored, self.is_away = stored, False

    async def load(self, _match_id: str) -> Stored:
        if self.is_away:
            raise StoreUnavailable("away")
        return self.stored

    async def commit(self, before: Stored, contract: Contract, match: Match) -> Stored:
        self.stored = Stored(before.revision + b"+", contract, match)
        return self.stored


class News:
    async def watch(self, match_id: str) -> None: ...

    async def unwatch(self, match_id: str) -> None: ...


class Session:
    """Remembers the last state it was shown."""

    seat, connection, position, is_over = 0, "c", 0, False
    shown: Stored | None = None

    def show(self, stored: Stored | None) -> None:
        self.shown = stored


def matches_over(store: Store) -> Matches:
    metrics = RelayMetrics(Metrics("match"))
    return Matches(cast("Any", store), News(), Limits(), metrics, lambda: NOW, lambda _: None)


async def test_news_that_could_not_be_read_is_read_later():
    """Else a seat would not learn that it owes, and be charged for it."""
    match = relay.create(0, NOW, NOW + 7_200_000, bytes(8), Limits())
    store = Store(Stored(b"revision", CONTRACT, match))
    matches = matches_over(store)
    held, session = await matches.hold("m"), Session()
    held.sessions.add(cast("Any", session))
    held.stored, store.is_away = store.stored, True
    store.stored = Stored(secrets.token_bytes(8), CONTRACT, match)
    await matches.refresh(["m"])
    await matches.settle()
    assert session.shown is None
    store.is_away = False
    await matches.settle()
    assert session.shown is store.stored
    await matches.release(held)


async def test_a_sign_out_counts_while_the_match_cannot_be_read():
    """It is told once, and the state that is not known then is read again."""
    match = relay.create(0, NOW, NOW + 7_200_000, bytes(8), Limits())
    store = Store(Stored(b"revision", CONTRACT, match))
    matches, nothing = matches_over(store), cast("Any", None)
    service = Relay(
        process="p", store=cast("Any", store), matches=matches, records=nothing, doorkeeper=nothing,
        sign_receipt=nothing, clock=FakeClock(NOW / 1000), limits=Limits(), metrics=nothing,
    )  # fmt: skip
    held = await matches.hold("m")
    held.contract = CONTRACT
    store.is_away = True
    await service.revoke(CONTRACT.keys[1], NOW + 1)
    store.is_away = False
    await matches.settle()
    assert store.stored.match.ending == Ending(Outcome.NEVER_STARTED, NOW)
    await matches.release(held)
