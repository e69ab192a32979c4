"""The state machine of a round as both players see it (docs/rules.md sections 5, 7, 11).

A board holds public information only: no hand, no stock. The referee, who knows the deck, and
each seat, which does not, run the very same transitions. Boards never change; a transition
gives the next one or raises and leaves everything as it was.

    PLAY --play--> FLIP --flip--> DRAW_CHOICE --take--+
                     |                                +--> DECISION --shobu--> OVER
                     +--------------------------------+        |
                                                      |     koikoi
                                                      v        v
                                                 PLAY of the other player, or OVER after turn 16

Between PLAY and the next PLAY it is the same player's turn. Yaku count only once both cards of
the turn are resolved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from koikoi_sdk.rules.cards import CARDS_IN_DECK, Card, matches
from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.scoring import (
    Pair,
    Player,
    RoundResult,
    settle_exhausted,
    settle_redeal,
    settle_shobu,
    settle_teyaku,
)
from koikoi_sdk.rules.variants import Variant
from koikoi_sdk.rules.yaku import Yaku, evaluate, field_redeal, total

FIELD_SIZE = 8
LAST_TURN = 16
"""The child's eighth turn, after which both hands are empty."""
SHOBU = "shobu"
KOIKOI = "koikoi"


class Phase(StrEnum):
    """What the mover owes next."""

    PLAY = "play"
    FLIP = "flip"
    DRAW_CHOICE = "draw_choice"
    DECISION = "decision"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Board:
    """One moment of a round. Made by `start`, moved on by its transitions.

    `points` are those before the round; `thresholds` each player's base at the own last koi-koi;
    `drawn` the turned stock card while its capture is still to be chosen; `result` is there
    exactly in phase OVER. `turn` is 1 to 16, or 0 when the deal was void.
    """

    variant: Variant
    dealer: Player
    points: Pair
    field: frozenset[Card]
    mover: Player
    captures: tuple[frozenset[Card], frozenset[Card]] = (frozenset(), frozenset())
    koikoi_count: Pair = (0, 0)
    thresholds: Pair = (0, 0)
    turn: int = 1
    phase: Phase = Phase.PLAY
    drawn: Card | None = None
    result: RoundResult | None = None

    def yaku(self, player: Player) -> Yaku:
        """List the yaku of what a player has captured so far."""
        return evaluate(self.variant, self.captures[player])

    @property
    def base(self) -> Pair:
        """Give each player's sum of yaku points, before any multiplier."""
        return total(self.yaku(0)), total(self.yaku(1))

    @property
    def seen(self) -> frozenset[Card]:
        """Give every card that lies open on the table."""
        drawn = frozenset() if self.drawn is None else frozenset({self.drawn})
        return self.field | self.captures[0] | self.captures[1] | drawn

    def choices(self, card: Card) -> tuple[Card, ...]:
        """Give the two field cards one of which must be chosen for this card, or nothing."""
        found = matches(self.field, card)
        return found if len(found) == 2 else ()

    def captured_by(self, card: Card, target: Card | None = None) -> frozenset[Card]:
        """Give what a card captures, itself included; empty when it stays on the field.

        Raises:
            RulesError: ILLEGAL_ACTION, a target where there is no choice, or none where there is.
        """
        found = matches(self.field, card)
        if len(found) == 2:
            if target not in found:
                raise _illegal("target", "one of the two field cards of the card's month")
            return frozenset({card, target})
        if target is not None:
            raise _illegal("target", "null, since the field leaves no choice")
        return frozenset({card, *found}) if found else frozenset()

    def options(self) -> tuple[str, ...]:
        """Give the decisions that are legal now: none outside DECISION, else shobu and maybe koikoi.

        On the last turn, and in some variants after any koi-koi, there is only shobu (section 7).
        """
        if self.phase is not Phase.DECISION:
            return ()
        barred = self.variant.one_koikoi_a_round and any(self.koikoi_count)
        return (SHOBU,) if barred or self.turn == LAST_TURN else (SHOBU, KOIKOI)

    def play(self, card: Card, target: Card | None = None) -> Board:
        """Play a hand card of the mover; `target` only where two field cards match.

        Raises:
            RulesError: ILLEGAL_ACTION or ROUND_OVER. That the card is in the hand is not checked:
                the board does not know hands, only that the card is not on the table already.
        """
        self._require(Phase.PLAY)
        return replace(_resolve(self, card, target), phase=Phase.FLIP)

    def flip(self, card: Card) -> Board:
        """Turn the top card of the stock; it is resolved at once unless the mover must choose.

        Raises:
            RulesError: ILLEGAL_ACTION or ROUND_OVER.
        """
        self._require(Phase.FLIP)
        if self.choices(card):
            _require_new(self, card)
            return replace(self, phase=Phase.DRAW_CHOICE, drawn=card)
        return _end_turn(_resolve(self, card, None))

    def take(self, target: Card) -> Board:
        """Choose what the turned card captures.

        Raises:
            RulesError: ILLEGAL_ACTION or ROUND_OVER.
        """
        self._require(Phase.DRAW_CHOICE)
        assert self.drawn is not None
        return _end_turn(_resolve(replace(self, drawn=None), self.drawn, target))

    def shobu(self) -> Board:
        """End the round; the mover wins it.

        Raises:
            RulesError: ILLEGAL_ACTION or ROUND_OVER.
        """
        self._require(Phase.DECISION)
        return _over(
            self, settle_shobu(self.variant, self.points, self.koikoi_count, self.mover, self.yaku(self.mover))
        )

    def koikoi(self) -> Board:
        """Go on; the mover's next decision needs more points than now.

        Raises:
            RulesError: ILLEGAL_ACTION or ROUND_OVER.
        """
        self._require(Phase.DECISION)
        if KOIKOI not in self.options():
            raise _illegal("action", "shobu, since koi-koi is not allowed any more")
        mover = self.mover
        declared = replace(
            self,
            koikoi_count=_with(self.koikoi_count, mover, self.koikoi_count[mover] + 1),
            thresholds=_with(self.thresholds, mover, self.base[mover]),
        )
        return _pass_on(declared)

    def claim(self, names: tuple[str | None, str | None]) -> Board:
        """End the round before any play by hand yaku, one name or None for each player.

        Raises:
            RulesError: ILLEGAL_ACTION, something was played already, or ROUND_OVER.
        """
        self._require(Phase.PLAY)
        self._require_unplayed()
        return _over(self, settle_teyaku(self.variant, self.points, self.dealer, names))

    def void(self, why: str) -> Board:
        """Void the deal before any play; another reason is added to the ones there are.

        Raises:
            RulesError: ILLEGAL_ACTION, something was played already, or ROUND_OVER.
        """
        if self.turn:
            self._require(Phase.PLAY)
            self._require_unplayed()
        reasons = (*(self.result.why if self.result else ()), why)
        return replace(_over(self, settle_redeal(self.points, self.dealer, reasons)), turn=0)

    def _require(self, phase: Phase) -> None:
        if self.phase is Phase.OVER:
            raise RulesError(Reason.ROUND_OVER, "action", "nothing more, the round is over")
        if self.phase is not phase:
            raise _illegal("action", f"what phase {self.phase} asks for")

    def _require_unplayed(self) -> None:
        if self.turn > 1:
            raise _illegal("action", "a play, since the first turn is over")


