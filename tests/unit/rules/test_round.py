"""Deals with all cards known: docs/rules.md section 3, and the actions of section 11."""

from __future__ import annotations

import random

import pytest
from koikoi_sdk.rules import Koikoi, Phase, Play, Reason, ResultKind, RulesError, Shobu, Take, deal, variant
from koikoi_sdk.rules.cards import ALL, cards

PLAIN_FIELD = "01-1 02-1 03-2 04-1 05-1 06-1 07-1 08-2"
CHILD = "01-2 02-2 03-3 04-2 05-2 09-1 10-1 11-1"
DEALER = "01-3 02-3 03-4 04-3 05-3 09-2 12-1 11-2"


def deck(child=CHILD, field=PLAIN_FIELD, own=DEALER, stock=""):
    dealt = [card for part in (child, field, own) for card in sorted(cards(part))]
    top = [next(iter(cards(name))) for name in stock.split()]
    return [*dealt, *top, *sorted(ALL - set(dealt) - set(top))]


def begin(preset="house", dealer=0, **parts):
    return deal(variant(preset), deck(**parts), dealer, (25, 25))


@pytest.mark.parametrize("dealer", [0, 1])
def test_who_gets_which_card(dealer):
    numbers = deck()
    begun = begin(dealer=dealer)
    assert begun.hands[dealer] == cards(DEALER) == frozenset(numbers[16:24])
    assert begun.hands[1 - dealer] == cards(CHILD) == frozenset(numbers[0:8])
    assert begun.board.field == cards(PLAIN_FIELD)
    assert begun.stock == tuple(numbers[24:])
    assert begun.board.mover == dealer


@pytest.mark.parametrize("wrong", [[], list(range(47)), [*range(47), 46], [*range(1, 49)], [*range(48), 0]])
def test_a_deck_is_each_card_once(wrong):
    with pytest.raises(RulesError) as caught:
        deal(variant("house"), wrong, 0, (25, 25))
    assert caught.value.reason is Reason.BAD_DECK


TESHI = "10-1 10-2 10-3 10-4 01-3 02-3 03-4 04-3"
FOUR = "06-1 06-2 06-3 06-4 01-1 02-1 03-2 04-1"
OTHER = "01-2 02-2 03-3 04-2 05-2 09-1 07-1 11-1"
KUTTSUKI = "09-1 09-2 11-1 11-2 08-1 08-3 12-1 12-2"


@pytest.mark.parametrize(
    ("preset", "parts", "kind", "detail"),
    [
        ("house", {"own": TESHI, "child": OTHER}, ResultKind.TEYAKU, ("teshi", None)),
        ("house", {"own": TESHI, "child": KUTTSUKI}, ResultKind.TEYAKU, ("teshi", "kuttsuki")),
        ("nintendo", {"own": KUTTSUKI, "child": TESHI}, ResultKind.TEYAKU, ("kuttsuki", "teshi")),
        ("wikipedia_ja", {"child": TESHI}, ResultKind.TEYAKU, (None, "teshi")),
        ("house", {"own": TESHI, "child": OTHER, "field": FOUR}, ResultKind.REDEAL, ("field",)),
        ("boardgameland", {"own": TESHI, "child": OTHER}, ResultKind.REDEAL, ("hand",)),
        ("boardgameland", {"own": OTHER, "child": TESHI}, ResultKind.REDEAL, ("hand",)),
        ("boardgameland", {"own": TESHI, "child": OTHER, "field": FOUR}, ResultKind.REDEAL, ("field", "hand")),
    ],
)
def test_deals_that_are_over_at_once(preset, parts, kind, detail):
    if "field" not in parts:
        parts = {"field": "01-1 02-1 03-1 04-1 05-1 06-1 07-2 08-2"} | parts
    if parts.get("child") == TESHI and "own" not in parts:
        parts["own"] = OTHER
    begun = begin(preset, **parts)
    result = begun.board.result
    assert (begun.board.phase, result.kind, begun.legal()) == (Phase.OVER, kind, ())
    assert (result.teyaku if kind is ResultKind.TEYAKU else result.why) == detail


@pytest.mark.parametrize("preset", ["sdin", "wikipedia_en"])
def test_presets_without_hand_yaku_play_on(preset):
    assert begin(preset, own=TESHI, child=OTHER, field="01-1 02-1 03-2 04-1 05-1 06-1 07-2 08-2").legal()


def refused(call, action, reason=Reason.ILLEGAL_ACTION):
    with pytest.raises(RulesError) as caught:
        call(action)
    assert caught.value.reason is reason


def test_a_turn_with_a_choice_for_the_drawn_card():
    field = "01-1 02-1 03-2 04-1 05-1 06-1 08-1 08-2"
    begun = begin(child=CHILD.replace("10-1", "10-2"), field=field, stock="08-3")
    after, events = begun.act(Play(next(iter(cards("12-1")))))
    assert [(event.source, event.captured) for event in events] == [("hand", frozenset())]
    assert after.board.phase is Phase.DRAW_CHOICE
    assert after.legal() == tuple(Take(card) for card in sorted(cards("08-1 08-2")))
    refused(after.act, Take(0))
    refused(after.act, Shobu())
    refused(after.act, Play(0))
    done, events = after.act(Take(next(iter(cards("08-2")))))
    assert [(event.source, event.captured) for event in events] == [("stock", cards("08-2 08-3"))]
    assert len(done.stock) == 23
    assert done.board.mover == 1


def test_only_the_movers_hand_cards_can_be_played():
    begun = begin()
    refused(begun.act, Play(next(iter(cards("01-2")))))
    refused(begun.act, Play(next(iter(cards("12-4")))))
    refused(begun.act, Koikoi())
    refused(begun.act, Take(0))


def test_nothing_can_be_done_when_it_is_over():
    state = begin()
    chance = random.Random(1)
    while legal := state.legal():
        state, _ = state.act(chance.choice(legal))
    for action in (Play(0), Take(0), Shobu(), Koikoi()):
        refused(state.act, action, Reason.ROUND_OVER)
