"""`koikoi referee`: one answer for each line, whatever the line holds."""

from __future__ import annotations

import io
import json
import random
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from koikoi_sdk.rules import PRESETS, ResultKind, deal, referee, variant
from koikoi_sdk.rules.cards import NAMES, card_number
from koikoi_sdk.rules.notation import action_json
from koikoi_sdk.rules.referee import MAX_LINE, answer, main

SAMPLE = json.loads((Path(__file__).parents[2] / "vectors" / "rules" / "sample.json").read_text())
YAKU = {"op": "yaku", "preset": "house", "overrides": {}, "captured": ["03-1", "09-1"]}
HANAMI = {"points": 5, "yaku": [["hanami", 5]]}
PLAYED = next(entry for entry in SAMPLE["rounds"] if entry["steps"])
ROUND = {
    "op": "round",
    **{name: PLAYED[name] for name in ("preset", "overrides", "deck", "dealer", "points_before")},
    "actions": [step["action"] for step in PLAYED["steps"]],
}
VOID = next(entry for entry in SAMPLE["rounds"] if entry["result"]["kind"] == "redeal")
MATCH = {"op": "match", **SAMPLE["matches"][0]}


def ask(request, **changes):
    return json.loads(json.dumps(answer(json.dumps({**request, **changes}))))


def reason(got):
    assert set(got) == {"error"}
    assert set(got["error"]) == {"reason", "message"}
    return got["error"]["reason"]