def start(variant: Variant, dealer: Player, points: Pair, field: frozenset[Card]) -> Board:
    """Open a round on its dealt field; with four cards of a month there it is void at once.

    Hands are not seen here: a hand yaku is then told by `Board.claim`, a hand that voids the deal
    by `Board.void("hand")`, both before the first play.

    Raises:
        RulesError: BAD_FIELD, not eight cards.
    """
    if len(field) != FIELD_SIZE or not all(0 <= card < CARDS_IN_DECK for card in field):
        raise RulesError(Reason.BAD_FIELD, "field", "eight different cards")
    board = Board(variant, dealer, points, field, mover=dealer)
    return board.void("field") if field_redeal(field) else board


def _with(pair: Pair, player: Player, value: int) -> Pair:
    return (value, pair[1]) if player == 0 else (pair[0], value)


def _illegal(field: str, limit: str) -> RulesError:
    return RulesError(Reason.ILLEGAL_ACTION, field, limit)


def _resolve(board: Board, card: Card, target: Card | None) -> Board:
    """Apply the 0/1/2/3 rule of section 5 to one card."""
    _require_new(board, card)
    taken = board.captured_by(card, target)
    if not taken:
        return replace(board, field=board.field | {card})
    mine = board.captures[board.mover] | taken
    captures = (mine, board.captures[1]) if board.mover == 0 else (board.captures[0], mine)
    return replace(board, field=board.field - taken, captures=captures)


def _end_turn(board: Board) -> Board:
    if board.base[board.mover] > board.thresholds[board.mover]:
        return replace(board, phase=Phase.DECISION)
    return _pass_on(board)


def _pass_on(board: Board) -> Board:
    if board.turn == LAST_TURN:
        return _over(board, settle_exhausted(board.variant, board.points, board.koikoi_count, board.dealer))
    return replace(board, phase=Phase.PLAY, turn=board.turn + 1, mover=1 - board.mover)


def _over(board: Board, result: RoundResult) -> Board:
    return replace(board, phase=Phase.OVER, result=result)


def _require_new(board: Board, card: Card) -> None:
    if not 0 <= card < CARDS_IN_DECK or card in board.seen:
        raise _illegal("card", "a card that is not on the table yet")
