"""What can go wrong before or beside a match is one sentence and an exit status, never a traceback."""

from __future__ import annotations

import fcntl
import json
import resource
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from koikoi_sdk import cli
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.outbox import Outbox

Koikoi = Callable[..., tuple[int, str]]
SESSION = {
    "account_id": "a",
    "display_name": "n",
    "issuer": "https://auth.koikoi/development",
    "access_token": "t",
    "access_expires": 9e9,
    "refresh_token": "r",
}


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def koikoi(
    tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Koikoi:
    """Run a command in this process; gives exit status and all it wrote."""
    monkeypatch.setenv("KOIKOI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KOIKOI_GATEWAY", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setattr("koikoi_sdk.client.connect.Backoff.next_delay_s", _count)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["koikoi", *arguments])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        written = capsys.readouterr()
        return int(exit_.value.code or 0), written.out + written.err

    return run


def _count(backoff: object, retry_after_s: float | None = None) -> float:
    backoff.failures += 1  # type: ignore[attr-defined]
    return 0.0


def sentence(answer: tuple[int, str]) -> str:
    status, text = answer
    assert status == 1, text
    (line,) = text.strip().splitlines()
    assert line.startswith("koikoi: ")
    return line


@pytest.mark.parametrize(
    "arguments",
    [
        ("rooms",),
        ("rooms", "ABCDEF"),
        ("host",),
        ("join", "ABCDEF"),
        ("bot",),
        ("bot", "--join", "ABCDEF"),
        ("logout",),
    ],
)
def test_nobody_is_signed_in(koikoi: Koikoi, arguments: tuple[str, ...]) -> None:
    assert "nobody is signed in on this device: run `koikoi login`" in sentence(koikoi(*arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ("leaderboard",),
        ("login", "--begin"),
        ("login", "--provider", "http://127.0.0.1:9", "--as", "x"),
        ("leaderboard", "--gateway", "nonsense"),
        ("leaderboard", "--gateway", "http://["),
        ("leaderboard", "--gateway", "http://a..b"),
    ],
)
def test_gateway_cannot_be_reached(koikoi: Koikoi, arguments: tuple[str, ...]) -> None:
    assert "cannot reach" in sentence(koikoi(*arguments))


def test_identity_provider_cannot_be_reached(koikoi: Koikoi, closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from koikoi.auth.v1 import auth_service_pb2 as auth

    async def begin(self: object) -> auth.BeginSignInResponse:
        return auth.BeginSignInResponse(nonce="n")

    monkeypatch.setattr("koikoi_sdk.client.account.Account.begin_sign_in", begin)
    provider = f"http://127.0.0.1:{closed_port}"
    assert "identity provider" in sentence(koikoi("login", "--provider", provider, "--as", "x"))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"{}}", b'{"account_id": 1}', b"[" * 100_000, b'{"access_expires": "x"}']
)
def test_damaged_session(koikoi: Koikoi, tmp_path: Path, content: bytes) -> None:
    Home(tmp_path / "home")
    (tmp_path / "home" / "session.json").write_bytes(content)
    assert "sign in again" in sentence(koikoi("rooms"))


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_damaged_device_key(koikoi: Koikoi, tmp_path: Path, content: bytes) -> None:
    Home(tmp_path / "home")
    (tmp_path / "home" / "device.key").write_bytes(content)
    assert "is damaged" in sentence(koikoi("rooms"))


@pytest.mark.parametrize("content", ['{"nonce": "n"}', '{"challenge": "xyz", "issuer": "i"}', '{"challenge": 5}'])
def test_damaged_challenge(koikoi: Koikoi, tmp_path: Path, content: str) -> None:
    Home(tmp_path / "home")
    (tmp_path / "home" / "challenge.json").write_text(content)
    (tmp_path / "token").write_text("t")
    assert "begin again" in sentence(koikoi("login", "--id-token-file", str(tmp_path / "token")))


