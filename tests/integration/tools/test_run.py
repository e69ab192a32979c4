"""`make run`'s program: self-check, serving, restarting what fails, ending in order, and data that stays."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.integration.tools.processes import living, wait_gone
from tools.plan import free_ports

pytestmark = pytest.mark.xdist_group("run")


class Running:
    """`python -m tools.run` in a directory of its own; its lines as they come."""

    def __init__(self, directory: Path, ports: dict[str, int], *, by_make: bool = False, **environ: str) -> None:
        addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        plain = {name: value for name, value in os.environ.items() if not name.startswith("KOIKOI_")}
        self.process = subprocess.Popen(
            ["make", "run"] if by_make else [sys.executable, "-m", "tools.run"],
            cwd=ROOT,
            env={**plain, **addresses, "KOIKOI_RUN_DIRECTORY": str(directory), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(iter(self.process.stdout.readline, ""))

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def wait_for(self, pattern: str, limit_s: float = 120) -> re.Match[str]:
        deadline = time.monotonic() + limit_s
        while (found := re.search(pattern, self.text)) is None:
            assert time.monotonic() < deadline, self.text
            assert self.process.poll() is None, self.text
            time.sleep(0.05)
        return found


@pytest.fixture
def directory():
    path = Path(tempfile.mkdtemp(prefix="koikoi-test-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def get(url: str) -> int:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.status


def test_it_checks_itself_serves_heals_and_keeps_its_data(directory):
    ports = free_ports()
    run = Running(directory, ports)
    try:
        run.wait_for("recorded as number 1 ")
        run.wait_for("Koi-Koi Online is running")
        assert get(f"http://127.0.0.1:{ports['KOIKOI_GATEWAY_HTTP_ADDRESS']}/healthz") == 200
        [lobby] = [pid for pid in living(directory) if b"services.lobby" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(lobby, signal.SIGKILL)
        run.wait_for(r"lobby ended by itself \(status -9\); started again")
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(60) == 0, run.text
    finally:
        run.process.kill()
        run.process.wait()
    wait_gone(directory)
    again = Running(directory, ports)
    again.wait_for("recorded as number 2 ")  # the ranking remembers the first
    again.process.kill()
    again.process.wait()
    wait_gone(directory)


def test_a_second_one_in_the_same_directory_is_told(directory):
    first = Running(directory, free_ports())
    try:
        first.wait_for("starting Postgres")
        second = Running(directory, free_ports())
        assert second.process.wait(60) == 1
        second_text = second.text
        assert "Another process is running from" in second_text
        assert "Traceback" not in second_text
        first.process.send_signal(signal.SIGINT)  # and Ctrl-C while it starts is no accident either
        assert first.process.wait(60) == 130
        assert "Traceback" not in first.text
    finally:
        first.process.kill()
        first.process.wait()
    wait_gone(directory)


def test_everything_ends_with_a_make_that_is_killed(directory):
    run = Running(directory, free_ports(), by_make=True)
    run.wait_for("waiting for auth")
    run.process.kill()
    run.process.wait()
    wait_gone(directory)


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_nobody_else_can_look_into_the_directory(directory, mask):
    inside = directory / "new"
    before = os.umask(mask)
    try:
        run = Running(inside, free_ports())
    finally:
        os.umask(before)
    run.wait_for("migrating")
    assert inside.stat().st_mode & 0o777 == 0o700
    run.process.kill()
    run.process.wait()
    wait_gone(inside)


def test_a_directory_that_cannot_be_used_is_one_sentence(directory):
    (directory / "file").touch()
    for place in (directory / "file", directory / "file" / "x", Path("/proc/none")):
        run = Running(place, free_ports())
        assert run.process.wait(60) == 1
        assert "cannot be made" in run.text
        assert len(run.text.strip().splitlines()) == 1


def test_a_taken_port_is_one_sentence(directory):
    ports = free_ports()
    with socket.create_server(("127.0.0.1", ports["KOIKOI_GATEWAY_HTTP_ADDRESS"])):
        run = Running(directory, ports)
        assert run.process.wait(60) == 1
    assert f"127.0.0.1:{ports['KOIKOI_GATEWAY_HTTP_ADDRESS']} (gateway, HTTP) is taken" in run.text
    assert "KOIKOI_GATEWAY_HTTP_ADDRESS=" in run.text
    assert len(run.text.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("KOIKOI_LOBBY_SWEEP_PERIOD_S", "often", "KOIKOI_LOBBY_SWEEP_PERIOD_S must be a number"),
        ("KOIKOI_AUTH_DATABASE_URL", "postgresql://u:hidden@127.0.0.1:1/d", "KOIKOI_AUTH_DATABASE_URL leads to no"),
        ("KOIKOI_MATCH_DATABASE_URL", "localhost:5432", "KOIKOI_MATCH_DATABASE_URL leads to no"),
        ("KOIKOI_LOBBY_REDIS_URL", "localhost:6379", "KOIKOI_LOBBY_REDIS_URL must be a URL that begins with redis://"),
    ],
)
def test_a_bad_setting_stops_the_start_with_its_sentence(directory, name, value, sentence):
    run = Running(directory, free_ports(), **{name: value})
    assert run.process.wait(120) == 1
    assert sentence in run.text
    assert "hidden" not in run.text
    assert "Traceback" not in run.text
    wait_gone(directory)
