"""The one layout of a statement, and what the rules allow it to say."""

import pytest
from koikoi_sdk.rules import PRESETS

from services.ranking.domain.errors import StatementImpossible, StatementMalformed
from services.ranking.domain.statement import Ending, check, decode
from tests.unit.ranking.cases import SIX_ROUNDS, encode, encode_round, play

HOUSE = play("house", *SIX_ROUNDS)
TEYAKU_PRESETS = sorted(name for name, variant in PRESETS.items() if variant.teyaku)
OTHER_PRESETS = sorted(set(PRESETS) - set(TEYAKU_PRESETS))


def check_bytes(data, match):
    check(decode(data), match.variant)


def refusal(data, match=HOUSE):
    with pytest.raises(StatementImpossible) as caught:
        check_bytes(data, match)
    return caught.value.metadata


def test_a_statement_reads_as_it_was_written():
    statement = decode(encode(HOUSE, b"c" * 32))
    assert statement.contract_hash == b"c" * 32
    assert statement.session_id == b"s" * 32
    assert statement.final_head == b"h" * 32
    assert statement.ending is Ending.ROUNDS_PLAYED
    assert statement.winner == 1
    assert statement.points == (19, 31)
    assert [(r.kind.value, r.winner, r.score, r.payment, r.points_after) for r in statement.rounds] == [
        ("shobu", 0, 5, 5, (30, 20)),
        ("exhausted", None, 0, 0, (30, 20)),
        ("teyaku", 1, 6, 6, (24, 26)),
        ("shobu", 1, 6, 6, (18, 32)),
        ("shobu", 0, 1, 1, (19, 31)),
        ("exhausted", None, 0, 0, (19, 31)),
    ]


@pytest.mark.parametrize("data", [b"", b"\x01", bytes(103), bytes(513), encode(HOUSE)[:-1], encode(HOUSE) + b"\0"])
def test_a_statement_of_another_size_is_malformed(data):
    with pytest.raises(StatementMalformed):
        decode(data)


@pytest.mark.parametrize(
    ("lie", "field"),
    [
        ({"version": 0}, "version"),
        ({"version": 2}, "version"),
        ({"ending": 3}, "ending"),
        ({"winner": 3}, "winner"),
        ({"winner": 255}, "winner"),
        ({"count": 5}, "rounds"),
        ({"count": 255}, "rounds"),
        ({"rounds": [encode_round(HOUSE.results[0], kind=3)], "count": 1}, "rounds[0].kind"),
        ({"rounds": [encode_round(HOUSE.results[0], winner=2)], "count": 1}, "rounds[0].winner"),
    ],
)
def test_a_byte_without_a_meaning_is_malformed(lie, field):
    with pytest.raises(StatementMalformed) as caught:
        decode(encode(HOUSE, **lie))
    assert caught.value.metadata["part"] == field


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_has_matches_that_are_possible(preset):
    count = PRESETS[preset].rounds
    first = play(preset, *[("exhausted",)] * count, count=count)
    check_bytes(encode(first), first)
    rounds = [("shobu", index % 2, 1 + index % 7, index % 2, index % 3) for index in range(count)]
    second = play(preset, *rounds, count=count, dealer=1)
    check_bytes(encode(second), second)


@pytest.mark.parametrize("preset", TEYAKU_PRESETS)
def test_hand_yaku_count_six_where_the_preset_has_them(preset):
    count = PRESETS[preset].rounds
    match = play(preset, ("teyaku", 1), *[("exhausted",)] * (count - 1), count=count)
    check_bytes(encode(match), match)
    for score in (0, 5, 7, 12):
        round_bytes = [encode_round(match.results[0], score=score), *map(encode_round, match.results[1:])]
        assert refusal(encode(match, rounds=round_bytes), match)["part"] == "rounds[0].result"


@pytest.mark.parametrize("preset", OTHER_PRESETS)
def test_hand_yaku_are_impossible_elsewhere(preset):
    count = PRESETS[preset].rounds
    match = play(preset, ("shobu", 1, 6), *[("exhausted",)] * (count - 1), count=count)
    rounds = [encode_round(match.results[0], kind=2), *map(encode_round, match.results[1:])]
    assert refusal(encode(match, rounds=rounds), match)["part"] == "rounds[0].result"


@pytest.mark.parametrize(
    "lie",
    [
        {"payment": 4},  # less than the score
        {"payment": 6},  # more than the score
        {"after": (30, 21)},  # not zero-sum
        {"after": (20, 30)},  # the loser is paid
        {"after": (25, 25)},  # nobody pays
        {"winner": 1},
        {"winner": 255},
        {"kind": 1},
        {"kind": 2},
        {"score": 0, "payment": 0, "after": (25, 25)},
        {"score": 65535, "payment": 25, "after": (50, 0)},
        {"score": 17, "payment": 17, "after": (42, 8)},  # 17 is no base with its factors
    ],
)
def test_a_round_that_cannot_follow_is_impossible(lie):
    first, *others = HOUSE.results
    data = encode(HOUSE, rounds=[encode_round(first, **lie), *map(encode_round, others)])
    assert refusal(data)["part"] == "rounds[0].result"


