"""How rounds and matches are written in JSON: the shapes of `koikoi referee` (docs/rules.md section 11).

Sets of cards are written as ascending names, actions as short lists. Reading is strict about
what it reads and ignores members it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koikoi_sdk.rules.cards import CARDS_IN_DECK, NAMES, Card, card_number, names_of
from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.match import Match
from koikoi_sdk.rules.round import Action, Event, Koikoi, Play, Round, Shobu, Take
from koikoi_sdk.rules.scoring import Pair, RoundResult
from koikoi_sdk.rules.variants import is_integer
from koikoi_sdk.rules.yaku import Yaku, total

Json = dict[str, Any]
MAX_POINTS = 65535
"""Points are two bytes in a result statement (docs/protocol.md section 18)."""


def read_member(request: Mapping[str, object], name: str) -> object:
    """Give a member that must be there."""
    if name not in request:
        raise RulesError(Reason.BAD_JSON, name, "this member to be present")
    return request[name]


def read_list(request: Mapping[str, object], name: str) -> list[object]:
    """Give a member that must be a list."""
    value = read_member(request, name)
    if not isinstance(value, list):
        raise RulesError(Reason.BAD_JSON, name, "a list")
    return value


def read_player(request: Mapping[str, object], name: str) -> int:
    """Give a member that must be 0 or 1."""
    value = read_member(request, name)
    if not is_integer(value, 0, 1):
        raise RulesError(Reason.BAD_JSON, name, "0 or 1")
    return value


def read_points(request: Mapping[str, object], name: str) -> Pair:
    """Give a member that must be two stakes."""
    match read_list(request, name):
        case [int(mine), int(yours)] if is_integer(mine, 0, MAX_POINTS) and is_integer(yours, 0, MAX_POINTS):
            return mine, yours
    raise RulesError(Reason.BAD_JSON, name, f"two whole numbers 0 to {MAX_POINTS}")


def read_cards(names: object, field: str) -> list[Card]:
    """Read a list of different cards."""
    if not isinstance(names, list) or len(names) > CARDS_IN_DECK:
        raise RulesError(Reason.BAD_CARD, field, f"a list of at most {CARDS_IN_DECK} cards")
    numbers = [card_number(name) for name in names]
    if len(set(numbers)) != len(numbers):
        raise RulesError(Reason.BAD_CARD, field, "every card at most once")
    return numbers


def read_action(action: object) -> Action:
    """Read `["play", card, target or null]`, `["take", target]`, `["shobu"]` or `["koikoi"]`.

    Raises:
        RulesError: ILLEGAL_ACTION or BAD_CARD.
    """
    match action:
        case ["play", card, None]:
            return Play(card_number(card))
        case ["play", card, target]:
            return Play(card_number(card), card_number(target))
        case ["take", target]:
            return Take(card_number(target))
        case ["shobu"]:
            return Shobu()
        case ["koikoi"]:
            return Koikoi()
    raise RulesError(
        Reason.ILLEGAL_ACTION,
        "action",
        '["play", card, target or null], ["take", target], ["shobu"] or ["koikoi"]',
    )


def action_json(action: Action) -> list[str | None]:
    """Write an action."""
    match action:
        case Play(card, target):
            return ["play", NAMES[card], None if target is None else NAMES[target]]
        case Take(target):
            return ["take", NAMES[target]]
        case Shobu():
            return ["shobu"]
    return ["koikoi"]


def yaku_json(yaku: Yaku) -> list[list[str | int]]:
    """Write a list of yaku."""
    return [[name, points] for name, points in yaku]


def event_json(event: Event) -> Json:
    """Write a card that came to the table."""
    return {
        "from": event.source,
        "card": NAMES[event.card],
        "captured": names_of(event.captured),
    }


def state_json(state: Round) -> Json:
    """Write one moment of a round, all cards open."""
    board = state.board
    return {
        "phase": board.phase.value,
        "turn": board.turn,
        "to_move": board.mover if board.result is None else None,
        "field": names_of(board.field),
        "hands": [names_of(hand) for hand in state.hands],
        "captures": [names_of(captured) for captured in board.captures],
        "stock_left": len(state.stock),
        "drawn": None if board.drawn is None else NAMES[board.drawn],
        "koikoi": list(board.koikoi_count),
        "base": list(board.base),
        "legal": [action_json(action) for action in state.legal()],
        "decision": _decision_json(state),
    }


def _decision_json(state: Round) -> Json | None:
    board = state.board
    options = board.options()
    if not options:
        return None
    yaku = board.yaku(board.mover)
    return {
        "player": board.mover,
        "yaku": yaku_json(yaku),
        "base": total(yaku),
        "options": list(options),
    }


def result_json(result: RoundResult) -> Json:
    """Write a result; `teyaku` is there for hand yaku only, `why` for redeals only."""
    written: Json = {"kind": result.kind.value}
    if result.why:
        written["why"] = list(result.why)
    written |= {"winner": result.winner, "yaku": yaku_json(result.yaku)}
    if result.teyaku is not None:
        written["teyaku"] = list(result.teyaku)
    return written | {
        "koikoi": list(result.koikoi),
        "base": result.base,
        "threshold_mult": result.threshold_mult,
        "koikoi_mult": result.koikoi_mult,
        "score": result.score,
        "payment": result.payment,
        "delta": list(result.delta),
        "points_after": list(result.points_after),
        "next_dealer": result.next_dealer,
    }


def final_json(match: Match) -> Json | None:
    """Write how a match ended, or null while it goes on."""
    final = match.final
    if final is None:
        return None
    return {
        "points": list(final.points),
        "winner": final.winner,
        "draw": final.winner is None,
        "reason": final.reason.value,
        "rounds_played": final.rounds_played,
    }


def error_json(error: RulesError) -> Json:
    """Write why something was refused."""
    return {"reason": error.reason.value, "message": str(error)}
