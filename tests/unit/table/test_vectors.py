"""Whole matches as vectors: the published ones hold, and no change of one goes unnoticed."""

import copy
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from koikoi_sdk import cli
from koikoi_sdk.poker import DeviceKey, verify
from koikoi_sdk.poker.vectors import MalformedVectorError, check_file
from koikoi_sdk.table import parse_contract
from koikoi_sdk.table.vectors import check_match, record

from tests.vectors.matches.generate import MATCHES, SEEDS, observe

FOLDER = Path(__file__).parents[2] / "vectors/matches"
Vector = dict[str, Any]


@cache
def text_of(name: str) -> str:
    return (FOLDER / f"{name}.json").read_text()


def published(name: str) -> Vector:
    vector: Vector = json.loads(text_of(name))
    return vector


def kinds_of(vector: Vector) -> list[str]:
    return [message["kind"] for message in vector["messages"]]


@cache
def _shortest() -> str:
    whole = published("resign")
    return json.dumps(record({**whole, "choices": {"2": "resign"}}), indent=1, separators=(",", ":"))


def shortest() -> Vector:
    """A match given up at once: four messages, so that it is replayed in no time."""
    vector: Vector = json.loads(_shortest())
    return vector


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *paths: Path) -> tuple[int, list[str]]:
    monkeypatch.setattr(sys, "argv", ["koikoi", "vectors", *map(str, paths)])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    return int(exit_.value.code or 0), capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("name", MATCHES)
def test_the_published_matches_hold(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, capsys, FOLDER / f"{name}.json") == (0, ["1 passed, 0 failed"])


@pytest.mark.parametrize("name", ["hand_yaku", "bust", "resign"])
def test_the_second_reading_of_the_document_comes_to_the_same_bytes(name: str) -> None:
    vector = published(name)
    assert observe(vector).hex() == vector["statement"]


@pytest.mark.parametrize("name", MATCHES)
def test_whoever_has_the_contract_can_check_the_signatures(name: str) -> None:
    vector = published(name)
    contract, statement = parse_contract(vector["contract"].encode()), bytes.fromhex(vector["statement"])
    assert contract.keys == tuple(DeviceKey(seed).public for seed in SEEDS)
    for key, signature in zip(contract.keys, vector["signatures"], strict=True):
        assert verify(key, bytes.fromhex(signature), "match-result", statement)


def test_each_match_shows_what_it_is_named_for() -> None:
    vectors = {name: published(name) for name in MATCHES}
    endings = {name: bytes.fromhex(vector["statement"])[65] for name, vector in vectors.items()}
    assert endings == {"redeal": 2, "hand_yaku": 2, "exhausted": 0, "bust": 1, "resign": 2}
    results = {name: [result[:2] for result in vector["rounds"]] for name, vector in vectors.items()}
    assert results == {
        "redeal": ["00"],
        "hand_yaku": ["02", "02"],
        "exhausted": ["01", "00", "00"],
        "bust": ["00"],
        "resign": [],
    }
    void = [message["payload"] for message in vectors["redeal"]["messages"] if message["kind"] == "S4"]
    assert [(payload[:2], len(payload)) for payload in void] == [("01", 2), ("01", 146), ("00", 2)]
    claims = [len(message.get("payload", "")) for message in vectors["hand_yaku"]["messages"]]
    assert claims.count(2 * 464) == claims.count(2 * 73) == 1  # one claim in S3, one in S4
    assert kinds_of(vectors["resign"])[-3:] == ["T1", "RESIGN", "RESULT_SIGN"]
    for name in MATCHES:
        assert len(text_of(name)) < 1_000_000


def change(text: bytes, at: int, by: int) -> bytes:
    return text[:at] + bytes([text[at] ^ by]) + text[at + 1 :]


@pytest.mark.parametrize("by", [1, 32])
def test_no_changed_byte_goes_unnoticed(by: int, tmp_path: Path) -> None:
    text, path = _shortest().encode(), tmp_path / "changed.json"
    path.write_bytes(text)
    others = {"messages": check_match}
    assert list(check_file(str(path), others)) == [""]
    for at in range(by, len(text), 31):
        path.write_bytes(change(text, at, by))
        (failure,) = check_file(str(path), others)
        assert failure, text[at - 20 : at + 20]


def flip(text: str, at: int = -1) -> str:
    return text[:at] + ("1" if text[at] == "0" else "0") + text[len(text) if at == -1 else at + 1 :]


def set_message(number: int, name: str, value: Any) -> Callable[[Vector], None]:
    return lambda vector: vector["messages"][number].update({name: value(vector["messages"][number].get(name))})


def set_random(seat: int, use: str, value: str) -> Callable[[Vector], None]:
    return lambda vector: vector["random"][seat].update({use: value})