def test_an_exhausted_round_pays_only_what_the_preset_gives():
    first, second, *others = HOUSE.results
    awarded = encode_round(second, winner=0, score=1, payment=1, after=(31, 19))
    data = encode(HOUSE, rounds=[encode_round(first), awarded, *map(encode_round, others)])
    assert refusal(data)["part"] == "rounds[1].result"


def test_an_award_goes_to_the_dealer_and_nobody_else():
    rounds = [("shobu", 1, 5), *[("exhausted",)] * 11]
    match = play("wikipedia_en", *rounds, count=12)
    assert match.points == (0, 16)
    check_bytes(encode(match), match)
    first, *others = match.results
    stolen = [encode_round(result, winner=0, after=(index, 5)) for index, result in enumerate(others, 1)]
    data = encode(match, rounds=[encode_round(first), *stolen], points=(11, 5), winner=0)
    assert refusal(data, match)["part"] == "rounds[1].result"


def test_whoever_dealt_first_the_award_may_be_theirs():
    for dealer in (0, 1):
        match = play("wikipedia_en", *[("exhausted",)] * 12, count=12, dealer=dealer)
        assert match.points[dealer] == 12
        check_bytes(encode(match), match)


def test_a_payment_is_capped_and_the_bust_ends_the_match():
    match = play("house", ("shobu", 0, 10, 1))
    assert (match.results[0].score, match.results[0].payment, match.points) == (40, 25, (50, 0))
    check_bytes(encode(match), match)
    assert refusal(encode(match, ending=0), match)["part"] == "ending"
    assert refusal(encode(match, winner=1), match)["part"] == "winner"
    more = [encode_round(match.results[0]), encode_round(play("house", ("exhausted",)).results[0], after=(50, 0))]
    assert refusal(encode(match, rounds=more, count=2), match)["part"].startswith("rounds")


def test_a_bust_in_the_last_round_is_still_a_bust():
    match = play("house", *[("exhausted",)] * 5, ("shobu", 1, 10, 1))
    data = encode(match)
    assert decode(data).ending is Ending.BUST
    check_bytes(data, match)
    assert refusal(encode(match, ending=0), match)["part"] == "ending"


def test_sum_presets_know_no_bust():
    match = play("sdin", *[("shobu", 0, 6)] * 12, count=12)
    assert match.points == (72, 0)
    check_bytes(encode(match), match)
    assert refusal(encode(match, ending=1), match)["part"] == "ending"


def test_too_few_and_too_many_rounds_are_impossible():
    short = play("house", *SIX_ROUNDS[:5])
    assert refusal(encode(short, winner=1), short)["part"] == "rounds"
    long = play("house", *SIX_ROUNDS, ("exhausted",), count=12)
    assert refusal(encode(long), HOUSE)["part"].startswith("rounds")
    assert refusal(encode(play("house")))["part"] == "rounds"


def test_points_and_winner_follow_from_the_rounds():
    assert refusal(encode(HOUSE, points=(31, 19)))["part"] == "points"
    assert refusal(encode(HOUSE, points=(25, 25)))["part"] == "points"
    assert refusal(encode(HOUSE, winner=0))["part"] == "winner"
    assert refusal(encode(HOUSE, winner=2))["part"] == "winner"
    assert refusal(encode(HOUSE, ending=1))["part"] == "ending"


def test_equal_points_are_a_draw_and_nothing_else():
    match = play("house", *[("exhausted",)] * 6)
    check_bytes(encode(match), match)
    assert decode(encode(match)).winner is None
    for winner in (0, 1):
        assert refusal(encode(match, winner=winner), match)["part"] == "winner"


@pytest.mark.parametrize("rounds", range(6))
@pytest.mark.parametrize("seat", [0, 1])
def test_a_player_may_resign_before_the_end_and_then_loses(rounds, seat):
    match = play("house", *SIX_ROUNDS[:rounds])
    data = encode(match, resigned_by=seat)
    check_bytes(data, match)
    assert decode(data).winner == 1 - seat
    assert refusal(encode(match, resigned_by=seat, winner=2), match)["part"] == "winner"


def test_nobody_resigns_a_match_that_is_over():
    assert refusal(encode(HOUSE, resigned_by=0))["part"] == "ending"
    bust = play("house", ("shobu", 0, 10, 1))
    assert refusal(encode(bust, resigned_by=1), bust)["part"] == "ending"


def test_the_longest_match_of_a_preset_fits():
    match = play("house", *[("exhausted",)] * 12, count=12)
    assert len(encode(match)) == 224
    check_bytes(encode(match), match)
