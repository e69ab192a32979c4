"""Laws of rounds and matches in every preset: cards, payments, legality, ends."""

from __future__ import annotations

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from koikoi_sdk.rules import (
    PRESETS,
    Koikoi,
    Phase,
    Play,
    ReportedRound,
    ResultKind,
    RulesError,
    Shobu,
    Take,
    card_name,
    deal,
    make_rules,
    parse_rules,
    replay,
    start,
    start_match,
    variant,
)
from koikoi_sdk.rules import format_rules as write
from koikoi_sdk.rules.cards import ALL
from koikoi_sdk.rules.notation import action_json, result_json, state_json
from koikoi_sdk.rules.referee import answer

SWITCHES = st.fixed_dictionaries(
    {},
    optional={
        "hanami_tsukimi": st.booleans(),
        "double_at": st.none() | st.integers(1, 20),
        "cup": st.sampled_from(["tane", "both"]),
    },
)
PRESET = st.sampled_from(list(PRESETS))
DECK = st.permutations(range(48))
PLAYER = st.integers(0, 1)
POINTS = st.tuples(st.integers(0, 60), st.integers(0, 60))
EVERY_ACTION = [
    Shobu(),
    Koikoi(),
    *(Take(card) for card in range(48)),
    *(Play(card) for card in range(48)),
    *(Play(card, card // 4 * 4 + index) for card in range(48) for index in range(4)),
    Play(0, 47),
]


def everything(state):
    board = state.board
    hidden = list(state.hands[0]) + list(state.hands[1]) + list(state.stock)
    return sorted(
        [*hidden, *board.field, *board.captures[0], *board.captures[1]] + [board.drawn] * (board.drawn is not None)
    )


def accepts(state, action):
    try:
        state.act(action)
    except RulesError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(PRESET, SWITCHES, DECK, PLAYER, POINTS, st.randoms(use_true_random=False))
def test_a_round(preset, overrides, deck, dealer, points, chance):
    """48 cards are conserved, at most 16 are turned, players alternate, every round ends, payments add up."""
    rules = variant(preset, overrides)
    state = deal(rules, deck, dealer, points)
    actions = 0
    while state.board.phase is not Phase.OVER:
        assert everything(state) == list(range(48))
        assert state.board.mover == (dealer if state.board.turn % 2 else 1 - dealer)
        legal = state.legal()
        assert legal
        state, _ = state.act(chance.choice(legal))
        actions += 1
        assert actions <= 48
    result = state.board.result
    assert everything(state) == list(range(48))
    assert len(state.stock) >= 8
    assert state.legal() == ()
    assert tuple(b + d for b, d in zip(points, result.delta, strict=True)) == result.points_after
    if rules.scoring == "transfer":
        assert sum(result.delta) == 0
        assert min(result.points_after) >= 0
    else:
        assert min(result.delta) == 0
    assert max(result.delta) == result.payment
    assert (result.kind is ResultKind.REDEAL) == (state.board.turn == 0)


@settings(max_examples=25, deadline=None)
@given(PRESET, DECK, PLAYER, st.randoms(use_true_random=False))
def test_legal_actions_are_exactly_the_accepted_ones(preset, deck, dealer, chance):
    state = deal(variant(preset), deck, dealer, (25, 25))
    while True:
        assert [a for a in EVERY_ACTION if accepts(state, a)] == [a for a in EVERY_ACTION if a in state.legal()]
        assert all(action in EVERY_ACTION for action in state.legal())
        if not state.legal():
            return
        state, _ = state.act(chance.choice(state.legal()))


@settings(max_examples=60, deadline=None)
@given(PRESET, SWITCHES, DECK, PLAYER, st.randoms(use_true_random=False))
def test_a_seat_that_sees_no_hand_follows_the_referee(preset, overrides, deck, dealer, chance):
    """The public board, told each card as it is opened, is at every moment the referee's board."""
    state = deal(variant(preset, overrides), deck, dealer, (25, 25))
    if state.board.phase is Phase.OVER:
        return
    board = start(variant(preset, overrides), dealer, (25, 25), frozenset(deck[8:16]))
    while legal := state.legal():
        action, top = chance.choice(legal), state.stock[0]
        state, _ = state.act(action)
        if isinstance(action, Play):
            board = board.play(action.card, action.target).flip(top)
        elif isinstance(action, Take):
            board = board.take(action.target)
        else:
            board = board.shobu() if isinstance(action, Shobu) else board.koikoi()
        assert board == state.board


@settings(max_examples=40, deadline=None)
@given(PRESET, SWITCHES, PLAYER, st.integers(1, 12), st.integers(0, 2**32))
def test_a_match(preset, overrides, first_dealer, rounds, seed):
    """A match ends, the referee retells it, and what is reported of it can be replayed."""
    chance = random.Random(seed)
    match = start_match(variant(preset, overrides | {"rounds": rounds}), first_dealer)
    told, decks = [], []
    while match.final is None:
        state = deal(match.variant, deck := chance.sample(range(48), 48), match.dealer, match.points)
        actions = []
        decks.append([card_name(card) for card in deck])
        while legal := state.legal():
            action = chance.choice(legal)
            actions.append(action_json(action))
            state, _ = state.act(action)
        match = match.record(state.board.result)
        if state.board.result.kind is not ResultKind.REDEAL:
            told.append({"decks": decks, "actions": actions})
            decks = []
    request = {"op": "match", "preset": preset, "overrides": overrides, "rounds_total": rounds}
    got = answer(json.dumps(request | {"first_dealer": first_dealer, "rounds": told}))
    assert "error" not in got
    assert got["trajectory"][-1] == list(match.points) == got["final"]["points"]
    assert [entry["result"]["kind"] for entry in got["rounds"]] == [result.kind for result in match.results]
    reported = [ReportedRound(r.kind, r.winner, r.score, r.payment, r.points_after) for r in match.results]
    assert replay(match.variant, reported).final == match.final


@settings(max_examples=60, deadline=None)
@given(PRESET, SWITCHES, DECK, PLAYER, POINTS, st.randoms(use_true_random=False))
def test_the_referee_retells_a_round(preset, overrides, deck, dealer, points, chance):
    begun = state = deal(variant(preset, overrides), deck, dealer, points)
    actions = []
    while legal := state.legal():
        action = chance.choice(legal)
        actions.append(action_json(action))
        state, _ = state.act(action)
    request = {"op": "round", "preset": preset, "overrides": overrides, "dealer": dealer, "points_before": points}
    got = answer(json.dumps(request | {"deck": [card_name(card) for card in deck], "actions": actions}))
    assert got["initial"] == state_json(begun)
    assert got["result"] == result_json(state.board.result)
    assert [step["action"] for step in got["steps"]] == actions
    assert [step["state"] for step in got["steps"]][-1:] == [state_json(state)] * bool(actions)


@settings(max_examples=100, deadline=None)
@given(st.data(), PRESET, SWITCHES)
def test_contract_rules_read_what_they_write(data, preset, overrides):
    rounds = data.draw(st.sampled_from(variant(preset).rounds_allowed))
    rules = make_rules(preset, overrides, rounds)
    assert parse_rules(write(rules)) == rules


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(sorted(ALL)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
MEMBERS = [
    "op",
    "preset",
    "overrides",
    "captured",
    "deck",
    "dealer",
    "points_before",
    "actions",
    "rounds_total",
    "rounds",
]
SOUND = {
    "op": "round",
    "preset": "house",
    "overrides": {},
    "captured": [],
    "deck": [card_name(card) for card in range(48)],
    "dealer": 0,
    "points_before": [25, 25],
    "actions": [],
    "first_dealer": 0,
    "rounds_total": 6,
    "rounds": [{"decks": [[card_name(card) for card in range(48)]], "actions": []}],
}


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["yaku", "round", "match"]), st.sampled_from(sorted(SOUND)), JSON)
def test_no_member_can_break_the_referee(op, member, value):
    got = answer(json.dumps(SOUND | {"op": op, member: value}))
    json.dumps(got)
    assert got.get("error", {}).get("reason") != "INTERNAL"


@settings(max_examples=300, deadline=None)
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_can_break_the_referee(line):
    assert set(answer(line)) == {"error"}
