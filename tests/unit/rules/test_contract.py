"""The rules string of a contract: docs/protocol.md section 9."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import PRESETS, Reason, RulesError, format_rules, make_rules, parse_rules

EXAMPLE = '{"overrides":{},"preset":"house","rounds":6,"version":1}'
LONGEST = (
    '{"overrides":{"cup":"both","double_at":255,"hanami_tsukimi":false},'
    '"preset":"boardgameland","rounds":12,"version":1}'
)


@pytest.mark.parametrize("text", [EXAMPLE, LONGEST, EXAMPLE.replace("{}", '{"double_at":null}')])
def test_reading_and_writing_are_inverse(text):
    assert format_rules(parse_rules(text)) == text


def test_the_example():
    rules = parse_rules(EXAMPLE)
    assert (rules.preset, dict(rules.overrides), rules.rounds, rules.version) == ("house", {}, 6, 1)
    assert rules.variant == PRESETS["house"]


def test_the_agreed_number_of_rounds_is_in_the_variant():
    assert parse_rules(EXAMPLE.replace("6", "12")).variant.rounds == 12


ALLOWED = {
    "house": {6, 12},
    "nintendo": {12},
    "sdin": {12},
    "boardgameland": {3, 6, 12},
    "wikipedia_ja": {12},
    "wikipedia_en": {12},
}


@pytest.mark.parametrize("preset", ALLOWED)
@pytest.mark.parametrize("rounds", range(14))
def test_rounds_that_a_preset_allows(preset, rounds):
    if rounds in ALLOWED[preset]:
        assert make_rules(preset, {}, rounds).variant.rounds == rounds
    else:
        with pytest.raises(RulesError, match="rounds: expected") as caught:
            make_rules(preset, {}, rounds)
        assert caught.value.reason is Reason.BAD_RULES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "[" * 400,
        " " + EXAMPLE,
        EXAMPLE + "\n",
        EXAMPLE.replace(":", ": "),
        EXAMPLE.replace('"version":1', '"version":1.0'),
        EXAMPLE.replace('"version":1', '"version":true'),
        EXAMPLE.replace('"version":1', '"version":2'),
        EXAMPLE.replace('"rounds":6', '"rounds":6.0'),
        EXAMPLE.replace('"rounds":6', '"rounds":"6"'),
        EXAMPLE.replace('"rounds":6', '"rounds":7'),
        EXAMPLE.replace('"rounds":6', '"rounds":' + "9" * 400),
        EXAMPLE.replace("house", "\\u0068ouse"),
        EXAMPLE.replace("house", "h\u00f6use"),
        EXAMPLE.replace('"preset":"house",', ""),
        EXAMPLE.replace('"preset"', '"a":1,"preset"'),
        EXAMPLE.replace('"preset"', '"preset":"house","preset"'),
        EXAMPLE.replace("{}", '{"rounds":6}'),
        EXAMPLE.replace("{}", '{"double_at":8.0}'),
        EXAMPLE.replace("{}", '{"double_at":NaN}'),
        EXAMPLE.replace("{}", '{"double_at":8,"cup":"tane"}'),
        EXAMPLE.replace("{}", "[]"),
        EXAMPLE.replace("{}", "null"),
        '{"preset":"house","overrides":{},"rounds":6,"version":1}',
        EXAMPLE + " " * 512,
    ],
)
def test_a_string_that_must_be_refused(text):
    with pytest.raises(RulesError):
        parse_rules(text)


@pytest.mark.parametrize(
    ("preset", "overrides", "rounds", "ranked"),
    [
        ("house", {}, 6, True),
        ("house", {}, 12, True),
        ("house", {"double_at": 8}, 6, True),
        ("house", {"double_at": None}, 6, False),
        ("house", {"double_at": 7}, 6, False),
        ("house", {"hanami_tsukimi": False}, 12, False),
        ("house", {"cup": "both"}, 6, False),
        ("nintendo", {}, 12, False),
        ("boardgameland", {"double_at": 8}, 6, False),
    ],
)
def test_only_house_with_doubling_at_eight_is_ranked(preset, overrides, rounds, ranked):
    assert make_rules(preset, overrides, rounds).is_ranked is ranked
