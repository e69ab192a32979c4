"""A round with all cards known: deals a deck and turns the stock for a `Board` (docs/rules.md section 3).

This is the referee's view. A seat, which sees only its own hand, drives a `Board` itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from koikoi_sdk.rules.board import KOIKOI, SHOBU, Board, Phase, start
from koikoi_sdk.rules.cards import ALL, CARDS_IN_DECK, Card
from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.scoring import Pair, Player
from koikoi_sdk.rules.variants import Variant
from koikoi_sdk.rules.yaku import hand_redeal, teyaku


@dataclass(frozen=True, slots=True)
class Play:
    """Play a hand card; `target` exactly where two field cards match."""

    card: Card
    target: Card | None = None


@dataclass(frozen=True, slots=True)
class Take:
    """Choose what the turned stock card captures."""

    target: Card


@dataclass(frozen=True, slots=True)
class Shobu:
    """Stop and win the round."""


@dataclass(frozen=True, slots=True)
class Koikoi:
    """Go on for more."""


Action = Play | Take | Shobu | Koikoi


@dataclass(frozen=True, slots=True)
class Event:
    """A card that came to the table, from `hand` or `stock`, and what it captured with itself."""

    source: str
    card: Card
    captured: frozenset[Card]


@dataclass(frozen=True, slots=True)
class Round:
    """One moment of a round with all cards known. Made by `deal`; never changes."""

    board: Board
    hands: tuple[frozenset[Card], frozenset[Card]]
    stock: tuple[Card, ...]

    def legal(self) -> tuple[Action, ...]:
        """List exactly the actions that `act` accepts now, cards ascending."""
        board = self.board
        if board.phase is Phase.PLAY:
            return tuple(
                Play(card, target)
                for card in sorted(self.hands[board.mover])
                for target in board.choices(card) or (None,)
            )
        if board.drawn is not None:
            return tuple(Take(target) for target in board.choices(board.drawn))
        return tuple(_DECISIONS[option] for option in board.options())

    def act(self, action: Action) -> tuple[Round, tuple[Event, ...]]:
        """Apply the mover's action, and turn the stock card after a play.

        Raises:
            RulesError: ILLEGAL_ACTION or ROUND_OVER; the round is as it was.
        """
        board = self.board
        if isinstance(action, Play):
            return self._play(action)
        if isinstance(action, Take):
            return self._take(action)
        after = board.shobu() if isinstance(action, Shobu) else board.koikoi()
        return replace(self, board=after), ()

    def _play(self, action: Play) -> tuple[Round, tuple[Event, ...]]:
        board, mover = self.board, self.board.mover
        played = board.play(action.card, action.target)
        if action.card not in self.hands[mover]:
            raise RulesError(Reason.ILLEGAL_ACTION, "card", "a card of the mover's hand")
        first = Event("hand", action.card, board.captured_by(action.card, action.target))
        top, stock = self.stock[0], self.stock[1:]
        hand = self.hands[mover] - {action.card}
        hands = (hand, self.hands[1]) if mover == 0 else (self.hands[0], hand)
        after = Round(played.flip(top), hands, stock)
        if after.board.phase is Phase.DRAW_CHOICE:
            return after, (first,)
        return after, (first, Event("stock", top, played.captured_by(top)))

    def _take(self, action: Take) -> tuple[Round, tuple[Event, ...]]:
        board = self.board
        after = replace(self, board=board.take(action.target))
        assert board.drawn is not None
        return after, (Event("stock", board.drawn, board.captured_by(board.drawn, action.target)),)


_DECISIONS: dict[str, Action] = {SHOBU: Shobu(), KOIKOI: Koikoi()}


def deal(variant: Variant, deck: Sequence[Card], dealer: Player, points: Pair) -> Round:
    """Deal a deck: [0:8] child's hand, [8:16] field, [16:24] dealer's hand, then the stock.

    A void deal or a hand yaku gives a round that is over already; redeals are tested first.

    Raises:
        RulesError: BAD_DECK, not each of the 48 cards once.
    """
    if len(deck) != CARDS_IN_DECK or frozenset(deck) != ALL:
        raise RulesError(Reason.BAD_DECK, "deck", "each of the 48 cards once")
    child, own = frozenset(deck[0:8]), frozenset(deck[16:24])
    hands = (own, child) if dealer == 0 else (child, own)
    board = start(variant, dealer, points, frozenset(deck[8:16]))
    names = (teyaku(variant, hands[0]), teyaku(variant, hands[1]))
    if any(hand_redeal(variant, hand) for hand in hands):
        board = board.void("hand")
    elif board.phase is not Phase.OVER and any(names):
        board = board.claim(names)
    return Round(board, hands, tuple(deck[24:]))
