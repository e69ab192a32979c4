"""Who makes a seat's choices: a simple bot here, a person at the terminal in `cli`."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Protocol

from koikoi_sdk.rules import KOIKOI, Kind, Play, kind, month
from koikoi_sdk.table import Choice, Flip, View

_WORTH = {Kind.HIKARI: 20, Kind.TANE: 10, Kind.TANZAKU: 5, Kind.KASU: 1}
"""The cards' printed values (docs/rules.md section 1); enough to prefer a crane to a plain pine."""


@dataclass(frozen=True, slots=True)
class Resign:
    """Give the match up."""


class Player(Protocol):
    """Makes the choices of one seat."""

    async def choose(self, view: View) -> Choice | Resign:
        """Give one of `view.options`, which is not empty, or give the match up."""


class SimpleBot:
    """Captures the most valuable cards it can, and says koi-koi now and then.

    The same seed and the same views give the same choices.
    """

    def __init__(self, seed: int | None = None, *, koikoi_chance: float = 0.3) -> None:
        self._random = random.Random(seed)  # noqa: S311 - taste, not secrecy
        self._koikoi_chance = koikoi_chance

    async def choose(self, view: View) -> Choice:
        """Give the best option by printed values; ties are broken by chance."""
        wants_more = self._random.random() < self._koikoi_chance
        return max(view.options, key=lambda option: (self._worth(view, option, wants_more), self._random.random()))

    @staticmethod
    def _worth(view: View, option: Choice, wants_more: bool) -> int:
        if isinstance(option, Flip):
            decided = (option.decision == KOIKOI) == wants_more if option.decision else True
            return 100 * decided + (_WORTH[kind(option.target)] if option.target is not None else 0)
        return _worth_of_play(view, option)


def _worth_of_play(view: View, play: Play) -> int:
    assert view.round is not None
    matching = [card for card in view.round.field if month(card) == month(play.card)]
    taken = [play.target] if play.target is not None else matching
    own = _WORTH[kind(play.card)]
    return own + sum(_WORTH[kind(card)] for card in taken) if taken else -own
