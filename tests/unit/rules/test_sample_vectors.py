"""The sample of docs/rules.md's shapes, replayed through the referee: equal as JSON values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from koikoi_sdk.rules.referee import answer

SAMPLE = json.loads((Path(__file__).parents[2] / "vectors" / "rules" / "sample.json").read_text())
YAKU = [(entry, preset) for entry in SAMPLE["yaku"] for preset in entry["expect"]]


def ask(**request: object) -> object:
    return json.loads(json.dumps(answer(json.dumps(request))))


@pytest.mark.parametrize(("entry", "preset"), YAKU, ids=[f"{e['id']}-{p}" for e, p in YAKU])
def test_yaku(entry, preset):
    got = ask(op="yaku", preset=preset, overrides={}, captured=entry["captured"])
    assert got == entry["expect"][preset]


@pytest.mark.parametrize("entry", SAMPLE["rounds"], ids=lambda entry: entry["id"])
def test_rounds(entry):
    got = ask(op="round", actions=[step["action"] for step in entry["steps"]], **entry)
    assert got == {name: entry[name] for name in ("initial", "steps", "result")}


@pytest.mark.parametrize("entry", SAMPLE["matches"], ids=lambda entry: entry["id"])
def test_matches(entry):
    got = ask(op="match", **entry)
    assert got == {
        "rounds": [{name: given[name] for name in ("result", "points_after")} for given in entry["rounds"]],
        "trajectory": entry["trajectory"],
        "final": entry["final"],
    }
