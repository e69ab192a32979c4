"""Child processes that die with this one and end in good order before it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["LOG_MAX_BYTES", "Child", "guarded", "last_lines", "turn_over"]

LOG_MAX_BYTES = 10_000_000

_GUARD = Path(__file__).with_name("guard.py")


def guarded(program: Sequence[str | Path], death: signal.Signals, identity: str = "same") -> list[str]:
    """Return the command line that runs `program` under the guard; see guard.py for the identities."""
    head = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), str(int(death)), identity]
    return [*head, *(str(part) for part in program)]


class Child:
    """One program, tied to this process.

    Start children from the main thread only: Linux counts the thread that started a child as its parent.

    Args:
        name: For messages.
        program: Absolute path and arguments.
        log: Gets what the program writes; appended to. It grows until somebody calls `turn_over`.
        environ: The whole environment of the program.
        directory: Its working directory.
        death: What it gets when this process dies.
        identity: See guard.py.
    """

    def __init__(
        self,
        name: str,
        program: Sequence[str | Path],
        *,
        log: Path,
        environ: Mapping[str, str] | None = None,
        directory: Path | None = None,
        death: signal.Signals = signal.SIGKILL,
        identity: str = "same",
    ) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        turn_over(log)
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                guarded(program, death, identity),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=None if environ is None else dict(environ),
                cwd=directory,
                start_new_session=True,  # Ctrl-C is ours to pass on, in order
            )

    @property
    def pid(self) -> int:
        """The process id; the guard becomes the program, so it is the program's."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def stop(self, number: signal.Signals = signal.SIGTERM, grace_s: float = 20.0) -> int:
        """Ask it to end, then make it; returns its exit status."""
        if self.is_running:
            self.process.send_signal(number)
            try:
                self.process.wait(grace_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def kill(self) -> None:
        """End it with kill -9."""
        if self.is_running:
            self.process.kill()
        self.process.wait()


def turn_over(log: Path, most_bytes: int = LOG_MAX_BYTES) -> None:
    """Begin a log anew when it has grown too long; what it held is kept as `<name>.log.1`, until the next time.

    The program goes on writing to the same file, so what it writes at this very moment may be lost.
    """
    if not log.exists() or log.stat().st_size <= most_bytes:
        return
    with suppress(OSError):  # a full disk: then the room counts for more than the old lines
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    os.truncate(log, 0)


def last_lines(log: Path, count: int = 5) -> str:
    """Return the end of a log, for a message about a program that failed."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(lines[-count:])
