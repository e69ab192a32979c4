"""`koikoi referee`: the rules as a filter of JSON lines, for authors of other clients.

Every line in gives one line out, whatever the line holds: a request its answer, anything else
`{"error": {"reason", "message"}}`. Requests are independent of each other. The shapes are in
`notation`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import IO, Any, NoReturn

from koikoi_sdk.rules.errors import Reason, RulesError
from koikoi_sdk.rules.match import Match, start_match
from koikoi_sdk.rules.notation import (
    Json,
    action_json,
    error_json,
    event_json,
    final_json,
    read_action,
    read_cards,
    read_list,
    read_member,
    read_player,
    read_points,
    result_json,
    state_json,
    yaku_json,
)
from koikoi_sdk.rules.round import Round, deal
from koikoi_sdk.rules.scoring import ResultKind
from koikoi_sdk.rules.variants import MAX_ROUNDS, Variant, is_integer, variant
from koikoi_sdk.rules.yaku import evaluate, total

MAX_LINE = 1 << 20
"""Bytes of one request; a match of twelve rounds takes about 20,000."""
MAX_DIGITS = 20
"""Digits of a number; reading a very long one would take quadratic time."""

Operation = Callable[[Mapping[str, object]], Json]


def answer_yaku(request: Mapping[str, object]) -> Json:
    """Score a set of captured cards."""
    captured = read_cards(read_member(request, "captured"), "captured")
    yaku = evaluate(_read_variant(request), captured)
    return {"points": total(yaku), "yaku": yaku_json(yaku)}


def answer_round(request: Mapping[str, object]) -> Json:
    """Play a round action by action; an illegal action stops it and is reported with its index."""
    state = deal(
        _read_variant(request),
        read_cards(read_member(request, "deck"), "deck"),
        read_player(request, "dealer"),
        read_points(request, "points_before"),
    )
    actions = read_list(request, "actions")
    steps: list[Json] = []
    answer: Json = {"initial": state_json(state), "steps": steps}
    stop: Json = {}
    for given in actions:
        try:
            action = read_action(given)
            after, events = state.act(action)
        except RulesError as error:
            stop = {"error": error_json(error), "at": len(steps)}
            break
        steps.append(
            {
                "player": state.board.mover,
                "action": action_json(action),
                "events": [event_json(event) for event in events],
                "state": state_json(after),
            }
        )
        state = after
    result = state.board.result
    return answer | {"result": None if result is None else result_json(result)} | stop


def answer_match(request: Mapping[str, object]) -> Json:
    """Play a match as far as rounds are given; `final` is null until it is over.

    A round that is illegal, unfinished or too many stops it and is reported with its index.
    """
    match = start_match(_read_match_variant(request), read_player(request, "first_dealer"))
    rounds: list[Json] = []
    trajectory = [list(match.points)]
    stop: Json = {}
    for index, given in enumerate(read_list(request, "rounds")):
        try:
            match, result = _play_round(match, given)
        except RulesError as error:
            stop = {"error": error_json(error.within(f"rounds[{index}]")), "at": index}
            break
        rounds.append({"result": result, "points_after": list(match.points)})
        trajectory.append(list(match.points))
    return {"rounds": rounds, "trajectory": trajectory, "final": final_json(match)} | stop


def _play_round(match: Match, given: object) -> tuple[Match, Json]:
    """Play one round of a match: a deck for each deal, then the actions on the last one."""
    if not isinstance(given, Mapping):
        raise RulesError(Reason.BAD_JSON, "round", "an object with decks and actions")
    decks, actions = read_list(given, "decks"), read_list(given, "actions")
    deals = [deal(match.variant, read_cards(deck, "decks"), match.dealer, match.points) for deck in decks]
    if not deals or any(not _is_void(voided) for voided in deals[:-1]):
        raise RulesError(Reason.BAD_DECK, "decks", "one deck, after one for each redeal")
    state = deals[-1]
    for index, action in enumerate(actions):
        try:
            state, _ = state.act(read_action(action))
        except RulesError as error:
            raise error.within(f"actions[{index}]") from None
    result = state.board.result
    if result is None or _is_void(state):
        raise RulesError(Reason.ROUND_UNFINISHED, "actions", "actions up to the round's end")
    place = {"round_no": match.round_no, "dealer": match.dealer, "redeals": len(deals) - 1}
    return match.record(result), result_json(result) | place


def _is_void(state: Round) -> bool:
    result = state.board.result
    return result is not None and result.kind is ResultKind.REDEAL


def _read_variant(request: Mapping[str, object]) -> Variant:
    return variant(read_member(request, "preset"), request.get("overrides", {}))


def _read_match_variant(request: Mapping[str, object]) -> Variant:
    """Give the rule set of a match, which lasts `rounds_total` rounds if that is given."""
    chosen = _read_variant(request)
    rounds = request.get("rounds_total", chosen.rounds)
    if not is_integer(rounds, 1, MAX_ROUNDS):
        raise RulesError(Reason.BAD_RULES, "rounds_total", f"a whole number 1 to {MAX_ROUNDS}")
    return replace(chosen, rounds=rounds)


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {"yaku": answer_yaku, "round": answer_round, "match": answer_match}
)


def answer(line: bytes | str, operations: Mapping[str, Operation] = OPERATIONS) -> Json:
    """Answer one line; never raises for what the line holds."""
    try:
        request = _read_request(line)
        return _operation(request, operations)(request)
    except RulesError as error:
        return {"error": error_json(error)}
    except Exception:  # noqa: BLE001 - the next line must be answered even after a fault of our own
        fault = RulesError(Reason.INTERNAL, "request", "nothing else; this is a fault of ours")
        return {"error": error_json(fault)}


def _operation(request: Mapping[str, object], operations: Mapping[str, Operation]) -> Operation:
    op = request.get("op")
    if not isinstance(op, str) or op not in operations:
        raise RulesError(Reason.UNKNOWN_OP, "op", "one of " + " ".join(operations))
    return operations[op]


def main(stdin: IO[str] | IO[bytes], stdout: IO[str]) -> None:
    """Answer line by line until the input ends or nobody reads the answers any more.

    Reads the bytes under a text stream, so that a line that is not UTF-8 is only a bad line.
    """
    with suppress(BrokenPipeError):
        for line in _lines(getattr(stdin, "buffer", stdin)):
            stdout.write(json.dumps(answer(line), separators=(",", ":")) + "\n")
            stdout.flush()


def _lines(source: IO[str] | IO[bytes]) -> Iterator[str | bytes]:
    """Split the input, holding at most MAX_LINE of it; the rest of a longer line is dropped."""
    while line := source.readline(MAX_LINE + 1):
        rest = line
        while len(rest) > MAX_LINE and rest[-1:] not in _NEWLINES:
            rest = source.readline(MAX_LINE + 1)
        yield line


def _read_request(line: bytes | str) -> dict[str, object]:
    if len(line) > MAX_LINE:
        raise RulesError(Reason.TOO_LONG, "line", f"at most {MAX_LINE} bytes")
    try:
        text = line.decode() if isinstance(line, bytes) else line
        request = _DECODER.decode(text)
    except (ValueError, RecursionError):
        limit = f"one JSON object (UTF-8, no member twice, numbers of at most {MAX_DIGITS} digits)"
        raise RulesError(Reason.BAD_JSON, "line", limit) from None
    if not isinstance(request, dict):
        raise RulesError(Reason.BAD_JSON, "line", "a JSON object")
    return request


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        raise ValueError("a member is given twice")
    return found


def _short_integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError("a number is too long")
    return int(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_NEWLINES = (b"\n", "\n")
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_short_integer, parse_constant=_no_constant)

if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
