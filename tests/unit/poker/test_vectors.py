"""The checker of vector files: it finds every difference and no file makes it crash."""

import copy
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
from koikoi_sdk.poker import vectors

FOLDER = Path(__file__).parents[2] / "vectors/poker"
DEAL = json.loads((FOLDER / "deal.json").read_text())
SHUFFLES = json.loads((FOLDER / "shuffles.json").read_text())
PROOFS = json.loads((FOLDER / "proofs.json").read_text())["cases"]
RECEIVE = json.loads((FOLDER / "receive.json").read_text())["cases"]
FORGED = next(case for case in RECEIVE if case["name"] == "S1 with the identity as key")


def write(folder: Path, content: object, name: str = "file.json") -> str:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *paths: str) -> tuple[int, list[str]]:
    status = vectors.main(paths)
    return status, capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("each_implementation")
def test_the_published_files_hold(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FOLDER / name) for name in ("deal.json", "shuffles.json", "proofs.json")]
    total = 1 + len(SHUFFLES["pos"]) + len(SHUFFLES["neg"]) + len(PROOFS)
    assert run(capsys, *files) == (0, [f"{total} passed, 0 failed"])


def flip(value: Any) -> Any:
    """Change a stated value as little as possible."""
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    return [flip(value[0]), *value[1:]] if isinstance(value[0], str) else [value[0] ^ 1, *value[1:]]


@pytest.fixture
def cheap() -> dict[str, Any]:
    """The published deal without its audit, which takes longest."""
    return {name: value for name, value in DEAL.items() if name not in {"com", "resp"}}


STATED = sorted(set(DEAL) - {"mid", "pk0", "pk1", "heads"})


def test_every_stated_value_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = run(capsys, write(tmp_path, {**DEAL, **{name: flip(DEAL[name]) for name in STATED}}))
    assert sorted(lines[0].split("differs in ")[1].split(", ")) == STATED


