"""What is on disk of a match: private, whole after a crash, unreadable once it is over."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from koikoi_sdk.client.errors import StorageError
from koikoi_sdk.client.outbox import Outbox
from koikoi_sdk.table import Ending, Evidence, Reason, SignedResult, Statement

STATE = b"the seed of a deal"
RESULT = SignedResult(
    Statement(b"c" * 32, b"s" * 32, Ending.PLAYED, 0, (30, 20), (b"r" * 10,), b"h" * 32), (b"a" * 64, b"b" * 64)
)
EVIDENCE = Evidence(Reason.PROOF, "a proof does not hold", b"h" * 32, b"body", b"s" * 64)


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox.create(tmp_path, "m", "a.contract.s", STATE)


def test_a_stored_match_is_read_back(outbox: Outbox, tmp_path: Path):
    again = Outbox(tmp_path / "m")
    assert (again.match_id, again.contract, again.load()) == ("m", "a.contract.s", STATE)
    assert again.is_open
    again.save(b"later")
    assert outbox.load() == b"later"


def test_a_stored_match_is_never_begun_again(outbox: Outbox, tmp_path: Path):
    """Sitting down twice must not forget what was sent."""
    outbox.save(b"later")
    assert Outbox.create(tmp_path, "m", "another", b"new").load() == b"later"
    assert outbox.contract == "a.contract.s"
    assert [found.match_id for found in Outbox.stored(tmp_path)] == ["m"]


def test_everything_is_private_and_secrets_are_encrypted(outbox: Outbox):
    assert outbox.directory.stat().st_mode & 0o777 == 0o700
    for name in ("key", "state", "contract"):
        assert (outbox.directory / name).stat().st_mode & 0o777 == 0o600
    assert STATE not in (outbox.directory / "state").read_bytes()


def test_the_same_state_never_looks_the_same(outbox: Outbox):
    before = (outbox.directory / "state").read_bytes()
    outbox.save(STATE)
    assert (outbox.directory / "state").read_bytes() != before


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:30] + b"x" + data[31:]]
)
def test_a_damaged_state_is_told(outbox: Outbox, damage):
    path = outbox.directory / "state"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StorageError, match="damaged"):
        outbox.load()


@pytest.mark.parametrize("name", ["key", "state", "contract"])
def test_a_missing_file_is_told(outbox: Outbox, name: str):
    (outbox.directory / name).unlink()
    with pytest.raises(StorageError, match=name):
        _ = (outbox.load(), outbox.contract)


def test_one_process_plays_a_match(outbox: Outbox):
    """The lock is the operating system's: another process is refused, and it falls with its holder."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom koikoi_sdk.client.outbox import Outbox\n"
        f"with Outbox(Path({str(outbox.directory)!r})).lock():\n    print('mine', flush=True)\n    sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"mine\n"
        with pytest.raises(StorageError, match="another process"), outbox.lock():
            pytest.fail("two processes play one match")
    finally:
        process.kill()
        process.wait()
        process.communicate()
    with outbox.lock(), pytest.raises(StorageError), Outbox(outbox.directory).lock():
        pytest.fail("two sessions of one process play one match")
    with outbox.lock():
        pass


def test_an_erased_match_cannot_be_read(outbox: Outbox):
    saved = (outbox.directory / "state").read_bytes()
    outbox.erase()
    assert not outbox.is_open
    (outbox.directory / "state").write_bytes(saved)
    with pytest.raises(StorageError):
        outbox.load()
    outbox.erase()


def test_an_erasure_that_was_cut_short_is_no_open_match(outbox: Outbox):
    (outbox.directory / "key").write_bytes(bytes(32))
    assert not outbox.is_open
    assert not outbox.is_pending


def test_a_result_waits_for_the_ranking(outbox: Outbox):
    assert outbox.load_result() is None
    outbox.save_result(RESULT)
    outbox.erase()
    assert outbox.is_pending
    assert outbox.load_result() == (RESULT.statement.encode(), RESULT.signatures)
    outbox.remove()
    assert not outbox.directory.exists()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"statement": "00", "signatures": ["00"]}', '{"statement": 1, "signatures": ["", ""]}']
)
def test_a_damaged_result_is_told(outbox: Outbox, text: str):
    (outbox.directory / "result").write_text(text)
    with pytest.raises(StorageError, match="result"):
        outbox.load_result()


def test_evidence_outlives_the_match(outbox: Outbox):
    outbox.save_evidence(EVIDENCE)
    outbox.remove()
    assert (outbox.directory / "evidence").exists()
    assert not outbox.is_pending


def test_what_a_killed_process_left_half_made_is_swept(outbox: Outbox, tmp_path: Path):
    """But not what another process is making just now."""
    old, young = tmp_path / ".m.0badcafe", tmp_path / ".n.0badcafe"
    for draft in (old, young):
        draft.mkdir()
        (draft / "key").write_bytes(b"k" * 32)
    os.utime(old, (1, 1))
    assert [found.match_id for found in Outbox.stored(tmp_path)] == ["m"]
    assert not old.exists()
    assert young.exists()


def test_a_forgotten_match_is_remembered_for_a_day(outbox: Outbox, tmp_path: Path):
    """The lobby lists its contract for hours; begun a second time, it would speak against itself."""
    assert Outbox.knows(tmp_path, "m")
    outbox.remove()
    assert not outbox.directory.exists()
    assert Outbox.stored(tmp_path) == []
    assert Outbox.knows(tmp_path, "m")
    assert not Outbox.knows(tmp_path, "n")
    os.utime(tmp_path / ".over.m", (1, 1))
    Outbox.stored(tmp_path)
    assert not Outbox.knows(tmp_path, "m")