def run(data):
    out = io.StringIO()
    main(data, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


BAD_LINES = {
    "BAD_JSON": [
        b"", b"\r", b" ", b"{", b"null", b"1", b'"yaku"', b"[]", b"[" * 100_000, b'{"a":' * 100_000,
        b"{" + b'"op":"yaku",' * 2 + b'"a":1}', b'{"op":NaN}', b'{"op":-Infinity}', b'{"op":' + b"9" * 5000 + b"}",
        b'{"op":"\xff"}', b"\xff\xfe", b"\xef\xbb\xbf{}", b"\x00", '{"op":"yaku"}'.encode("utf-16"),
        b'{"op":"yaku","preset":"house"} x', b"{'op':'yaku'}", b'{"op":"yaku","preset":"house"}',
    ],
    "UNKNOWN_OP": [
        b"{}", b'{"op":null}', b'{"op":"Yaku"}', b'{"op":["yaku"]}', b'{"op":{}}', b'{"op":1e999}', b'{"op":"\\ud800"}',
    ],
    "TOO_LONG": [b'{"op":"' + b"x" * (MAX_LINE - 7) + b'"}', b" " * (3 * MAX_LINE + 5)],
}  # fmt: skip
LINES = [(wanted, line) for wanted, lines in BAD_LINES.items() for line in lines]


@pytest.mark.parametrize(("wanted", "line"), LINES, ids=[f"{r}{i}" for i, (r, _) in enumerate(LINES)])
def test_a_bad_line_is_answered_and_so_is_the_next(wanted, line):
    got = run(io.BytesIO(line + b"\n" + json.dumps(YAKU).encode() + b"\n"))
    assert [reason(got[0]), got[1:]] == [wanted, [HANAMI]]


def test_a_last_line_without_an_end_is_answered():
    assert run(io.BytesIO(json.dumps(YAKU).encode())) == [HANAMI]
    assert [reason(got) for got in run(io.BytesIO(b"x" * (MAX_LINE + 1)))] == ["TOO_LONG"]


def test_a_line_of_exactly_the_limit_is_read():
    line = json.dumps(YAKU).encode()
    assert run(io.BytesIO(line + b" " * (MAX_LINE - len(line) - 1) + b"\n")) == [HANAMI]


def test_text_streams_with_and_without_bytes_below():
    text = json.dumps(YAKU) + "\r\n" + '{"op":"\ud800"}\n' + "x" * (2 * MAX_LINE) + "\n" + json.dumps(YAKU) + "\n"
    got = run(io.StringIO(text, newline=""))
    assert [got[0], reason(got[1]), reason(got[2]), got[3]] == [HANAMI, "UNKNOWN_OP", "TOO_LONG", HANAMI]
    wrapped = io.TextIOWrapper(io.BytesIO(b"\xff\n" + json.dumps(YAKU).encode()), encoding="ascii")
    assert reason(run(wrapped)[0]) == "BAD_JSON"


def test_no_input_no_output():
    assert run(io.BytesIO(b"")) == []


class _Broken(io.StringIO):
    def flush(self):
        raise BrokenPipeError


def test_it_ends_quietly_when_nobody_reads():
    main(io.BytesIO(b"{}\n{}\n"), _Broken())


class _Counting(io.StringIO):
    flushed = 0

    def flush(self):
        self.flushed += 1


def test_each_line_is_flushed():
    out = _Counting()
    main(io.BytesIO(b"{}\n" * 3), out)
    assert out.flushed == 3


def test_a_fault_of_our_own_is_an_answer_too():
    assert reason(answer('{"op":"x"}', {"x": lambda request: {"x": 1 // len(request["op"][1:])}})) == "INTERNAL"


def test_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "koikoi_sdk.rules.referee"],
        input=b"\xff\n" + json.dumps(YAKU).encode() + b"\n",
        capture_output=True,
        check=True,
        timeout=60,
        cwd=Path(__file__).parents[3] / "sdk" / "python",
    )
    lines = done.stdout.splitlines()
    assert [reason(json.loads(lines[0])), json.loads(lines[1])] == ["BAD_JSON", HANAMI]
    assert done.stderr == b""


def test_as_a_script(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(YAKU)))
    runpy.run_path(referee.__file__, run_name="__main__")
    assert json.loads(capsys.readouterr().out) == HANAMI


def test_members_that_are_not_asked_for_are_ignored():
    assert ask(YAKU, id="y1", expect={}, note=[None]) == HANAMI


def test_overrides_may_be_left_out():
    assert ask({name: YAKU[name] for name in ("op", "preset", "captured")}) == HANAMI
    assert ask(YAKU, overrides={"hanami_tsukimi": False}) == {"points": 0, "yaku": []}


BAD = [
    (YAKU, {"preset": "x"}, "BAD_PRESET"),
    (YAKU, {"preset": ["house"]}, "BAD_PRESET"),
    (YAKU, {"overrides": None}, "BAD_SWITCH"),
    (YAKU, {"overrides": {"x": 1}}, "BAD_SWITCH"),
    (YAKU, {"captured": None}, "BAD_CARD"),
    (YAKU, {"captured": "03-1"}, "BAD_CARD"),
    (YAKU, {"captured": {"03-1": 1}}, "BAD_CARD"),
    (YAKU, {"captured": [3]}, "BAD_CARD"),
    (YAKU, {"captured": [["03-1"]]}, "BAD_CARD"),
    (YAKU, {"captured": [{}]}, "BAD_CARD"),
    (YAKU, {"captured": ["03-1", "03-1"]}, "BAD_CARD"),
    (YAKU, {"captured": ["03-5"]}, "BAD_CARD"),
    (YAKU, {"captured": [*NAMES, "03-1"]}, "BAD_CARD"),
    (ROUND, {"deck": NAMES[:47]}, "BAD_DECK"),
    (ROUND, {"deck": [*NAMES[:47], NAMES[0]]}, "BAD_CARD"),
    (ROUND, {"deck": {}}, "BAD_CARD"),
    (ROUND, {"dealer": 2}, "BAD_JSON"),
    (ROUND, {"dealer": True}, "BAD_JSON"),
    (ROUND, {"dealer": 0.0}, "BAD_JSON"),
    (ROUND, {"dealer": None}, "BAD_JSON"),
    (ROUND, {"points_before": 25}, "BAD_JSON"),
    (ROUND, {"points_before": [25]}, "BAD_JSON"),
    (ROUND, {"points_before": [25, 25, 0]}, "BAD_JSON"),
    (ROUND, {"points_before": [25, True]}, "BAD_JSON"),
    (ROUND, {"points_before": [-1, 25]}, "BAD_JSON"),
    (ROUND, {"points_before": [25, 65536]}, "BAD_JSON"),
    (ROUND, {"points_before": [25.0, 25]}, "BAD_JSON"),
    (ROUND, {"actions": None}, "BAD_JSON"),
    (ROUND, {"actions": {}}, "BAD_JSON"),
    (MATCH, {"first_dealer": "0"}, "BAD_JSON"),
    (MATCH, {"rounds": None}, "BAD_JSON"),
    (MATCH, {"rounds_total": 0}, "BAD_RULES"),
    (MATCH, {"rounds_total": 256}, "BAD_RULES"),
    (MATCH, {"rounds_total": True}, "BAD_RULES"),
    (MATCH, {"rounds_total": None}, "BAD_RULES"),
]


@pytest.mark.parametrize(("request_", "change", "wanted"), BAD)
def test_a_bad_member(request_, change, wanted):
    assert reason(ask(request_, **change)) == wanted


@pytest.mark.parametrize("request_", [YAKU, ROUND, MATCH], ids=["yaku", "round", "match"])
def test_a_missing_member(request_):
    optional = {"overrides", "rounds_total", "id", "trajectory", "final", "op"}
    for name in request_.keys() - optional:
        assert name in reason_text({key: value for key, value in request_.items() if key != name})


def reason_text(request):
    return ask(request)["error"]["message"]


BAD_ACTIONS = [
    None, 1, "shobu", [], {}, ["pass"], ["shobu", None], ["play"], ["play", "01-1"], ["play", 1, None],
    ["play", "01-1", 2], ["play", "01-1", None, None], ["play", ["01-1"], None], ["take"], ["take", None],
    ["take", {}], ["take", "01-1"], [["shobu"]], ["koikoi"], ["shobu"], ["play", "12-4", None],
]  # fmt: skip


@pytest.mark.parametrize("at", [0, 2, len(ROUND["actions"])])
@pytest.mark.parametrize("action", BAD_ACTIONS)
def test_an_illegal_action_stops_the_round(action, at):
    whole = ask(ROUND)
    got = ask(ROUND, actions=[*ROUND["actions"][:at], action, *ROUND["actions"][at:]])
    assert set(got) == {"initial", "steps", "result", "error", "at"}
    assert (got["at"], got["steps"], got["initial"]) == (at, whole["steps"][:at], whole["initial"])
    assert got["result"] == (whole["result"] if at == len(ROUND["actions"]) else None)
    assert set(got["error"]) == {"reason", "message"}


def test_a_round_that_is_not_over_has_no_result():
    got = ask(ROUND, actions=ROUND["actions"][:3])
    assert set(got) == {"initial", "steps", "result"}
    assert (len(got["steps"]), got["result"]) == (3, None)


def test_a_match_that_is_not_over_has_no_final():
    got = ask(MATCH, rounds=MATCH["rounds"][:2])
    assert (len(got["rounds"]), len(got["trajectory"]), got["final"]) == (2, 3, None)
    assert ask(MATCH, rounds=[]) == {"rounds": [], "trajectory": [[25, 25]], "final": None}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, "BAD_JSON"),
        ({"decks": []}, "BAD_JSON"),
        ({"actions": []}, "BAD_JSON"),
        ({"decks": [], "actions": []}, "BAD_DECK"),
        ({"decks": [None], "actions": []}, "BAD_CARD"),
        ({"decks": [list(NAMES)[:47]], "actions": []}, "BAD_DECK"),
        ({"decks": [ROUND["deck"], ROUND["deck"]], "actions": []}, "BAD_DECK"),
        ({"decks": [VOID["deck"]], "actions": []}, "ROUND_UNFINISHED"),
        ({"decks": [VOID["deck"]], "actions": [["shobu"]]}, "ROUND_OVER"),
        ({"decks": [VOID["deck"], ROUND["deck"]], "actions": []}, "ROUND_UNFINISHED"),
        ({"decks": [ROUND["deck"]], "actions": [["koikoi"]]}, "ILLEGAL_ACTION"),
    ],
)
def test_a_round_that_stops_a_match(given, wanted):
    rounds = MATCH["rounds"]
    got = ask(MATCH, rounds=[rounds[0], given, *rounds[2:]])
    assert set(got) == {"rounds", "trajectory", "final", "error", "at"}
    assert (got["error"]["reason"], got["at"], len(got["rounds"]), got["final"]) == (wanted, 1, 1, None)
    assert got["error"]["message"].startswith("rounds[1].")