@pytest.mark.parametrize("name", ["did", "permD", "cards", "flip"])
def test_any_changed_value_of_a_deal_is_found_and_named(
    name: str, cheap: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = run(capsys, write(tmp_path, {**cheap, name: flip(DEAL[name])}))
    assert status == 1
    assert lines == [f"{tmp_path}/file.json: differs in {name}", "0 passed, 1 failed"]


@pytest.mark.parametrize(("name", "value"), [("field", DEAL["field"][:7]), ("cards", "aa"), ("did", [1]), ("s3", "")])
def test_another_shape_of_a_value_is_a_difference(
    name: str, value: object, cheap: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, write(tmp_path, {**cheap, name: value}))[1][0].endswith(f"differs in {name}")


def test_a_changed_input_changes_the_messages(
    cheap: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, lines = run(capsys, write(tmp_path, {**cheap, "mid": flip(DEAL["mid"])}))
    assert "differs in did, cards" in lines[0]
    for name in ("s1", "s2", "s3"):
        assert name in lines[0]


def test_hexadecimal_may_be_in_capitals(
    cheap: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capitals = {name: value.upper() if isinstance(value, str) else value for name, value in cheap.items()}
    capitals["cards"] = [point.upper() for point in DEAL["cards"]]
    assert run(capsys, write(tmp_path, capitals))[0] == 0


def test_each_vector_of_each_file_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mixed = {"pos": [SHUFFLES["pos"][0]], "neg": SHUFFLES["neg"][:2]}
    wrong = copy.deepcopy(mixed)
    wrong["pos"][0]["s2"] = flip(wrong["pos"][0]["s2"])
    wrong["neg"] = [{**case, "name": "x"} for case in wrong["neg"]]
    files = write(tmp_path, mixed, "a.json"), write(tmp_path, wrong, "b.json"), str(tmp_path / "none.json")
    status, lines = run(capsys, *files)
    assert status == 1
    assert lines == [
        f"{tmp_path}/b.json: pos[0]: differs in s2",
        f"{tmp_path}/none.json: No such file or directory",
        "5 passed, 2 failed",
    ]


def test_an_honest_proof_among_the_negative_ones_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.unit.poker import cheats

    honest = cheats.honest()
    vector = {**cheats.encode_statement(honest.statement), "proof": honest.proof.encode().hex()}
    status, lines = run(capsys, write(tmp_path, {"neg": [vector]}))
    assert (status, lines[-1]) == (1, "0 passed, 1 failed")
    assert lines[0].endswith("neg[0]: a proof of a wrong statement was accepted")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("proof", ""),
        ("proof", "00" * 6303),
        ("X", "00" * 33),
        ("Y", ""),
        ("K", "00"),
        ("K", "00" * 33),
        ("X", "00" * 1536),
    ],
)
def test_a_negative_proof_of_a_wrong_size_is_rejected_and_so_holds(
    name: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, write(tmp_path, {"neg": [{**SHUFFLES["neg"][0], name: value}]})) == (0, ["1 passed, 0 failed"])


def test_a_case_must_fail_for_its_own_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = next(case for case in RECEIVE if case["message"] == 5)
    cases = [FORGED, {**FORGED, "reason": 4}, {**FORGED, "reason": 0}, late]
    status, lines = run(capsys, write(tmp_path, {"cases": cases}))
    assert status == 1
    assert [line.split(": ", 2)[1:] for line in lines[:-1]] == [
        ["cases[1]", f"{FORGED['name']}: reason 1 instead of 4"],
        ["cases[2]", f"{FORGED['name']}: reason 1 instead of 0"],
    ]
    assert lines[-1] == "2 passed, 2 failed"


POSITIVE = SHUFFLES["pos"][0]
EQUALITY = PROOFS[0]
SIGNATURE = PROOFS[-1]
MALFORMED: list[tuple[object, str]] = [
    ("", "not JSON"),
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("[]", "not an object"),
    ("3", "not an object"),
    ({}, "member s1 is missing"),
    ({"pos": [], "neg": []}, "holds no vector"),
    ({"pos": {}}, "pos is not a list"),
    ({"pos": [3]}, "not an object"),
    ({"neg": [None]}, "not an object"),
    ({"neg": [{}]}, "member proof is missing"),
    ({"neg": [{**SHUFFLES["neg"][0], "X": "0g"}]}, "member X is not hexadecimal"),
    ({"neg": [{**SHUFFLES["neg"][0], "proof": 7}]}, "member proof is not hexadecimal"),
    ({"pos": [{**POSITIVE, "s1": None}]}, "s1 is not a string"),
    ({"pos": [{**POSITIVE, "rnd": -1}]}, "rnd is not a whole number"),
    ({"pos": [{**POSITIVE, "rnd": 65_536}]}, "rnd is not a whole number"),
    ({"pos": [{**POSITIVE, "att": True}]}, "att is not a whole number"),
    ({"pos": [{**POSITIVE, "att": "0"}]}, "att is not a whole number"),
    ({"pos": [{**POSITIVE, "D": "aa" * 31}]}, "D has 31 bytes instead of 32"),
    ({"pos": [{**POSITIVE, "h": POSITIVE["h"][:7]}]}, "h does not hold 8 heads"),
    ({"pos": [{**POSITIVE, "h": [*POSITIVE["h"][:7], 8]}]}, "h is not hexadecimal"),
    ({"pos": [{name: value for name, value in POSITIVE.items() if name != "mid"}]}, "mid is missing"),
    ({"cases": [{**FORGED, "kind": "riddle"}]}, "kind is unknown"),
    ({"cases": [{**FORGED, "message": 6}]}, "message is not a whole number from 0 to 5"),
    ({"cases": [{**FORGED, "deal": []}]}, "not an object"),
    ({"cases": [{**EQUALITY, "U": EQUALITY["U"][64:]}]}, "two lists of points of one length"),
    ({"cases": [{**EQUALITY, "U": "", "V": ""}]}, "two lists of points of one length"),
    ({"cases": [{**SIGNATURE, "label": "deal"}]}, "none of the five labels"),
    ({"cases": [{**SIGNATURE, "fields": ["zz"]}]}, "fields is not hexadecimal"),
]


@pytest.mark.parametrize(("content", "text"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_file_is_one_clear_failure(
    content: object, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, lines = run(capsys, write(tmp_path, content))
    assert status == 1
    assert lines[-1] == "0 passed, 1 failed"
    assert len(lines) == 2
    assert text in lines[0]


def test_bytes_that_are_no_text_and_a_folder_are_clear_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00\x01")
    status, lines = run(capsys, str(tmp_path / "binary.json"), str(tmp_path))
    assert status == 1
    assert "not JSON" in lines[0]
    assert "Is a directory" in lines[1]


def test_an_error_without_a_text_is_still_explained() -> None:
    assert vectors._explain(OSError()) == "the file cannot be read"


def test_no_file_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = run(capsys)
    assert status == 2
    assert lines == ["usage: koikoi vectors FILE..."]


def test_the_module_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["vectors", write(tmp_path, {"cases": [FORGED]})])
    monkeypatch.delitem(sys.modules, "koikoi_sdk.poker.vectors")
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("koikoi_sdk.poker.vectors", run_name="__main__")
    assert caught.value.code == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"
