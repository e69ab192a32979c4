"""The tables of docs/rules.md sections 6, 8, 9 and 10, typed in by hand, and the switches."""

from __future__ import annotations

import pytest
from koikoi_sdk.rules import PRESETS, SWITCHES, Reason, RulesError, Scoring, variant
from koikoi_sdk.rules.variants import BothRibbons, KoikoiFactor

R, A = BothRibbons.REPLACES, BothRibbons.ADDS
F = KoikoiFactor
# fmt: off
TABLE = {
    #                house        nintendo     sdin         boardgameland wikipedia_ja wikipedia_en
    "goko":              (10,          10,          15,          10,          10,          10),
    "shiko":             (8,           8,           10,          8,           8,           8),
    "ameshiko":          (7,           7,           8,           7,           7,           7),
    "sanko":             (5,           5,           6,           5,           5,           5),
    "viewing":           (5,           5,           5,           5,           5,           5),
    "hanami_tsukimi":    (True,        True,        False,       True,        False,       True),
    "inoshikacho":       (5,           5,           6,           5,           5,           5),
    "ribbons":           (5,           5,           6,           5,           5,           5),
    "both_ribbons":      (R,           R,           A,           A,           A,           R),
    "combo_increment":   (True,        True,        False,       False,       False,       False),
    "combo_voids_count": (False,       True,        False,       False,       False,       False),
    "cup_is_kasu":       (False,       True,        True,        False,       True,        True),
    "teyaku":            (6,           6,           0,           0,           6,           0),
    "redeal_hand_four":  (False,       False,       False,       True,        False,       False),
    "double_at":         (8,           7,           None,        7,           None,        7),
    "koikoi_factor":     (F.ONE_PLUS_ALL, F.LOSER_DECLARED, F.NONE, F.ANYONE_DECLARED, F.NONE, F.LOSER_DECLARED),
    "one_koikoi_a_round": (False,      True,        False,       False,       False,       False),
    "scoring":           (Scoring.TRANSFER, *[Scoring.SUM] * 5),
    "stake":             (25,          0,           0,           0,           0,           0),
    "exhausted_award":   (0,           0,           0,           0,           0,           1),
    "exhausted_passes_deal": (False,   True,        False,       False,       False,       False),
    "rounds":            (6,           12,          12,          6,           12,          12),
    "rounds_allowed":    ((6, 12),     (12,),       (12,),       (3, 6, 12),  (12,),       (12,)),
}
# fmt: on
NAMES = ["house", "nintendo", "sdin", "boardgameland", "wikipedia_ja", "wikipedia_en"]


def test_the_presets():
    assert list(PRESETS) == NAMES
    assert all(preset.name == name for name, preset in PRESETS.items())


@pytest.mark.parametrize("row", TABLE)
def test_a_row_of_the_tables(row):
    assert tuple(getattr(variant(name), row) for name in NAMES) == TABLE[row]


@pytest.mark.parametrize("preset", NAMES)
@pytest.mark.parametrize(
    ("switch", "value", "row", "wanted"),
    [
        ("hanami_tsukimi", True, "hanami_tsukimi", True),
        ("hanami_tsukimi", False, "hanami_tsukimi", False),
        ("double_at", None, "double_at", None),
        ("double_at", 1, "double_at", 1),
        ("double_at", 255, "double_at", 255),
        ("cup", "tane", "cup_is_kasu", False),
        ("cup", "both", "cup_is_kasu", True),
        ("rounds", 1, "rounds", 1),
        ("rounds", 255, "rounds", 255),
    ],
)
def test_a_switch_changes_one_thing(preset, switch, value, row, wanted):
    changed, plain = variant(preset, {switch: value}), variant(preset)
    assert getattr(changed, row) == wanted
    assert all(getattr(changed, other) == getattr(plain, other) for other in TABLE if other != row)


def test_every_switch_is_tested_above():
    assert set(SWITCHES) == {"hanami_tsukimi", "double_at", "cup", "rounds"}


@pytest.mark.parametrize("preset", [None, 0, "", "House", "house ", ["house"], {"house": 1}])
def test_an_unknown_preset(preset):
    with pytest.raises(RulesError, match="wikipedia_en") as caught:
        variant(preset)
    assert (caught.value.reason, caught.value.field) == (Reason.BAD_PRESET, "preset")


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        (None, "overrides"),
        ([], "overrides"),
        ("rounds", "overrides"),
        ({"koikoi_limit": 1}, "overrides"),
        ({1: 1}, "overrides"),
        ({"hanami_tsukimi": 1}, "overrides.hanami_tsukimi"),
        ({"hanami_tsukimi": None}, "overrides.hanami_tsukimi"),
        ({"double_at": True}, "overrides.double_at"),
        ({"double_at": 0}, "overrides.double_at"),
        ({"double_at": 256}, "overrides.double_at"),
        ({"double_at": 8.0}, "overrides.double_at"),
        ({"double_at": "8"}, "overrides.double_at"),
        ({"cup": "kasu"}, "overrides.cup"),
        ({"cup": True}, "overrides.cup"),
        ({"cup": ["both"]}, "overrides.cup"),
        ({"rounds": 0}, "overrides.rounds"),
        ({"rounds": 256}, "overrides.rounds"),
        ({"rounds": False}, "overrides.rounds"),
        ({"rounds": None}, "overrides.rounds"),
    ],
)
def test_a_bad_switch(overrides, field):
    with pytest.raises(RulesError) as caught:
        variant("house", overrides)
    assert (caught.value.reason, caught.value.field) == (Reason.BAD_SWITCH, field)
    assert caught.value.limit in str(caught.value)
