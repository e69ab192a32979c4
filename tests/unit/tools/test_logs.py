"""Logs of children: they grow to a size, and no further."""

import os
import sys
import time

from tools.child import Child, last_lines, turn_over

CHATTER = """
import sys, time
for number in range(4000):
    sys.stdout.write(f"{number:06} {'x' * 92}\\n")
    sys.stdout.flush()
    time.sleep(0.0002)
time.sleep(60)
"""


def test_a_short_log_is_left_alone(tmp_path):
    log = tmp_path / "x.log"
    turn_over(log)
    assert not log.exists()
    log.write_bytes(b"x" * 100)
    turn_over(log, most_bytes=100)
    assert log.stat().st_size == 100
    assert list(tmp_path.iterdir()) == [log]


def test_a_running_program_goes_on_in_the_same_log(tmp_path):
    """400 kB are written; never more than the limit and what came between two looks is kept, twice."""
    log, old = tmp_path / "x.log", tmp_path / "x.log.1"
    child = Child("chatter", [sys.executable, "-c", CHATTER], log=log)
    try:
        turns, end = 0, time.monotonic() + 60
        while not last_lines(log, 1).startswith("003999"):
            assert time.monotonic() < end
            before = log.stat().st_size
            turn_over(log, most_bytes=50_000)
            turns += log.stat().st_size < before
            time.sleep(0.005)
    finally:
        child.kill()
    assert turns >= 3
    kept = old.read_text().splitlines() + log.read_text().splitlines()
    assert all(len(line) == 99 for line in kept), "whole lines, no gap of zeros"
    numbers = [int(line[:6]) for line in kept]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 3999
    assert old.stat().st_size < 200_000


def test_a_log_is_turned_over_before_a_start(tmp_path, monkeypatch):
    log = tmp_path / "x.log"
    log.touch()
    os.truncate(log, 10_000_001)
    Child("echo", [sys.executable, "-c", "print('new')"], log=log).process.wait(20)
    assert log.read_text() == "new\n"
    assert (tmp_path / "x.log.1").stat().st_size == 10_000_001


def test_a_full_disk_gets_room_again(tmp_path):
    log = tmp_path / "x.log"
    log.write_bytes(b"x" * 101)
    (tmp_path / "x.log.1").mkdir()  # the copy fails
    turn_over(log, most_bytes=100)
    assert log.stat().st_size == 0
