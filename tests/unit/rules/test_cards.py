"""docs/rules.md section 1, typed in by hand."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import Kind, Reason, RulesError, card_name, card_number, kind, month
from koikoi_sdk.rules.cards import ALL, HIKARI, KASU, TANE, TANZAKU, matches, names_of

TABLE = """
01 hikari tanzaku kasu kasu
02 tane tanzaku kasu kasu
03 hikari tanzaku kasu kasu
04 tane tanzaku kasu kasu
05 tane tanzaku kasu kasu
06 tane tanzaku kasu kasu
07 tane tanzaku kasu kasu
08 hikari tane kasu kasu
09 tane tanzaku kasu kasu
10 tane tanzaku kasu kasu
11 hikari tane tanzaku kasu
12 hikari kasu kasu kasu
"""


@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_kinds_of_a_month(row):
    mm, *kinds = row.split()
    for index, wanted in enumerate(kinds, start=1):
        card = card_number(f"{mm}-{index}")
        assert card == 4 * (int(mm) - 1) + index - 1
        assert card_name(card) == f"{mm}-{index}"
        assert month(card) == int(mm)
        assert kind(card) is Kind(wanted)


def test_totals():
    assert [len(s) for s in (HIKARI, TANE, TANZAKU, KASU, ALL)] == [5, 9, 10, 24, 48]


@pytest.mark.parametrize(
    "name", ["", "1-1", "00-1", "13-1", "01-0", "01-5", "01-1 ", "０１-1", None, 0, True, ["01-1"]]
)
def test_a_name_that_is_no_card(name):
    with pytest.raises(RulesError) as caught:
        card_number(name)
    assert caught.value.reason is Reason.BAD_CARD


@pytest.mark.parametrize("number", [-1, 48])
def test_a_number_that_is_no_card(number):
    with pytest.raises(RulesError, match="0 to 47"):
        card_name(number)


def test_matching_looks_at_the_month_only():
    assert names_of(matches(map(card_number, ["11-4", "11-1", "12-1"]), card_number("11-2"))) == ["11-1", "11-4"]


def test_sets_are_written_ascending():
    assert names_of([card_number("10-1"), card_number("02-3")]) == ["02-3", "10-1"]
