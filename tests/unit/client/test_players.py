"""The simple bot: always one of the options, the same for the same seed and views."""

from __future__ import annotations

import asyncio

from koikoi_sdk.client.players import SimpleBot
from koikoi_sdk.table import Choose, Kind, View

from tests.unit.table.pair import Pair, started


def views(count: int) -> list[View]:
    """What is seen at the first choices of a round."""
    pair: Pair = started("boardgameland").run_to(Kind.S4)
    found: list[View] = []
    while len(found) < count:
        for seat in pair.seats:
            if isinstance(seat.step, Choose):
                found.append(seat.view())
        pair.advance()
    return found


def choices(bot: SimpleBot, seen: list[View]) -> list[object]:
    async def choose() -> list[object]:
        return [await bot.choose(view) for view in seen]

    return asyncio.run(choose())


def test_choices_are_legal_and_repeatable() -> None:
    seen = views(12)
    for seed in range(5):
        made = choices(SimpleBot(seed), seen)
        assert all(choice in view.options for choice, view in zip(made, seen, strict=True))
        assert made == choices(SimpleBot(seed), seen)