def test_no_sign_in_was_begun(koikoi: Koikoi, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    assert "no sign-in was begun" in sentence(koikoi("login", "--id-token-file", str(tmp_path / "token")))


@pytest.mark.parametrize("home", ["/proc/koikoi", "/dev/null/koikoi"])
def test_home_that_cannot_be_made(koikoi: Koikoi, home: str) -> None:
    assert "set KOIKOI_HOME" in sentence(koikoi("rooms", "--home", home))


def test_home_that_cannot_be_written(koikoi: Koikoi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full or read-only disk, for root too."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("koikoi_sdk.client.home.tempfile.mkstemp", refuse)
    assert "Read-only file system" in sentence(koikoi("rooms"))
    assert "Read-only file system" in sentence(koikoi("login", "--begin"))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("login", "--as", "x"), "give --provider with --as"),
        (("login", "--id-token-file", "/nonexistent"), "No such file"),
        (("join",), "Missing argument 'CODE'"),
        (("host", "--preset", "poker"), "Invalid value for '--preset'"),
        (("host", "--rounds", "13"), "13 is not in the range"),
        (("bot", "--wait-s", "0"), "not in the range"),
        (("leaderboard", "--rows", "0"), "not in the range"),
        (("dance",), "No such command 'dance'"),
    ],
)
def test_usage(koikoi: Koikoi, arguments: tuple[str, ...], problem: str) -> None:
    status, text = koikoi(*arguments)
    assert status == 2
    assert problem in text
    assert "Traceback" not in text


def test_help_names_every_command(koikoi: Koikoi) -> None:
    status, text = koikoi("--help")
    assert status == 0
    assert all(f"  {name} " in text for name in cli.COMMANDS)
    for name in cli.COMMANDS:
        assert koikoi(name, "--help")[0] == 0


def stored_match(tmp_path: Path) -> Outbox:
    matches = Home(tmp_path / "home").matches
    return Outbox.create(matches, "0190-m", "h.e30.s", b"state")


def test_another_process_plays_the_match(koikoi: Koikoi, tmp_path: Path) -> None:
    outbox = stored_match(tmp_path)
    with (outbox.directory / "lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        status, text = koikoi("resume", "--bot")
    assert status == 1
    assert text.strip().splitlines() == [
        "match 0190-m",
        "koikoi: match 0190-m is being played by another process",
    ]


@pytest.mark.parametrize("name", ["state", "key", "contract"])
@pytest.mark.parametrize("content", [b"", b"garbage", b"\xff" * 200])
def test_damaged_match_does_not_hold_up_the_others(koikoi: Koikoi, tmp_path: Path, name: str, content: bytes) -> None:
    outbox = stored_match(tmp_path)
    (outbox.directory / name).write_bytes(content)
    other = Outbox.create(outbox.directory.parent, "0191-n", "h.e30.s", b"state")
    other.erase()
    (other.directory / "result").write_text(json.dumps({"statement": "00", "signatures": ["00", "00"]}))

    status, text = koikoi("resume", "--bot")

    assert status == 1
    lines = text.strip().splitlines()
    assert [line for line in lines if line.startswith("match ")][-1] == "match 0191-n"
    assert "cannot reach" in lines[-1]
    assert "Traceback" not in text
    assert other.load_result() is not None


def test_relay_address_that_is_none(koikoi: Koikoi, tmp_path: Path) -> None:
    stored_match(tmp_path)
    assert "names no host" in koikoi("resume", "--relay", "nonsense")[1]
    assert "is no door" in koikoi("resume", "--relay", "http://127.0.0.1:8090")[1]


def test_fault_of_our_own_keeps_its_traceback(koikoi: Koikoi, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("koikoi_sdk.client.home.Home.__init__", fail)
    monkeypatch.setattr(sys, "argv", ["koikoi", "rooms"])
    with pytest.raises(ZeroDivisionError):
        cli.main()


def test_no_core_file_is_left(koikoi: Koikoi, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/protocol.md section 11: it would hold the device key and every card."""
    limits: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limit: limits.append((kind, limit)))
    koikoi("--help")
    assert limits == [(resource.RLIMIT_CORE, (0, 0))]
