"""The `koikoi` command as people use it: sign in, open a room, join it, play by hand, resign, look, sign out."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from koikoi_sdk.client.openid import fetch_id_token

from tools.plan import PROVIDER_CLIENT_ID
from tools.stack import Stack

pytestmark = pytest.mark.xdist_group("e2e")
ROOT = Path(__file__).parents[2]
LIMIT_S = 60.0


class Terminal:
    """One `koikoi` command at a pseudo-terminal or at a pipe."""

    def __init__(self, environ: dict[str, str], arguments: tuple[str, ...], *, is_terminal: bool) -> None:
        ours, theirs = pty.openpty() if is_terminal else (None, subprocess.PIPE)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "koikoi_sdk.cli", *arguments],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd=ROOT,
        )
        self._ours, self._theirs = ours, theirs
        self.text = ""

    def type(self, line: str) -> None:
        data = f"{line}\n".encode()
        if self._ours is not None:
            os.write(self._ours, data)
        else:
            assert self.process.stdin is not None
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def read_until(self, pattern: str, start: int = 0) -> re.Match[str]:
        deadline = time.monotonic() + LIMIT_S
        while (found := re.compile(pattern).search(self.text, start)) is None:
            assert time.monotonic() < deadline, self.text
            assert self._read_some(deadline) or re.search(pattern, self.text[start:]), self.text
        return found

    def finish(self) -> str:
        """Read to the end and give all the text."""
        deadline = time.monotonic() + LIMIT_S
        while self._read_some(deadline):
            pass
        self.process.wait(LIMIT_S)
        return self.text

    def _read_some(self, deadline: float) -> bool:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, self.text
        data = os.read(self.process.stdout.fileno(), 65536)
        self.text += data.decode(errors="replace")
        return bool(data)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        if self._ours is not None:
            os.close(self._ours)
            os.close(self._theirs)


Run = Callable[..., Terminal]


@pytest.fixture
def koikoi(stack: Stack, tmp_path: Path) -> Iterator[Run]:
    """`koikoi("ume", "rooms")` starts a command on a device of that name."""
    started: list[Terminal] = []

    def run(device: str, *arguments: str, is_terminal: bool = False) -> Terminal:
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KOIKOI_")},
            "KOIKOI_GATEWAY": stack.plan.gateway_url,
            "KOIKOI_RELAY": stack.plan.websocket_url if device == "ume" else stack.plan.grpc_url,
            "KOIKOI_PROVIDER": stack.plan.provider_url,
            "KOIKOI_HOME": str(tmp_path / device),
        }
        started.append(Terminal(environ, arguments, is_terminal=is_terminal))
        return started[-1]

    yield run
    for terminal in started:
        terminal.close()


def done(terminal: Terminal, status: int = 0) -> str:
    text = terminal.finish()
    assert terminal.process.returncode == status, text
    assert "Traceback" not in text
    return text


def refused(terminal: Terminal, status: int = 1) -> str:
    """The command failed with one sentence."""
    text = done(terminal, status).strip()
    assert text.splitlines()[-1].startswith("koikoi: ")
    return text


def sign_in_separately(stack: Stack, koikoi: Run, tmp_path: Path) -> None:
    """Begin, get an ID token elsewhere, complete."""
    nonce = done(koikoi("sakura", "login", "--begin")).strip()
    token = asyncio.run(
        fetch_id_token(
            stack.plan.provider_url, client_id=PROVIDER_CLIENT_ID, login_hint="sakura@example.test", nonce=nonce
        )
    )
    file = tmp_path / "id_token"
    file.write_text(token)
    assert "signed in as Sakura" in done(koikoi("sakura", "login", "--id-token-file", str(file), "--name", "Sakura"))
    assert "no sign-in was begun" in refused(koikoi("sakura", "login", "--id-token-file", str(file)))


def play_a_little(terminal: Terminal, choices: int) -> None:
    """Take the first option a few times, with a typing error before, then resign."""
    seen = 0
    for number in range(choices + 1):
        seen = terminal.read_until(r"number, or r to resign> ", seen).end()
        if number == 0:
            terminal.type("nonsense")
            seen = terminal.read_until(r"a number from 1 to \d+\s+number, or r to resign> ", seen).end()
        terminal.type("1" if number < choices else "r")


def test_an_evening(stack: Stack, koikoi: Run, tmp_path: Path) -> None:
    assert "nobody is signed in" in refused(koikoi("ume", "rooms"))
    assert "signed in as Ume" in done(koikoi("ume", "login", "--as", "ume@example.test", "--name", "Ume"))
    sign_in_separately(stack, koikoi, tmp_path)

    host = koikoi("ume", "host", "--password", "hanami", is_terminal=True)
    code = host.read_until(r"koikoi join (\w{6})")[1]
    line = f"{code}  Ume  (house, 6 rounds; password; rated)"
    assert line in done(koikoi("sakura", "rooms"))
    assert line in done(koikoi("sakura", "rooms", code))
    refused(koikoi("sakura", "join", "ZZZZZZ"))
    refused(koikoi("sakura", "join", code, "--password", "wrong"))

    guest = koikoi("sakura", "join", code, "--password", "hanami", "--bot")
    play_a_little(host, 3)
    for text in (done(host), done(guest)):
        assert "outcome: resigned (seat 0)" in text
        assert re.search(r"recorded after \d rounds: Ume", text), text  # a lucky deal may end a round so soon
    board = done(koikoi("ume", "leaderboard", "--rows", "200"))
    assert "Sakura" in board
    around = done(koikoi("sakura", "leaderboard", "--around"))
    assert re.search(r"Sakura  \*$", around, re.MULTILINE), around
    assert re.search(r"(won|lost) .* Sakura  \(\d+ -> \d+", done(koikoi("ume", "history"))), "the match just played"
    (line,) = done(koikoi("ume", "history", "--rated", "--json")).splitlines()
    assert json.loads(line)["isRated"] is True
    assert done(koikoi("ume", "history", "--outcome", "drawn", "--json")) == ""
    assert "no unfinished match" in done(koikoi("ume", "resume"))

    assert "signed out" in done(koikoi("ume", "logout"))
    assert "nobody is signed in" in refused(koikoi("ume", "logout"))


def test_an_invitation_and_a_host_who_lets_guests_in(koikoi: Run) -> None:
    for device in ("ume", "sakura"):
        done(koikoi(device, "login", "--as", f"{device}-4@example.test", "--name", device.title()))
    list_of_rooms = koikoi("sakura", "rooms", "--watch", "--preset", "sdin")
    list_of_rooms.read_until(r"0 部屋")
    host = koikoi("ume", "host", "--preset", "sdin", "--invite", "--approve", "--password", "tsuki", is_terminal=True)
    link = host.read_until(r"the link: (\S+/i/\S+#\S+)")[1]
    assert "Goko: 15 (house: 10)" in host.text
    code = list_of_rooms.read_until(r"\+ (\w{6})  Ume  \(sdin, .*; password; the host lets you in; not rated\)")[1]
    assert f"/i/{code}." in link
    assert "no whole link" in refused(koikoi("sakura", "join", link.partition("#")[0]))

    guest = koikoi("sakura", "join", link, "--bot")
    host.read_until(r"Sakura wants to play.*\[Y/n\]")
    host.type("y")
    list_of_rooms.read_until(rf"- {code}")
    play_a_little(host, 1)
    for terminal in (host, guest):
        assert "outcome: resigned (seat 0)" in done(terminal)

    # Right after it another room, opened by somebody whom the link does not name.
    host = koikoi("ume", "host", "--invite", is_terminal=True)
    link = host.read_until(r"the link: (\S+#)\S+")[1]
    assert "not who sent the invitation" in refused(koikoi("sakura", "join", link + "A" * 22))

    assert done(koikoi("ume", "blocks")) == ""
    assert re.match(r"pest  since \d{4}-", done(koikoi("ume", "blocks", "add", "pest")))
    assert done(koikoi("ume", "blocks", "remove", "pest")) == ""
    assert "usage" in done(koikoi("ume", "blocks", "add"), 2).lower()


def test_stopped_by_hand_and_resumed(koikoi: Run) -> None:
    """Ctrl-C and the end of standard input leave a match that `koikoi resume` goes on with."""
    for device in ("ume", "sakura"):
        done(koikoi(device, "login", "--as", f"{device}-2@example.test", "--name", device))
    host = koikoi("ume", "host", "--preset", "boardgameland", "--rounds", "3", "--unlisted", is_terminal=True)
    code = host.read_until(r"koikoi join (\w{6})")[1]
    guest = koikoi("sakura", "join", code)
    first, second = (host, guest) if wait_for_turn(host, guest) is host else (guest, host)
    first.process.send_signal(signal.SIGINT)
    assert "stopped; `koikoi resume` goes on" in done(first, 130)
    second.process.send_signal(signal.SIGINT)
    done(second, 130)

    again = [koikoi("ume", "resume", is_terminal=True), koikoi("sakura", "resume")]
    turn = wait_for_turn(*again)
    turn.type("r")
    for terminal in again:
        assert "outcome: resigned" in done(terminal)


def wait_for_turn(*terminals: Terminal) -> Terminal:
    """Give the one who is asked."""
    deadline = time.monotonic() + LIMIT_S
    while True:
        for terminal in terminals:
            assert terminal.process.stdout is not None
            if select.select([terminal.process.stdout], [], [], 0.05)[0]:
                assert terminal._read_some(deadline), terminal.text
            if "to resign> " in terminal.text:
                return terminal
        assert time.monotonic() < deadline


def test_the_end_of_standard_input(koikoi: Run) -> None:
    for device in ("ume", "sakura"):
        done(koikoi(device, "login", "--as", f"{device}-3@example.test", "--name", device))
    host = koikoi("ume", "host", "--unlisted")
    code = host.read_until(r"koikoi join (\w{6})")[1]
    guest = koikoi("sakura", "join", code)
    for terminal in (host, guest):
        assert terminal.process.stdin is not None
        terminal.process.stdin.close()
    turn = wait_for_turn(host, guest)
    assert "standard input has ended; `koikoi resume` goes on" in refused(turn)
    again = koikoi("ume" if turn is host else "sakura", "resume")
    again.type("r")
    assert "outcome: resigned" in done(again)
    assert "outcome: resigned" in done(guest if turn is host else host)
