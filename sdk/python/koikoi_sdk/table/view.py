"""What one seat may see of its table, for user interfaces and bots."""

from __future__ import annotations

from dataclasses import dataclass

from koikoi_sdk.poker.layout import HANDS, other_role
from koikoi_sdk.rules import Board, Card, Pair, Phase, ResultKind, RoundResult, Yaku
from koikoi_sdk.table import playing
from koikoi_sdk.table.codec import Kind
from koikoi_sdk.table.memory import Table
from koikoi_sdk.table.playing import Choice


@dataclass(frozen=True, slots=True)
class RoundView:
    """The round on the table; pairs are by seat.

    `hand` are this seat's cards in the order dealt, `peer_hand` the other's where it was claimed,
    `hand_counts` how many each seat still holds.
    `turned` is the stock card that this seat turned and must still place. `stock_count` includes it.
    `result` is there once the round is over, while it is audited.
    """

    number: int
    dealer: int
    mover: int
    turn: int
    hand: tuple[Card, ...]
    peer_hand: tuple[Card, ...]
    hand_counts: Pair
    stock_count: int
    field: frozenset[Card]
    captures: tuple[frozenset[Card], frozenset[Card]]
    yaku: tuple[Yaku, Yaku]
    koikoi_count: Pair
    turned: Card | None
    result: RoundResult | None


@dataclass(frozen=True, slots=True)
class View:
    """The match as this seat sees it; pairs are by seat.

    `options` are the legal choices, empty unless one is due from this seat. `round` is None while
    nothing is dealt. `results` are those of the rounds that are over.
    """

    seat: int
    points: Pair
    results: tuple[RoundResult, ...]
    options: tuple[Choice, ...]
    round: RoundView | None


def look(table: Table, options: tuple[Choice, ...]) -> View:
    """Show the table to its own seat."""
    match = table.state.match
    results = match.results if match else ()
    return View(table.seat, table.points, results, options, _look_at_round(table))


def _look_at_round(table: Table) -> RoundView | None:
    state = table.state
    if state.round is None or state.round.board is None:
        return None
    board, is_dealt = state.round.board, bool(table.deals)
    turns = _plays(board)
    first, second = 8 - (turns + 1) // 2, 8 - turns // 2
    is_turning = is_dealt and state.due is Kind.T3 and table.owing == table.seat
    return RoundView(
        number=state.round.number,
        dealer=board.dealer,
        mover=board.mover,
        turn=board.turn,
        hand=playing.hand_left(table) if is_dealt else (),
        peer_hand=_claimed_hand(table) if is_dealt else (),
        hand_counts=(first, second) if board.dealer == 0 else (second, first),
        stock_count=24 - turns + (board.phase is Phase.FLIP),
        field=board.field,
        captures=board.captures,
        yaku=(board.yaku(0), board.yaku(1)),
        koikoi_count=board.koikoi_count,
        turned=playing.turned_card(table) if is_turning else None,
        result=board.result,
    )


def _plays(board: Board) -> int:
    """Count the hand cards played by both seats."""
    is_claimed = board.result is not None and board.result.kind is ResultKind.TEYAKU
    is_before_play = board.phase is Phase.PLAY or is_claimed
    return board.turn - 1 if is_before_play else board.turn


def _claimed_hand(table: Table) -> tuple[Card, ...]:
    deal = table.deal.state
    shown = (deal.opened.get(place) for place in HANDS[other_role(deal.role)])
    return tuple(card for card in shown if card is not None and card not in table.board.seen)
