"""Writes the match vectors of this folder anew: `python -m tests.vectors.matches.generate`.

Everything is fixed, so the files change only when the protocol or the rules do. Deals are wished for: the dealer's
and the other's seeds are searched until their deck has what a match is to show. `observer`, which shares no code with
the two seats, must come to the same bytes before a file is written.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.rules import KOIKOI, SHOBU, Board, Koikoi, Play, ResultKind, Round, RoundResult, Shobu, Take, deal
from koikoi_sdk.table import Choice, Choose, Finished, Flip, Kind, Seat
from koikoi_sdk.table.vectors import RESIGN, describe_choice, record

from tests.unit.table.observer import Observer
from tests.unit.table.pair import (
    Layout,
    Pair,
    SeededRandom,
    encode_key,
    has_four,
    has_teshi,
    is_kuttsuki,
    is_plain,
)

FOLDER = Path(__file__).parent
SEEDS = tuple(hashlib.sha256(f"koikoi match vectors, device {seat}".encode()).digest() for seat in (0, 1))
Decide = Callable[[Board], bool]
"""Tells whether to say koi-koi where it is allowed."""


def contract(preset: str, rounds: int) -> bytes:
    rules = json.dumps({"overrides": {}, "preset": preset, "rounds": rounds, "version": 1}, separators=(",", ":"))
    seats = [
        {
            "account": f"0190b1c2-0000-7000-8000-00000000000{seat}",
            "avatar": "",
            "key": encode_key(DeviceKey(seed).public),
            "name": name,
        }
        for seat, (seed, name) in enumerate(zip(SEEDS, ("Aoi", "Botan"), strict=True))
    ]
    members = {"exp": 1767236400, "iat": 1767225600, "iss": "lobby", "jti": "0190b1c2-0000-7000-8000-0000000000ff"}
    return json.dumps({**members, "ranked": False, "rules": rules, "seats": seats}, separators=(",", ":")).encode()


class Wished:
    """One match of two seats whose deals and plays are chosen; `vector` gives what it was made from."""

    def __init__(self, name: str, preset: str, rounds: int) -> None:
        devices = (DeviceKey(SEEDS[0]), DeviceKey(SEEDS[1]))
        self.pair = Pair(contract(preset, rounds), f"koikoi match vectors, {name}", self._pick, devices)
        self.choices: dict[str, object] = {}
        self._plan: list[Any] = []

    def deal(self, wish: Callable[[Layout], bool]) -> "Wished":
        """Play on to the next deal and choose its deck."""
        while not (self.pair.flying and self.pair.sender._state.due is Kind.S1):
            self.pair.advance()
        self.pair.stack(wish)
        self.pair.advance()
        return self

    def play(self, decide: Decide, wish: Callable[[RoundResult, int], bool]) -> "Wished":
        """Choose the next deck so that the round, played greedily, has a wished result and number of turns."""

        def is_wished(cards: Layout) -> bool:
            match = self.pair.seats[0]._table.match
            deck = (*cards[8:24], *cards[:8], *cards[24:])
            self._plan, played = greedy(deal(match.variant, deck, match.dealer, match.points), decide)
            assert played.result is not None
            return bool(self._plan) and wish(played.result, played.turn)

        return self.deal(is_wished)

    def resign(self, kind: Kind, count: int) -> "Wished":
        """Play on and resign instead of answering the count-th message of a kind from here."""
        self.pair.run_to(kind, count)
        self.choices[str(self.pair.flying.counter + 1)] = RESIGN
        self.pair.other(self.pair.sender).resign()
        return self

    def vector(self) -> dict[str, Any]:
        assert isinstance(self.pair.run(), Finished)
        uses = [dict(value_of(random, use) for use in list(random.log)) for random in self.pair.randoms]
        members = {"contract": self.pair.contract.decode(), "devices": [seed.hex() for seed in SEEDS]}
        return record({**members, "random": uses, "choices": self.choices})

    def _pick(self, seat: Seat, options: tuple[Choice, ...]) -> Choice:
        assert isinstance(seat.step, Choose)
        choice = self._planned(options)
        self.choices[str(seat.position)] = describe_choice(choice)
        return choice

    def _planned(self, options: tuple[Choice, ...]) -> Choice:
        if isinstance(options[0], Play):
            return self._plan.pop(0) if self._plan else options[0]
        target, decision = None, None
        if self._plan and isinstance(self._plan[0], Take):
            target = self._plan.pop(0).target
        if self._plan and isinstance(self._plan[0], Shobu | Koikoi):
            decision = SHOBU if isinstance(self._plan.pop(0), Shobu) else KOIKOI
        return Flip(target, decision)


def value_of(random: SeededRandom, use: tuple[str, int, int, int]) -> tuple[str, str]:
    label, number, index, _ = use
    return f"{label}/{number}/{index}", random(*use).hex()


def observe(vector: dict[str, Any]) -> bytes:
    """Make every byte of a match anew from docs/protocol.md alone and give the statement."""

    def draws(values: dict[str, str]) -> Callable[[str, int, int, int], bytes]:
        # The observer asks for some values that no message needs.
        return lambda label, number, index, size: bytes.fromhex(values.get(f"{label}/{number}/{index}", ""))

    wire = [(message["phase"], bytes.fromhex(message["envelope"])) for message in vector["messages"]]
    return Observer(vector["contract"].encode(), [draws(values) for values in vector["random"]], wire).replay()


def greedy(start: Round, decide: Decide) -> tuple[list[Any], Board]:
    """Play a round, capturing as much as possible; gives the actions and the board at the end."""
    moment, actions = start, []
    while moment.board.result is None:
        options = moment.legal()
        if isinstance(options[0], Shobu):
            action = options[-1] if decide(moment.board) else options[0]
        elif isinstance(options[0], Play):
            board = moment.board
            action = max(options, key=lambda play: len(board.captured_by(play.card, play.target)))  # type: ignore[union-attr]
        else:
            action = options[0]
        actions.append(action)
        moment, _ = moment.act(action)
    return actions, moment.board


def always(board: Board) -> bool:
    return True


def never(board: Board) -> bool:
    return False


def until_bust(board: Board) -> bool:
    result = board.shobu().result
    assert result is not None
    return 0 not in result.points_after


def is_quick(result: RoundResult, turn: int) -> bool:
    return result.kind is ResultKind.SHOBU and turn <= 5


def void_field(cards: Layout) -> bool:
    return has_four(cards[16:24])


def void_hand(cards: Layout) -> bool:
    return has_four(cards[8:16]) and not has_four(cards[:8]) and not void_field(cards)


def others_kuttsuki(cards: Layout) -> bool:
    return is_plain(cards[:8]) and is_kuttsuki(cards[8:16]) and not void_field(cards)


def redeal() -> Wished:
    """The field is void, then a hand; the third deal is played and all three are audited."""
    match = Wished("redeal", "boardgameland", 3)
    return match.deal(void_field).deal(void_hand).play(never, is_quick).resign(Kind.AU4, 3)


def hand_yaku() -> Wished:
    """The dealer claims four of a month in S3, then the other claims a kuttsuki in S4."""
    return Wished("hand_yaku", "house", 6).deal(has_teshi).deal(others_kuttsuki).resign(Kind.S1, 2)


def exhausted() -> Wished:
    """Three rounds to the end; nobody stops the first."""
    match = Wished("exhausted", "boardgameland", 3)
    match.play(always, lambda result, turn: result.kind is ResultKind.EXHAUSTED)
    return match.play(never, is_quick).play(never, is_quick)


def bust() -> Wished:
    """One round, with koi-koi, takes all that the loser has."""
    return Wished("bust", "house", 6).play(until_bust, lambda result, turn: 0 in result.points_after and turn <= 12)


def resign() -> Wished:
    """Given up in the middle of the first round, instead of releasing a token."""
    match = Wished("resign", "boardgameland", 3)
    return match.play(never, lambda result, turn: turn > 4).resign(Kind.T1, 3)


MATCHES: dict[str, Callable[[], Wished]] = {
    "redeal": redeal,
    "hand_yaku": hand_yaku,
    "exhausted": exhausted,
    "bust": bust,
    "resign": resign,
}


def main() -> None:
    for name, make in MATCHES.items():
        vector = make().vector()
        assert observe(vector).hex() == vector["statement"]
        text = json.dumps(vector, indent=1, separators=(",", ":"))
        (FOLDER / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
