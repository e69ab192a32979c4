"""Whatever two devices can play, ranking takes; whatever bytes come, it answers in one of its own words."""

import random
import struct
from dataclasses import replace
from operator import attrgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from koikoi_sdk.rules import PRESETS, ResultKind, deal, start_match, variant

from services.ranking.domain.errors import StatementImpossible, StatementMalformed
from services.ranking.domain.leaderboard import Standing, make_board
from services.ranking.domain.pages import Page, cut_page
from services.ranking.domain.ratings import History, RatedMatch
from services.ranking.domain.statement import Statement, check, decode
from tests.unit.ranking.cases import KIND_BYTES, encode

HEADER = struct.Struct(">B32s32sBBHHB")


def play_out(preset, count, chance):
    """Play a whole match with random legal actions, redeals included; koi-koi as often as allowed."""
    match = start_match(replace(variant(preset), rounds=count), chance.randrange(2))
    while match.final is None:
        deck = list(range(48))
        chance.shuffle(deck)
        round_ = deal(match.variant, deck, match.dealer, match.points)
        while round_.board.result is None:
            actions = round_.legal()
            action = actions[-1] if chance.random() < 0.7 else chance.choice(actions)
            round_, _ = round_.act(action)
        match = match.record(round_.board.result)
    return match


def write(statement: Statement) -> bytes:
    rounds = [
        struct.pack(
            ">BBHHHH",
            KIND_BYTES[stated.kind],
            255 if stated.winner is None else stated.winner,
            stated.score,
            stated.payment,
            *stated.points_after,
        )
        for stated in statement.rounds
    ]
    winner = 2 if statement.winner is None else statement.winner
    header = HEADER.pack(
        1, statement.contract_hash, statement.session_id, statement.ending, winner, *statement.points, len(rounds)
    )
    return header + b"".join(rounds) + statement.final_head


@pytest.mark.parametrize("preset", sorted(PRESETS))
@given(seed=st.integers(0, 2**32), resigned_by=st.sampled_from([None, 0, 1]))
@settings(max_examples=6)
def test_what_is_really_played_is_possible(preset, seed, resigned_by):
    chance = random.Random(seed)
    match = play_out(preset, chance.choice(PRESETS[preset].rounds_allowed), chance)
    if resigned_by is not None:
        kept = match.results[: chance.randrange(len(match.results))]
        match = start_match(match.variant, 0 if not kept else match.dealer)
        points = kept[-1].points_after if kept else match.points
        match = replace(match, results=kept, points=points)
    statement = decode(encode(match, resigned_by=resigned_by))
    check(statement, match.variant)
    assert [stated.kind for stated in statement.rounds] == [result.kind for result in match.results]


@given(data=st.binary(max_size=600) | st.binary(min_size=103, max_size=103).map(lambda body: b"\1" + body))
def test_any_bytes_are_a_statement_or_malformed(data):
    try:
        statement = decode(data)
    except StatementMalformed:
        return
    assert write(statement) == data


stated_rounds = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 2]),
        st.sampled_from([0, 1, 255]),
        st.integers(0, 60),
        st.integers(0, 60),
        st.integers(0, 50),
        st.integers(0, 50),
    ),
    max_size=12,
)


@given(
    rounds=stated_rounds,
    ending=st.integers(0, 2),
    winner=st.integers(0, 2),
    points=st.tuples(st.integers(0, 65535), st.integers(0, 50)),
    preset=st.sampled_from(sorted(PRESETS)),
)
def test_made_up_rounds_are_impossible_unless_they_pay_out(rounds, ending, winner, points, preset):
    """What passes the check keeps the invariants that a reader of the log relies on."""
    chosen = PRESETS[preset]
    body = b"".join(struct.pack(">BBHHHH", *stated) for stated in rounds)
    data = HEADER.pack(1, bytes(32), bytes(32), ending, winner, *points, len(rounds)) + body + bytes(32)
    statement = decode(data)
    try:
        check(statement, chosen)
    except StatementImpossible:
        return
    assert len(statement.rounds) <= chosen.rounds
    assert statement.points == (statement.rounds[-1].points_after if rounds else (chosen.stake, chosen.stake))
    if chosen.stake:
        assert sum(statement.points) == 2 * chosen.stake
    assert all(stated.kind is not ResultKind.TEYAKU or stated.score == chosen.teyaku for stated in statement.rounds)


@given(
    matches=st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 1, None])), max_size=20),
    seed=st.integers(0, 2**32),
)
def test_only_the_order_within_an_account_matters(matches, seed):
    """Two pairs that share nobody may be rated in any interleaving: no lock between them is needed."""
    pairs = {"a": ("a0", "a1"), "b": ("b0", "b1")}
    history, interleaved = History(), History()
    for pair, winner in matches:
        history.apply(RatedMatch(pairs[pair], winner, is_rated=True))
    queues = {name: [match for match in matches if match[0] == name] for name in "ab"}
    chance = random.Random(seed)
    while any(queues.values()):
        pair, winner = queues[chance.choice([name for name in "ab" if queues[name]])].pop(0)
        interleaved.apply(RatedMatch(pairs[pair], winner, is_rated=True))
    assert interleaved.ratings == history.ratings


@given(ratings=st.lists(st.integers(1490, 1500), max_size=30), size=st.integers(1, 10))
def test_pages_put_together_are_the_whole_list(ratings, size):
    rows = [Standing(f"a{index:02}", "", rating, 1, 0) for index, rating in enumerate(sorted(ratings, reverse=True))]
    whole = make_board(Page(tuple(rows), None, None), better=0, before=0).entries
    shown, start = [], 0
    while start < len(rows):
        page = cut_page(rows[start : start + size + 1], size, None, attrgetter("place"), has_behind=False)
        better = sum(row.rating > rows[start].rating for row in rows)
        shown += make_board(page, better=better, before=start).entries
        start += size
        assert (page.next is not None) == (start < len(rows))
    assert shown == list(whole)
    assert [entry.rank for entry in whole] == [1 + sum(other.rating > row.rating for other in rows) for row in rows]