def set_choice(number: int, value: Any) -> Callable[[Vector], None]:
    return lambda vector: vector["choices"].update({str(number): value})


def dealer_of(vector: Vector) -> int:
    return next(int(message["seat"]) for message in vector["messages"] if message["kind"] == "S1")


def repeat_seed(vector: Vector) -> None:
    """Both devices would have one key, which the other refuses in S1."""
    dealer = dealer_of(vector)
    vector["random"][1 - dealer]["seed/5/0"] = vector["random"][dealer]["seed/4/0"]


DIFFERENCES: list[tuple[Callable[[Vector], None], str]] = [
    (set_message(9, "envelope", flip), "message 9 (T2) differs in envelope"),
    (set_message(5, "payload", flip), "message 5 (S2) differs in payload"),
    (set_choice(14, {"card": 36, "capture": 38}), "message 14 (T1) differs in envelope, payload, signature"),
    (set_choice(14, {"card": 36, "capture": None}), "choices has no legal choice for message 14"),
    (repeat_seed, "message 4 is one that its receiver refuses"),
]


@pytest.mark.parametrize(("alter", "failure"), DIFFERENCES, ids=range(len(DIFFERENCES)))
def test_the_first_message_that_differs_is_named(alter: Callable[[Vector], None], failure: str) -> None:
    assert failure in told(published("resign"), alter)


def told(vector: Vector, alter: Callable[[Vector], None]) -> str:
    alter(vector)
    try:
        return check_match(vector)
    except MalformedVectorError as error:
        return str(error)


def put(name: str, value: Any) -> Callable[[Vector], None]:
    return lambda vector: vector.update({name: value(vector.get(name)) if callable(value) else value})


SHORT: list[tuple[Callable[[Vector], None], str]] = [
    (lambda vector: None, ""),
    (put("digest", flip), "differs in digest"),
    (put("rounds", ["00" * 10]), "differs in rounds"),
    (put("name", None), "differs in name"),
    (lambda vector: vector.pop("session_id"), "differs in session_id"),
    (put("signatures", lambda value: value[::-1]), "differs in signatures"),
    (set_random(0, "fresh/9/0", "00" * 32), "differs in random"),
    (set_choice(9, "resign"), "differs in choices"),
    (set_message(0, "n", lambda n: 0.0), "message 0 (HELLO) differs in n"),
    (set_message(1, "n", lambda n: True), "message 1 (HELLO) differs in n"),
    (set_message(0, "note", lambda n: ""), "message 0 (HELLO) differs in note"),
    (lambda vector: vector["messages"].pop(), "message 3 is missing"),
    (lambda vector: vector["messages"].append({}), "message 4 is one too many"),
    (put("messages", [7]), "message 0 (HELLO) differs in shape"),
    (set_choice(1, "resign"), "differs in choices"),
    (put("choices", {"2": "leave"}), "member random has no fitting value"),
    (put("contract", lambda text: text.replace("Aoi", "Ao")), "message 0 (HELLO) differs in envelope"),
    (put("contract", "{}"), "members contract and devices: rules"),
    (put("contract", 5), "member contract is missing or misshapen"),
    (put("contract", "\ud800"), "member contract is missing or misshapen"),
    (lambda vector: vector.pop("devices"), "member devices is missing or misshapen"),
    (put("devices", lambda seeds: seeds[::-1]), "devices is not in the order of the seats"),
    (put("devices", lambda seeds: [seeds[0], "00" * 32]), "members contract and devices: seats"),
    (put("devices", lambda seeds: [seeds[0], "00" * 31]), "member devices is missing or misshapen"),
    (put("devices", lambda seeds: seeds[:1]), "member devices is missing or misshapen"),
    (put("devices", "".join), "member devices is missing or misshapen"),
    (put("random", [{}]), "member random is missing or misshapen"),
    (put("random", [{}, []]), "member random is missing or misshapen"),
    (put("random", [{}, {"hello/1/0": 7}]), "member random is missing or misshapen"),
    (put("random", [{}, {}]), "member random has no fitting value x25519/0/0 for seat"),
    (put("choices", []), "member choices is missing or misshapen"),
    (put("messages", {}), "member messages is missing or misshapen"),
]


@pytest.mark.parametrize(("alter", "failure"), SHORT, ids=range(len(SHORT)))
def test_every_other_fault_is_one_clear_failure(alter: Callable[[Vector], None], failure: str) -> None:
    text = told(copy.deepcopy(shortest()), alter)
    assert failure in text
    assert bool(failure) == bool(text)


def test_a_failure_is_one_line_and_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(_shortest())
    bad.write_text(json.dumps({**shortest(), "digest": ""}))
    status, lines = run(monkeypatch, capsys, good, bad)
    assert status == 1
    assert lines == [f"{bad}: differs in digest", "1 passed, 1 failed"]
