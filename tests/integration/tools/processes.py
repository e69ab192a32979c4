"""Which processes work on a directory."""

import os
import time
from pathlib import Path


def living(directory: Path) -> list[int]:
    """Return the processes that name this directory on their command line or in their environment, or are inside it."""
    place = os.fsencode(str(directory))
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            inside = str((process / "cwd").readlink())
        except OSError:
            continue
        is_here = place in words or inside.startswith(str(directory))
        if state != "Z" and int(process.name) != os.getpid() and is_here:
            found.append(int(process.name))
    return found


def wait_gone(directory: Path) -> None:
    """Wait until nothing works on this directory any more."""
    deadline = time.monotonic() + 10
    while (left := living(directory)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []
