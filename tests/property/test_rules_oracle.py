"""The referee against a second rules engine written from docs/rules.md alone: equal answers, member by member."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

from koikoi_sdk.rules.referee import answer

from tests.property import rules_cases, rules_oracle

SAMPLE = json.loads((Path(__file__).parents[1] / "vectors" / "rules" / "sample.json").read_text())


def referee(request):
    """Ask the referee; why it refused is its own business, where it refused is not."""
    got = json.loads(json.dumps(answer(json.dumps(request))))
    if "at" in got:
        assert set(got.pop("error")) == {"reason", "message"}
    return got


def test_the_oracle_gives_the_published_answers():
    for entry in SAMPLE["yaku"]:
        for preset, expected in entry["expect"].items():
            assert rules_oracle.answer_yaku({**entry, "preset": preset, "overrides": {}}) == expected
    for entry in SAMPLE["rounds"]:
        got = rules_oracle.answer_round({**entry, "actions": [step["action"] for step in entry["steps"]]})
        assert got == {name: entry[name] for name in ("initial", "steps", "result")}
    for entry in SAMPLE["matches"]:
        got = rules_oracle.answer_match(entry)
        assert {name: got[name] for name in ("trajectory", "final")} == {
            name: entry[name] for name in ("trajectory", "final")
        }
        assert [played["result"] for played in got["rounds"]] == [played["result"] for played in entry["rounds"]]


def test_yaku():
    chance = Random("yaku")
    for _ in range(4000):
        request = rules_cases.yaku_request(chance)
        assert referee(request) == rules_oracle.answer_yaku(request), request


def test_rounds():
    chance, ends = Random("rounds"), Counter()
    for _ in range(1600):
        request = rules_cases.round_request(chance)
        expected = rules_oracle.answer_round(request)
        assert referee(request) == expected, request
        result = expected["result"]
        ends[request["preset"], result["kind"] if result else "at" in expected] += 1
    everywhere = {(preset, end) for preset in rules_oracle.PRESETS for end in ("shobu", "exhausted", "redeal", True)}
    teyaku = {(preset, "teyaku") for preset in ("house", "nintendo", "wikipedia_ja")}
    assert everywhere | teyaku | {(preset, False) for preset in rules_oracle.PRESETS} == set(ends)


def test_matches():
    chance, ends = Random("matches"), Counter()
    for _ in range(160):
        request = rules_cases.match_request(chance)
        expected = rules_oracle.answer_match(request)
        assert referee(request) == expected, request
        final = expected["final"]
        ends["stopped" if "at" in expected else (final["reason"], final["draw"]) if final else "unfinished"] += 1
    assert set(ends) == {"stopped", "unfinished", ("bust", False), ("rounds", False), ("rounds", True)}
