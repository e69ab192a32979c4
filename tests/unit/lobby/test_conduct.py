"""How conduct is judged, and what the relay's word is taken for: pure, nothing running."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from services.lobby.conduct import cooling_down
from services.lobby.domain.conduct import (
    GROWTH,
    MOST_STEPS,
    OFFENDER_OPPONENTS,
    WINDOW,
    Behaviour,
    Conduct,
    Mark,
    Outcome,
    judge,
    marks_of,
)
from services.lobby.store.outcomes import read_outcome

FIVE_MINUTES = 300_000
MATCH = "01890000-0000-7000-8000-00000000000{}"
KINDS = {"c": Behaviour.COMPLETED, "x": Behaviour.CHARGED, "d": Behaviour.DISPUTED}


def marks(history: str, opponents: str = "") -> list[Mark]:
    """Marks of matches an hour apart, oldest first; opponents by letter, all different where none are given."""
    names = opponents or [f"opponent-{number}" for number in range(len(history))]
    return [
        Mark("me", f"match-{number:03d}", name, KINDS[kind], (number + 1) * 3_600_000)
        for number, (kind, name) in enumerate(zip(history, names, strict=True))
    ]


def cool_down(history: str, opponents: str = "") -> float:
    """How long after the last match ranked rooms are closed, in minutes."""
    until = judge(marks(history, opponents), FIVE_MINUTES).cool_down_until
    return max(0, until - len(history) * 3_600_000) / 60_000


def outcome(word: str, seat: int | None = None) -> Outcome:
    return Outcome("match", word, seat, ("host", "guest"), 7)


@pytest.mark.parametrize(
    ("word", "seat", "expected"),
    [
        ("finished", None, "cc"),
        ("resigned", 0, "cc"),
        ("stalled", 0, "xc"),
        ("stalled", 1, "cx"),
        ("abandoned", 1, "cx"),
        ("disputed", None, "dd"),
        ("expired", None, ""),
        ("never_started", None, ""),
    ],
)
def test_what_an_outcome_means_to_both(word, seat, expected):
    found = marks_of(outcome(word, seat))
    assert [mark.behaviour for mark in found] == [KINDS[kind] for kind in expected]
    if found:
        assert [(mark.account_id, mark.opponent_id) for mark in found] == [("host", "guest"), ("guest", "host")]
        assert {(mark.match_id, mark.end_time) for mark in found} == {("match", 7)}


def test_nobody_is_judged_by_nothing():
    assert judge([], FIVE_MINUTES) == Conduct() == Conduct(0, 0, 0, None, 0)


@pytest.mark.parametrize(
    ("history", "percent"),
    [("c", 100), ("x", 0), ("d", 50), ("cx", 50), ("ccx", 66), ("cd", 75), ("c" * 29 + "x", 96), ("dddd", 0)],
)
def test_the_completion_rate(history, percent):
    conduct = judge(marks(history), FIVE_MINUTES)
    assert conduct.completion_percent == percent
    assert (conduct.completed, conduct.charged, conduct.disputed) == tuple(map(history.count, "cxd"))


@pytest.mark.parametrize(
    ("history", "minutes"),
    [
        ("ccc", 0),
        ("x", 5),
        ("xx", 20),
        ("xxx", 80),
        ("xxxx", 320),
        ("xxxxx", 1280),
        ("xxxxxx", 1280),
        ("d", 0),
        ("dd", 5),
        ("xd", 5),
        ("xcx", 5),
        ("xxccccccccccx", 5),
        ("xccccx", 5),
        ("xxcx", 20),
        ("cccccccccccccx", 5),
        ("x" * 30 + "c" * 10 + "x", 1280),
        ("x" + "c" * 29 + "x", 5),
    ],
)
def test_a_cool_down_grows_with_faults_and_shrinks_with_good_matches(history, minutes):
    assert cool_down(history) == minutes


def test_good_matches_during_a_cool_down_do_not_shorten_it():
    before, after = marks("xxxx"), marks("xxxxc")
    assert (
        judge(before, FIVE_MINUTES).cool_down_until == judge(after, FIVE_MINUTES).cool_down_until > after[-1].end_time
    )


def test_who_is_in_dispute_with_many_is_the_offender():
    assert cool_down("dddd", "aaaa") == 20
    assert cool_down("dddd", "abca") == 20
    assert cool_down("dddd", "abcd") == 320
    few, many = "d" * OFFENDER_OPPONENTS, marks("d" * OFFENDER_OPPONENTS)
    assert judge(marks(few, "a" * OFFENDER_OPPONENTS), FIVE_MINUTES).completion_percent == 50
    assert judge(many, FIVE_MINUTES).completion_percent == 0


def test_only_the_newest_count_in_whatever_order_and_however_often_they_come():
    all_marks = marks("x" * 5 + "c" * WINDOW)
    assert judge(all_marks, FIVE_MINUTES) == Conduct(WINDOW, 0, 0, 100, 0)
    expected = judge(marks("cxdxcd"), FIVE_MINUTES)
    for seed in range(50):
        shuffled = marks("cxdxcd")
        random.Random(seed).shuffle(shuffled)
        assert judge(shuffled, FIVE_MINUTES) == expected


def test_no_cool_down_where_none_is_wanted():
    conduct = judge(marks("xxxx"), 0)
    assert (conduct.cool_down_until, conduct.completion_percent) == (0, 0)


def test_the_longest_cool_down_is_less_than_a_day():
    assert FIVE_MINUTES * GROWTH ** (MOST_STEPS - 1) < 24 * 3_600_000


def test_a_refusal_says_until_when():
    until = int(datetime(2027, 3, 14, 1, 53, 21, 400_000, UTC).timestamp() * 1000)
    refusal = cooling_down(until, 61.2)
    assert refusal.metadata == {"until": "2027-03-14T01:53:22Z"}
    assert refusal.retry_after_s == 62
    assert "2027-03-14 01:53:22 UTC" in refusal.message


FIELDS = {
    "match_id": MATCH.format(1), "outcome": "stalled", "seat": "1", "account_0": "host", "account_1": "guest",
    "end_time_ms": "1800000000000",
}  # fmt: skip


def fields(**changes: str | bytes | None) -> dict[bytes, bytes]:
    return {
        name.encode(): value if isinstance(value, bytes) else value.encode()
        for name, value in {**FIELDS, **changes}.items()
        if value is not None
    }


def test_an_entry_is_read():
    read = read_outcome(fields())
    assert read == Outcome(MATCH.format(1), "stalled", 1, ("host", "guest"), 1_800_000_000_000)
    assert read_outcome(fields(more="of a later version")) == read
    neutral = read_outcome(fields(outcome="expired", seat=""))
    assert neutral is not None and neutral.seat is None


@pytest.mark.parametrize(
    "changes",
    [{name: None} for name in FIELDS]
    + [{name: ""} for name in FIELDS if name != "seat"]
    + [
        {"match_id": "01890000"},
        {"match_id": MATCH.format("G")},
        {"outcome": "won"},
        {"seat": "2"},
        {"seat": ""},
        {"account_0": "guest"},
        {"account_0": "a" * 65},
        {"account_1": "a\0b"},
        {"account_1": b"\xff"},
        {"end_time_ms": "-1"},
        {"end_time_ms": "9999999999999"},
        {"end_time_ms": "1" * 400},
        {"end_time_ms": "1e9"},
    ],
)
def test_what_the_relay_would_not_write_says_nothing(changes):
    assert read_outcome(fields(**changes)) is None
    assert read_outcome({}) is None
