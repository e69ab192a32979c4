"""docs/rules.md sections 4 and 6: every number and example of the text, typed in by hand."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import PRESETS, evaluate, field_redeal, hand_redeal, teyaku, total, variant
from koikoi_sdk.rules.cards import ALL, TANE, TANZAKU, cards

LIGHTS = "01-1 03-1 08-1 12-1"
BOARS = "06-1 07-1 10-1"
RED, BLUE, PLAIN = "01-2 02-2 03-2", "06-2 09-2 10-2", "04-2 05-2 07-2 11-3"
KASU_9 = "01-3 01-4 02-3 02-4 03-3 03-4 04-3 04-4 05-3"
HOUSE = {
    f"{LIGHTS} 11-1": "goko 10",
    LIGHTS: "shiko 8",
    "01-1 03-1 08-1 11-1": "ameshiko 7",
    "01-1 03-1 08-1": "sanko 5",
    "01-1 03-1 12-1": "sanko 5",
    "01-1 03-1 11-1": "",
    "11-1 08-1 12-1": "",
    "01-1 03-1": "",
    "03-1 09-1": "hanami 5",
    "08-1 09-1": "tsukimi 5",
    "03-1 08-1 09-1": "hanami 5, tsukimi 5",
    "03-1 08-1 12-1 09-1": "sanko 5, hanami 5, tsukimi 5",
    "08-2 09-1": "",
    BOARS: "inoshikacho 5",
    f"{BOARS} 09-1": "inoshikacho 6",
    f"{BOARS} 09-1 02-1": "inoshikacho 7, tane 1",
    "06-1 07-1 02-1 04-1": "",
    "06-1 07-1 02-1 04-1 09-1": "tane 1",
    "06-1 07-1 02-1 04-1 09-1 11-2": "tane 2",
    RED: "akatan 5",
    BLUE: "aotan 5",
    f"{RED} 04-2": "akatan 6",
    f"{BLUE} 04-2 05-2": "aotan 7, tan 1",
    f"{RED} {BLUE}": "akatan_aotan 10, tan 2",
    f"{RED} {BLUE} 11-3": "akatan_aotan 11, tan 3",
    f"{RED} {BLUE} {PLAIN}": "akatan_aotan 14, tan 6",
    PLAIN: "",
    f"{PLAIN} 01-2": "tan 1",
    f"{PLAIN} 01-2 02-2": "tan 2",
    KASU_9: "",
    f"{KASU_9} 11-4": "kasu 1",
    f"{KASU_9} 12-2": "kasu 1",
    f"{KASU_9} 12-2 12-3 12-4": "kasu 3",
    f"{KASU_9} 09-1": "",
    "": "",
}
OTHERS = [
    ("nintendo", f"{BOARS} 09-1 02-1", "inoshikacho 7"),
    ("nintendo", "06-1 07-1 02-1 04-1 09-1", "tane 1"),
    ("nintendo", f"{RED} 04-2 05-2", "akatan 7"),
    ("nintendo", f"{BLUE} 04-2 05-2", "aotan 7"),
    ("nintendo", f"{RED} {BLUE} 04-2", "akatan_aotan 11"),
    ("nintendo", f"{BOARS} 02-1 04-1 {PLAIN} 01-2", "inoshikacho 7, tan 1"),
    ("nintendo", f"{RED} 04-2 05-2 02-1 04-1 05-1 08-2 11-2", "akatan 7, tane 1"),
    ("nintendo", f"{KASU_9} 09-1", "kasu 1"),
    ("sdin", f"{LIGHTS} 11-1", "goko 15"),
    ("sdin", LIGHTS, "shiko 10"),
    ("sdin", "01-1 03-1 08-1 11-1", "ameshiko 8"),
    ("sdin", "01-1 03-1 08-1", "sanko 6"),
    ("sdin", "03-1 08-1 09-1", ""),
    ("sdin", f"{BOARS} 02-1 04-1", "inoshikacho 6, tane 1"),
    ("sdin", f"{RED} {BLUE}", "akatan 6, aotan 6, tan 2"),
    ("sdin", f"{KASU_9} 09-1", "kasu 1"),
    ("boardgameland", "03-1 08-1 09-1", "hanami 5, tsukimi 5"),
    ("boardgameland", f"{BOARS} 02-1 04-1", "inoshikacho 5, tane 1"),
    ("boardgameland", f"{RED} {BLUE} {PLAIN}", "akatan 5, aotan 5, tan 6"),
    ("boardgameland", f"{KASU_9} 09-1", ""),
    ("wikipedia_ja", "03-1 08-1 09-1", ""),
    ("wikipedia_ja", f"{RED} {BLUE}", "akatan 5, aotan 5, tan 2"),
    ("wikipedia_ja", f"{KASU_9} 09-1", "kasu 1"),
    ("wikipedia_en", "03-1 08-1 09-1", "hanami 5, tsukimi 5"),
    ("wikipedia_en", f"{RED} 04-2 05-2", "akatan 5, tan 1"),
    ("wikipedia_en", f"{RED} {BLUE} 04-2", "akatan_aotan 10, tan 3"),
    ("wikipedia_en", f"{KASU_9} 09-1", "kasu 1"),
]


def written(yaku):
    return ", ".join(f"{name} {points}" for name, points in yaku)


@pytest.mark.parametrize(("held", "wanted"), HOUSE.items())
def test_house(held, wanted):
    assert written(evaluate(variant("house"), cards(held))) == wanted


@pytest.mark.parametrize(("preset", "held", "wanted"), OTHERS)
def test_other_presets(preset, held, wanted):
    assert written(evaluate(variant(preset), cards(held))) == wanted


@pytest.mark.parametrize(
    ("preset", "overrides", "held", "wanted"),
    [
        ("house", {"hanami_tsukimi": False}, "03-1 08-1 09-1", ""),
        ("sdin", {"hanami_tsukimi": True}, "03-1 08-1 09-1", "hanami 5, tsukimi 5"),
        ("wikipedia_ja", {"hanami_tsukimi": True}, "03-1 09-1", "hanami 5"),
        ("house", {"cup": "both"}, f"{KASU_9} 09-1", "kasu 1"),
        ("nintendo", {"cup": "tane"}, f"{KASU_9} 09-1", ""),
        ("nintendo", {"cup": "tane"}, "06-1 07-1 02-1 04-1 09-1", "tane 1"),
        ("boardgameland", {"cup": "both"}, f"{KASU_9} 09-1 02-1 04-1 05-1 06-1", "tane 1, kasu 1"),
    ],
)
def test_switches(preset, overrides, held, wanted):
    assert written(evaluate(variant(preset, overrides), cards(held))) == wanted


@pytest.mark.parametrize("preset", PRESETS)
def test_counts_of_everything(preset):
    chosen = variant(preset)
    counted = dict(evaluate(chosen, ALL))
    assert counted["kasu"] == 15 + chosen.cup_is_kasu
    assert dict(evaluate(chosen, TANE)).get("tane", 5) == 5
    assert dict(evaluate(chosen, TANZAKU)).get("tan", 6) == 6
    assert evaluate(chosen, list(ALL)) == evaluate(chosen, sorted(ALL, reverse=True))


def test_the_total_of_everything_in_house():
    assert total(evaluate(variant("house"), ALL)) == 71


HANDS = [
    ("01-1 01-2 01-3 01-4 02-1 03-1 04-1 05-1", "teshi"),
    ("01-1 01-2 01-3 01-4 02-1 02-2 03-1 03-2", "teshi"),
    ("01-1 01-2 01-3 01-4 02-1 02-2 02-3 02-4", "teshi"),
    ("01-1 01-2 02-1 02-2 03-1 03-2 04-1 04-2", "kuttsuki"),
    ("01-1 01-2 01-3 02-1 02-2 03-1 03-2 04-1", None),
    ("01-1 01-2 01-3 02-1 02-2 02-3 03-1 03-2", None),
    ("01-1 01-2 02-1 02-2 03-1 03-2 04-1 05-1", None),
]


@pytest.mark.parametrize(("hand", "name"), HANDS)
@pytest.mark.parametrize("preset", PRESETS)
def test_hand_yaku(preset, hand, name):
    has_any = preset in ("house", "nintendo", "wikipedia_ja")
    assert teyaku(variant(preset), cards(hand)) == (name if has_any else None)
    assert hand_redeal(variant(preset), cards(hand)) is (preset == "boardgameland" and name == "teshi")


def test_field_that_voids_the_deal():
    assert field_redeal(cards("01-1 01-2 01-3 01-4 02-1 03-1 04-1 05-1"))
    assert not field_redeal(cards("01-1 01-2 01-3 02-4 02-1 02-3 04-1 05-1"))