def test_a_round_after_the_end_of_a_match():
    rounds = MATCH["rounds"]
    got = ask(MATCH, rounds_total=1)
    assert (got["error"]["reason"], got["at"], got["final"]["rounds_played"]) == ("MATCH_OVER", 1, 1)
    assert ask(MATCH, rounds_total=1, rounds=rounds[:1])["final"] == {
        "points": [26, 24],
        "winner": 0,
        "draw": False,
        "reason": "rounds",
        "rounds_played": 1,
    }


def test_the_length_of_a_match_is_rounds_total_then_the_switch_then_the_preset():
    short = {name: value for name, value in MATCH.items() if name != "rounds_total"} | {"rounds": MATCH["rounds"][:1]}
    assert ask(short)["final"] is None
    assert ask(short, overrides={"rounds": 1})["final"]["rounds_played"] == 1
    assert ask(short, overrides={"rounds": 1}, rounds_total=2)["final"] is None


def played(preset, deck, dealer, points, choose):
    state = deal(variant(preset), [card_number(name) for name in deck], dealer, points)
    actions = []
    while legal := state.legal():
        action = choose(legal)
        actions.append(action_json(action))
        state, _ = state.act(action)
    return actions, state.board.result


def test_a_bust_ends_a_match():
    chance, rounds, points, dealer = random.Random(7), [], (25, 25), 1
    while all(points):
        deck = chance.sample(NAMES, 48)
        actions, result = played("house", deck, dealer, points, chance.choice)
        if result.kind is not ResultKind.REDEAL:
            rounds.append({"decks": [deck], "actions": actions})
        points, dealer = result.points_after, result.next_dealer
    got = ask(MATCH, first_dealer=1, rounds=rounds, rounds_total=255)
    assert got["final"] == {
        "points": list(points),
        "winner": int(points[0] == 0),
        "draw": False,
        "reason": "bust",
        "rounds_played": len(rounds),
    }
    assert got["trajectory"] == [[25, 25], *[entry["points_after"] for entry in got["rounds"]]]


