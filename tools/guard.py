"""Becomes another program that cannot outlive its parent.

`guard.py PARENT_PID SIGNAL IDENTITY PROGRAM ARGUMENT...` asks Linux to send SIGNAL when the parent dies, even by
kill -9, and then executes PROGRAM in its own place. IDENTITY is `same`, `namespace` (uid 65534 inside a user namespace
that maps only to ourselves) or `nobody`; the last two are for Postgres, which refuses to run as root.

Runs alone (`python -I -S guard.py`), so it starts in milliseconds; standard library only.
"""

import ctypes
import os
import sys
from pathlib import Path

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_CLONE_NEWUSER = 0x10000000
_NOBODY = 65534


def main(arguments: list[str]) -> None:
    """Take on the identity, tie this process to its parent, become the program."""
    parent, signal_number, identity, *program = arguments
    if identity == "namespace":
        _enter_user_namespace()
    elif identity == "nobody":
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)
    if sys.platform == "linux":
        # After the identity: a change of credentials clears it. execve keeps it.
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
        if os.getppid() != int(parent):
            sys.exit(1)  # it died before we asked
    os.umask(0o077)
    os.execv(program[0], program)  # noqa: S606 - no shell is the point


def _enter_user_namespace() -> None:
    uid, gid = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_NOBODY} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{_NOBODY} {gid} 1")


if __name__ == "__main__":
    main(sys.argv[1:])
