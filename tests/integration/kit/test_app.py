"""A service process: its signals, its commands, its end. Each test runs a real process."""

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = """
    import asyncio, os, sys
    from contextlib import asynccontextmanager
    from dataclasses import dataclass
    from services.kit.app import App, run
    from services.kit.health import Health
    from services.kit.settings import load

    @dataclass(frozen=True)
    class Settings:
        size: int = 1

    @asynccontextmanager
    async def build(environ):
        load(Settings, "KOIKOI_X", environ)
        app = App("x", Health(), {"grpc": 7}, grace_s=float(os.environ.get("GRACE", "5")))
        async def drain():
            print("drain", app.health.draining, flush=True)
            await asyncio.sleep(float(os.environ.get("DRAIN", "0")))
        app.drains.append(drain)
        print("built", flush=True)
        try:
            yield app
        finally:
            print("closed", flush=True)

    async def migrate(environ):
        print("migrated", load(Settings, "KOIKOI_X", environ).size)

    run("x", build, {"migrate": migrate})
"""


@pytest.fixture
def start(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    processes = []

    def start(*arguments: str, **environ: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def wait_started(process: subprocess.Popen[str]) -> None:
    assert process.stdout.readline() == "built\n"
    assert json.loads(process.stderr.readline())["event"] == "x.started"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_then_closes_in_order(start, number):
    process = start()
    wait_started(process)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert out.splitlines() == ["drain True", "closed"]
    assert [json.loads(line)["event"] for line in err.splitlines()] == ["x.draining", "x.stopped"]
    assert process.returncode == 0


def test_closing_takes_no_longer_than_the_grace_time(start):
    process = start(GRACE="0.3", DRAIN="60")
    wait_started(process)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "did not close within the grace time" in err


def test_a_second_signal_ends_it_at_once(start):
    process = start(DRAIN="60", GRACE="60")
    wait_started(process)
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "drain True\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 1


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"KOIKOI_X_SIZE": "big"}, "KOIKOI_X_SIZE must be a whole number of at least 0."),
        ({"KOIKOI_X_SIZ": "1"}, "KOIKOI_X_SIZ is not a setting"),
        ({"KOIKOI_LOG_LEVEL": "loud"}, "KOIKOI_LOG_LEVEL must be one of"),
    ],
)
def test_a_bad_setting_stops_it_with_one_sentence(start, environ, words):
    process = start(**environ)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 2
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1


def test_commands(start):
    process = start("migrate", KOIKOI_X_SIZE="3")
    assert process.communicate(timeout=20)[0] == "migrated 3\n"
    assert process.returncode == 0
    for wrong in (("grow",), ("migrate", "now")):
        process = start(*wrong)
        assert "usage: python -m services.x [migrate]" in process.communicate(timeout=20)[1]
        assert process.returncode == 2


def test_no_core_file_can_hold_keys(start):
    process = start()
    wait_started(process)
    limits = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
    [line] = [line for line in limits if line.startswith("Max core file size")]
    assert line.split()[4:6] == ["0", "0"]


def test_it_takes_more_connections_than_the_usual_limit(start):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024), hard))
    try:
        process = start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    wait_started(process)
    assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (min(hard, 65_536), hard)
