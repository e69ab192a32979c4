"""Where a device keeps what it must not lose: its key, its session, its matches.

One directory, mode 0700; every file 0600 and replaced atomically, so that a crash leaves the old or the new content.
The key file is as safe as the operating system keeps this user's files (docs/threat-model.md).
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from koikoi_sdk.client.errors import StorageError
from koikoi_sdk.poker.keys import SEED_SIZE, DeviceKey

_LOCK_POLL_S = 0.02


def default_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """Give the directory of this user: KOIKOI_HOME, else the platform's data directory."""
    if chosen := environ.get("KOIKOI_HOME"):
        return Path(chosen)
    base = environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "koikoi"


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 so that after a crash it holds the old or the new content, never a mixture.

    Raises:
        StorageError: It cannot be written; the old content stands.
    """
    try:
        _replace(path, content)
    except OSError as error:
        raise cannot_use(path, error) from error


def cannot_use(path: Path, error: OSError) -> StorageError:
    """Make the error about a file that the system does not let us use."""
    return StorageError(f"cannot use {path}: {error.strerror or type(error).__name__}")


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


class Home:
    """One device's directory."""

    def __init__(self, directory: Path) -> None:
        """Open the directory, making it when it is not there.

        Raises:
            StorageError: It cannot be made or written.
        """
        self.directory = directory
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot use {directory}: {error.strerror}; set KOIKOI_HOME") from error

    @property
    def matches(self) -> Path:
        """Give the directory of running matches."""
        path = self.directory / "matches"
        try:
            path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise cannot_use(path, error) from error
        return path

    def device_key(self) -> DeviceKey:
        """Give the device's key; made from the operating system's generator on first use.

        Two processes that start at once get the same key: the file is linked into place, never overwritten.
        """
        path = self.directory / "device.key"
        try:
            if not path.exists():
                self._make_device_key(path)
            seed = path.read_bytes()
        except OSError as error:
            raise cannot_use(path, error) from error
        if len(seed) != SEED_SIZE:
            raise StorageError(
                f"{path} is damaged ({len(seed)} bytes instead of {SEED_SIZE}); move it away and sign in"
            )
        return DeviceKey(seed)

    def _make_device_key(self, path: Path) -> None:
        fresh = self.directory / f".device.{secrets.token_hex(8)}"
        write_private(fresh, secrets.token_bytes(SEED_SIZE))
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncIterator[None]:
        """Keep other processes and tasks of this device out of one thing, without blocking the event loop."""
        path = self.directory / f"{name}.lock"
        try:
            file = path.open("wb")
        except OSError as error:
            raise cannot_use(path, error) from error
        with file:
            while not _is_locked(file):  # noqa: ASYNC110 - a thread that waits could not be cancelled
                await asyncio.sleep(_LOCK_POLL_S)
            yield

    def load(self, name: str) -> dict[str, Any] | None:
        """Read one small JSON document, or None when there is none."""
        path = self.directory / f"{name}.json"
        try:
            members = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise StorageError(f"{path} cannot be read; move it away and sign in again") from error
        if not isinstance(members, dict):
            raise StorageError(f"{path} is damaged; move it away and sign in again")
        return members

    def save(self, name: str, members: Mapping[str, Any]) -> None:
        """Write one small JSON document."""
        write_private(self.directory / f"{name}.json", json.dumps(members).encode())

    def forget(self, name: str) -> None:
        """Remove one small JSON document."""
        path = self.directory / f"{name}.json"
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_use(path, error) from error


def _is_locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