@pytest.mark.parametrize("preset", PRESETS)
def test_an_exhausted_round_of_each_preset(preset):
    chance = random.Random(11)
    kind = None
    while kind is not ResultKind.EXHAUSTED:
        deck = chance.sample(NAMES, 48)
        actions, result = played(preset, deck, 0, (3, 4), lambda legal: legal[-1])
        kind = result.kind
    award = int(preset == "wikipedia_en")
    assert ask(ROUND, preset=preset, deck=deck, dealer=0, points_before=[3, 4], actions=actions)["result"] == {
        "kind": "exhausted",
        "winner": 0 if award else None,
        "yaku": [],
        "koikoi": list(result.koikoi),
        "base": 0,
        "threshold_mult": 1,
        "koikoi_mult": 1,
        "score": award,
        "payment": award,
        "delta": [award, 0],
        "points_after": [3 + award, 4],
        "next_dealer": int(preset == "nintendo"),
    }


def test_a_drawn_match():
    chance = random.Random(13)
    kind = None
    while kind is not ResultKind.EXHAUSTED:
        deck = chance.sample(NAMES, 48)
        actions, result = played("house", deck, 0, (25, 25), lambda legal: legal[-1])
        kind = result.kind
    rounds = [{"decks": [VOID["deck"], VOID["deck"], deck], "actions": actions}]
    got = ask(MATCH, rounds=rounds, rounds_total=1)
    assert got["final"] == {"points": [25, 25], "winner": None, "draw": True, "reason": "rounds", "rounds_played": 1}
    place = {name: got["rounds"][0]["result"][name] for name in ("round_no", "dealer", "redeals")}
    assert place == {"round_no": 1, "dealer": 0, "redeals": 2}


def test_a_deal_voided_by_a_hand_and_a_hand_yaku_of_both():
    chance = random.Random(17)
    first = [f"{month:02d}-{index}" for month in (1, 2) for index in range(1, 5)]
    field = [f"{month:02d}-1" for month in range(3, 11)]
    second = [f"{month:02d}-{index}" for month in (3, 4, 11, 12) for index in (2, 3)]
    rest = sorted(set(NAMES) - {*first, *field, *second})
    deck = [*first, *field, *second, *chance.sample(rest, len(rest))]
    void = ask(ROUND, preset="boardgameland", deck=deck, actions=[])["result"]
    assert (void["kind"], void["why"], "teyaku" in void) == ("redeal", ["hand"], False)
    both = ask(ROUND, preset="house", deck=deck, dealer=1, actions=[])["result"]
    assert (both["yaku"], both["teyaku"], both["winner"]) == ([["kuttsuki", 6]], ["teshi", "kuttsuki"], 1)
