"""Whole matches of two seats, every byte made anew from the document by `observer`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from koikoi_sdk.table import Finished, Kind

from tests.unit.table.observer import Observer
from tests.unit.table.pair import (
    Pair,
    contract_payload,
    has_four,
    has_teshi,
    is_kuttsuki,
    is_plain,
    picker,
    started,
)


def observe(pair: Pair, skipped: int = 0, points: tuple[int, int] | None = None) -> Observer:
    """Play on to the end and replay it all; both seats and the observer have one statement."""
    assert isinstance(pair.run(), Finished)
    wire = [(int(message.phase), message.envelope) for message in pair.log]
    observer = Observer(pair.contract, pair.randoms, wire, skipped, points)
    statement = observer.replay()
    for seat in pair.seats:
        assert seat.result is not None
        assert seat.result.statement.encode() == statement
    return observer


def void(cards: tuple[int, ...]) -> bool:
    return has_four(cards[16:24])


def others(wish: Callable[[tuple[int, ...]], bool]) -> Callable[[tuple[int, ...]], bool]:
    return lambda cards: is_plain(cards[:8]) and wish(cards[8:16]) and not void(cards)


def test_a_whole_match():
    observer = observe(Pair(contract_payload("boardgameland"), 3, picker(3)))
    assert len(observer.results) == 3


LAST_ROUNDS = [("house", False), ("house", True), ("nintendo", True), ("sdin", False)]


@pytest.mark.parametrize(
    ("preset", "swapped"), [*LAST_ROUNDS, ("wikipedia_ja", True), ("wikipedia_en", False), ("boardgameland", True)]
)
def test_a_last_round(preset: str, swapped: bool):
    """Either seat may be device A, either device deals: positions, roles and seats are three different things."""
    pair = started(preset, swapped=swapped, pick=picker(1 + swapped))
    rounds = pair.seats[0].contract.rules.rounds
    observe(pair.skip(rounds - 1), rounds - 1)


@pytest.mark.parametrize(
    ("wish", "swapped"), [(has_teshi, True), (others(is_kuttsuki), False)], ids=["dealer", "other"]
)
def test_a_void_field_then_a_hand_yaku(wish: Callable[[tuple[int, ...]], bool], swapped: bool):
    pair = started(swapped=swapped).skip(5).stack(void).run_to(Kind.S4).stack(wish)
    observer = observe(pair, 5)
    assert observer.names.count("S4") == observer.names.count("AU4") == 2
    assert observer.results[-1][0] == 2


@pytest.mark.parametrize("owner", [slice(0, 8), slice(8, 16)], ids=["dealer", "other"])
def test_a_hand_redeal(owner: slice):
    plain = lambda cards: not any(has_four(cards[at : at + 8]) for at in (0, 8, 16))  # noqa: E731
    wish = lambda cards: has_four(cards[owner]) and not void(cards)  # noqa: E731
    pair = started("boardgameland").skip(2).stack(wish).run_to(Kind.S4).stack(plain)
    assert observe(pair, 2).names.count("AU4") == 2


@pytest.mark.parametrize("kinds", [(Kind.AU2,), (Kind.AU3,), (Kind.AU3, Kind.AU2)])
def test_a_restarted_audit(kinds: tuple[Kind, ...]):
    """The device to which the message is going has lost its master."""
    pair = started().skip(5).stack(has_teshi)
    for kind in kinds:
        pair.run_to(kind)
        pair.reload(pair.other(pair.sender))
        pair.advance()
    assert observe(pair, 5).names.count("AU1") == 1 + len(kinds)


@pytest.mark.parametrize("points", [(2, 48), (48, 2)])
def test_nothing_left_after_the_last_round(points: tuple[int, int]):
    pair = started().skip(5, points).stack(has_teshi)
    dealer = pair.seats[0]._table.match.dealer
    wins = points[dealer] == 48
    observe(pair, 5, points)
    result = pair.seats[0].result
    assert result is not None
    assert result.statement.encode()[65] == (1 if wins else 0)


@pytest.mark.parametrize("kind", [Kind.COIN_OPEN, Kind.S1, Kind.S4, Kind.T2, Kind.AU3])
def test_a_resignation(kind: Kind):
    pair = Pair(contract_payload("boardgameland"), 3, picker(3))
    if kind is Kind.AU3:  # of the second round, so that there is one result
        pair.run_to(Kind.AU4)
    pair.run_to(PREVIOUS[kind])
    seat = pair.other(pair.sender)
    seat.resign()
    observer = observe(pair)
    assert observer.names[-2:] == ["RESIGN", "RESULT_SIGN"]
    assert len(observer.results) == (kind is Kind.AU3)


PREVIOUS = {
    Kind.COIN_OPEN: Kind.HELLO,
    Kind.S1: Kind.COIN_OPEN,
    Kind.S4: Kind.S3,
    Kind.T2: Kind.T1,
    Kind.AU3: Kind.AU2,
}
