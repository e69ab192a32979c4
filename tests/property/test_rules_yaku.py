"""Yaku against an oracle written differently, and the laws they obey in every preset and switch."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from koikoi_sdk.rules import PRESETS, card_name, evaluate, total, variant

SWITCHED = [
    (preset, {"hanami_tsukimi": viewing, "cup": cup})
    for preset, viewing, cup in itertools.product(PRESETS, (True, False), ("tane", "both"))
]
DEFAULT_VIEWING = {"house": 1, "nintendo": 1, "sdin": 0, "boardgameland": 1, "wikipedia_ja": 0, "wikipedia_en": 1}
DEFAULT_CUP = {"house": 0, "nintendo": 1, "sdin": 1, "boardgameland": 0, "wikipedia_ja": 1, "wikipedia_en": 1}
PLAIN_CUP = ("tane", "both")

HANDS = st.frozensets(st.integers(0, 47))
CHOSEN = st.sampled_from([(preset, {}) for preset in PRESETS] + SWITCHED)


def oracle(preset, overrides, numbers):
    """Score by names and by running down the text of docs/rules.md section 6, points as it says them."""
    held = {card_name(number) for number in numbers}
    viewing = overrides.get("hanami_tsukimi", bool(DEFAULT_VIEWING[preset]))
    cup = overrides.get("cup", PLAIN_CUP[DEFAULT_CUP[preset]])
    kinds = {"hikari": 0, "tane": 0, "tanzaku": 0, "kasu": 0}
    for name in held:
        kinds[kind_of(name)] += 1
    increments, voids = preset in ("house", "nintendo"), preset == "nintendo"
    out = {}

    lights = {"sdin": (15, 10, 8, 6)}.get(preset, (10, 8, 7, 5))
    has_rain, count = "11-1" in held, kinds["hikari"]
    if count == 5:
        out["goko"] = lights[0]
    elif count == 4:
        out["ameshiko" if has_rain else "shiko"] = lights[2 if has_rain else 1]
    elif count == 3 and not has_rain:
        out["sanko"] = lights[3]

    if viewing and "09-1" in held:
        for name, light in (("hanami", "03-1"), ("tsukimi", "08-1")):
            if light in held:
                out[name] = 5

    six = 6 if preset == "sdin" else 5
    if all(name in held for name in ("07-1", "10-1", "06-1")):
        out["inoshikacho"] = six + increments * (kinds["tane"] - 3)

    red = sum(name in held for name in ("01-2", "02-2", "03-2")) == 3
    blue = sum(name in held for name in ("06-2", "09-2", "10-2")) == 3
    if red and blue and preset in ("house", "nintendo", "wikipedia_en"):
        out["akatan_aotan"] = 10 + increments * (kinds["tanzaku"] - 6)
    else:
        for name, there in (("akatan", red), ("aotan", blue)):
            if there:
                out[name] = six + increments * (kinds["tanzaku"] - 3)

    if kinds["tane"] >= 5 and not (voids and "inoshikacho" in out):
        out["tane"] = kinds["tane"] - 4
    if kinds["tanzaku"] >= 5 and not (voids and (red or blue)):
        out["tan"] = kinds["tanzaku"] - 4
    plain = kinds["kasu"] + (cup == "both" and "09-1" in held)
    if plain >= 10:
        out["kasu"] = plain - 9
    return list(out.items())


def kind_of(name):
    mm, index = name.split("-")
    if index == "1":
        return "hikari" if mm in ("01", "03", "08", "11", "12") else "tane"
    if index == "2":
        return {"08": "tane", "11": "tane", "12": "kasu"}.get(mm, "tanzaku")
    return "tanzaku" if name == "11-3" else "kasu"


@settings(max_examples=300, deadline=None)
@given(CHOSEN, HANDS)
def test_the_oracle_agrees(chosen, held):
    preset, overrides = chosen
    assert list(evaluate(variant(preset, overrides), held)) == oracle(preset, overrides, held)


@pytest.mark.parametrize(("preset", "overrides"), [(preset, {}) for preset in PRESETS] + SWITCHED)
def test_the_oracle_agrees_on_sets_of_every_size(preset, overrides):
    chance, chosen = random.Random(preset), variant(preset, overrides)
    for size in range(49):
        for _ in range(6):
            held = frozenset(chance.sample(range(48), size))
            assert list(evaluate(chosen, held)) == oracle(preset, overrides, held)


@settings(max_examples=150, deadline=None)
@given(CHOSEN, st.permutations(range(48)), st.integers(0, 48))
def test_the_score_never_depends_on_the_order(chosen, order, size):
    preset, overrides = chosen
    assert evaluate(variant(preset, overrides), order[:size]) == evaluate(
        variant(preset, overrides), sorted(order[:size])
    )


@settings(max_examples=200, deadline=None)
@given(CHOSEN, st.permutations(range(48)))
def test_totals_only_rise_and_a_new_yaku_always_raises_them(chosen, order):
    """What makes `new yaku or the total rose` the same as `the total rose` (section 7)."""
    preset, overrides = chosen
    rules = variant(preset, overrides)
    before = ()
    for size in range(1, 49):
        after = evaluate(rules, order[:size])
        assert total(after) >= total(before)
        if {name for name, _ in after} - {name for name, _ in before}:
            assert total(after) > total(before)
        before = after
