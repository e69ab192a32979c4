"""T1 to T3: a turn (docs/protocol.md sections 4 and 18)."""

from __future__ import annotations

from dataclasses import dataclass

from koikoi_sdk.poker.layout import HANDS, other_role
from koikoi_sdk.rules import KOIKOI, SHOBU, Board, Card, Phase, Play, RulesError
from koikoi_sdk.table.codec import NO_CAPTURE, Flipped, Kind, Played
from koikoi_sdk.table.dealing import require_claimed
from koikoi_sdk.table.errors import Reason, RemoteProtocolError, require
from koikoi_sdk.table.memory import Table

_DECISIONS: dict[str | None, int] = {None: 0, SHOBU: 1, KOIKOI: 2}


@dataclass(frozen=True, slots=True)
class Flip:
    """Say what the turned stock card captures and, when one is due, what is decided then.

    `target` is set exactly where two field cards match; `decision` is SHOBU or KOIKOI exactly where
    the total rose.
    """

    target: Card | None = None
    decision: str | None = None


Choice = Play | Flip


def play_options(table: Table) -> tuple[Play, ...]:
    """List the plays that are legal now for this seat, in the order of the hand."""
    return tuple(Play(card, target) for card in hand_left(table) for target in table.board.choices(card) or (None,))


def flip_options(table: Table) -> tuple[Flip, ...]:
    """List what this seat may do with the card that it turned."""
    flipped = table.board.flip(turned_card(table))
    if flipped.phase is not Phase.DRAW_CHOICE:
        return _decide(flipped, None)
    targets = flipped.choices(turned_card(table))
    return tuple(option for target in targets for option in _decide(flipped.take(target), target))


def hand_left(table: Table) -> tuple[Card, ...]:
    """Give this seat's cards not played yet, in position order."""
    return tuple(card for card in table.deal.hand if card not in table.board.seen)


def turned_card(table: Table) -> Card:
    """Give the top of the pile, which this seat has turned and not shown yet."""
    return table.deal.cards[table.deal.top]


def build_play(table: Table, choice: Play) -> bytes:
    """Make T1."""
    position = _own_places(table)[table.deal.hand.index(choice.card)]
    table.round.board = table.board.play(choice.card, choice.target)
    opening = table.deal.play(position, table.state.head, table.draw("fresh"))
    return Played(opening, _capture_byte(choice.target)).join()


def accept_play(table: Table, payload: bytes) -> None:
    """Accept T1: the opening, then the capture, then whether a hand yaku was hidden."""
    part = Played.cut(payload)
    _, card = table.deal.accept_play(part.opening, table.state.head)
    try:
        table.round.board = table.board.play(card, _target(part.capture))
    except RulesError as error:
        raise RemoteProtocolError(Reason.CAPTURE, f"the capture is illegal: {error}") from error
    state = table.deal.state
    places = HANDS[other_role(state.role)]
    shown = frozenset(card for place, card in state.opened.items() if place in places)
    require_claimed(table, shown)


def after_play(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.T2


def build_token(table: Table) -> bytes:
    """Make T2: give the token of the pile's top card, once, in answer to a valid play."""
    return table.deal.give_token(table.state.head, table.draw("fresh"))


def accept_token(table: Table, payload: bytes) -> None:
    """Accept T2; the mover can read the turned card."""
    table.deal.accept_token(payload, table.state.head)


def after_token(table: Table) -> Kind:
    """Name what is due now."""
    return Kind.T3


def build_flip(table: Table, choice: Flip) -> bytes:
    """Make T3."""
    card = turned_card(table)
    table.round.board = _decided(_flipped(table.board, card, choice.target), choice.decision)
    opening = table.deal.flip(table.state.head, table.draw("fresh"))
    return Flipped(opening, _capture_byte(choice.target), _DECISIONS[choice.decision]).join()


def accept_flip(table: Table, payload: bytes) -> None:
    """Accept T3: the opening, then the capture, then the decision."""
    part = Flipped.cut(payload)
    card = table.deal.accept_flip(part.opening, table.state.head)
    try:
        board = _flipped(table.board, card, _target(part.capture))
    except RulesError as error:
        raise RemoteProtocolError(Reason.CAPTURE, f"the capture is illegal: {error}") from error
    allowed = {_DECISIONS[option.decision]: option.decision for option in _decide(board, None)}
    require(part.decision in allowed, Reason.DECISION, "the decision is not one that is due")
    table.round.board = _decided(board, allowed[part.decision])


def after_flip(table: Table) -> Kind:
    """Go on with the other seat's play, or audit the round that is over."""
    return Kind.AU1 if table.board.phase is Phase.OVER else Kind.T1


def _own_places(table: Table) -> range:
    return HANDS[table.deal.state.role]


def _capture_byte(target: Card | None) -> int:
    return NO_CAPTURE if target is None else target


def _target(capture: int) -> Card | None:
    return None if capture == NO_CAPTURE else capture


def _flipped(board: Board, card: Card, target: Card | None) -> Board:
    """Turn a card and let it capture; an illegal target raises RulesError."""
    board.captured_by(card, target)
    flipped = board.flip(card)
    return flipped if target is None else flipped.take(target)


def _decide(board: Board, target: Card | None) -> tuple[Flip, ...]:
    return tuple(Flip(target, decision) for decision in board.options() or (None,))


def _decided(board: Board, decision: str | None) -> Board:
    if decision is None:
        return board
    return board.shobu() if decision == SHOBU else board.koikoi()
