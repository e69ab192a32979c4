"""Everything the servers hold, as bytes: Redis, Postgres, logs, metrics, and the memory of every process."""

from __future__ import annotations

import ctypes
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from redis import Redis

from tests.e2e.search import OVERLAP, cut
from tools.plan import SERVICES
from tools.stack import Stack

__all__ = [
    "PROCESSES", "log", "log_files", "memory", "metrics", "paused", "postgres_files", "postgres_rows", "redis_files",
    "redis_values", "writing_down",
]  # fmt: skip

PROCESSES = (*SERVICES, "provider", "postgres", "valkey")
_CHUNK = 1 << 20
_UNREADABLE = ("[vvar]", "[vvar_vclock]", "[vsyscall]")  # the kernel's, not the process's


@contextmanager
def writing_down(stack: Stack) -> Iterator[Redis]:
    """Let Valkey write every command into its append-only file, as in production, and nothing compressed."""
    with Redis.from_url(stack.valkey.url) as client:
        usual = client.config_get("appendonly")["appendonly"]
        directory = _directory(client)
        kept = set(_files(directory))
        client.config_set("rdbcompression", "no")
        client.config_set("appendonly", "yes")
        deadline = time.monotonic() + 60
        while client.info("persistence")["aof_rewrite_in_progress"]:
            assert time.monotonic() < deadline, "Valkey does not begin its append-only file"
            time.sleep(0.02)
        try:
            yield client
        finally:
            client.config_set("appendonly", usual)
            for file in set(_files(directory)) - kept if usual == "no" else ():
                file.unlink()  # a restart must not find what this wrote


def redis_values(client: Redis) -> Iterator[bytes]:
    """Every key with its value, of whatever type."""
    for key in client.scan_iter(count=1000):
        yield from cut([key, client.dump(key) or b""])


def redis_files(client: Redis) -> Iterator[bytes]:
    """The append-only file and a fresh snapshot."""
    client.save()
    files = list(_files(_directory(client)))
    names = {file.suffix for file in files}
    assert {".rdb", ".aof"} <= names, f"Valkey wrote {names}"
    for file in files:
        yield from _content(file)


def postgres_rows(stack: Stack) -> Iterator[bytes]:
    """Every row of every table, as text."""
    tables = stack.postgres.execute(
        "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables "
        "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    ).split()
    assert {name.partition(".")[0] for name in tables} >= {"auth", "match", "ranking"}
    yield from cut([stack.postgres.execute("".join(f"COPY {table} TO STDOUT;\n" for table in tables)).encode()])


def postgres_files(stack: Stack) -> Iterator[bytes]:
    """The data directory with the write-ahead log, after everything in memory was written."""
    stack.postgres.execute("CHECKPOINT")
    directory = Path(stack.postgres.execute("SHOW data_directory").strip())
    files = list(_files(directory))
    assert any(file.parent.name == "pg_wal" for file in files)
    for file in files:
        yield from _content(file)


def log_files(stack: Stack) -> dict[str, Path]:
    """What each process wrote, by process."""
    return {file.stem: file for file in stack.logs.glob("*.log")}


def log(file: Path) -> Iterator[bytes]:
    """What one process wrote."""
    yield from _content(file)


def metrics(stack: Stack, service: str) -> Iterator[bytes]:
    """What a service tells its monitoring."""
    with urllib.request.urlopen(stack.plan.probe_url(service).replace("/readyz", "/metrics"), timeout=30) as answer:
        yield from cut([answer.read()])


@contextmanager
def paused(stack: Stack) -> Iterator[dict[str, list[int]]]:
    """Stop every process of the system, children too, and give their numbers; they go on afterwards."""
    children = _families()
    pids = {name: _family(stack.pid(name), children) for name in PROCESSES}
    stopped = [pid for family in pids.values() for pid in family]
    try:
        for pid in stopped:
            _signal(pid, signal.SIGSTOP)
        yield pids
    finally:
        for pid in stopped:
            _signal(pid, signal.SIGCONT)


def memory(pid: int, seen: set[tuple[str, str, str]]) -> Iterator[bytes]:
    """The memory of a process: all that it can read, but what is only a file's content.

    Shared memory is given once; `seen` remembers it from process to process.
    """
    with _as_owner(pid):
        try:
            mappings = list(_mappings(pid))
            file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            return  # it has ended: a worker of Postgres
    try:
        for mapping in mappings:
            if mapping.is_shared and mapping.identity in seen:
                continue
            seen.add(mapping.identity)
            for at in range(mapping.start, mapping.end, _CHUNK):
                size = min(_CHUNK + OVERLAP, mapping.end - at)
                data = os.pread(file, size, at)
                assert len(data) == size, f"memory of process {pid} at {at:x} cannot be read"
                yield data
    finally:
        os.close(file)


@dataclass(frozen=True)
class _Mapping:
    start: int
    end: int
    is_shared: bool
    identity: tuple[str, str, str]


def _mappings(pid: int) -> Iterator[_Mapping]:
    """The readable mappings that hold anything of the process's own (proc(5), smaps)."""
    head: list[str] = []
    amounts: dict[str, int] = {}
    lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    for line in [*lines, "0-0 ---p 0 0 0"]:
        fields = line.split()
        if fields[0].endswith(":"):
            if fields[1].isdigit():
                amounts[fields[0]] = int(fields[1])
            continue
        if head and _is_own(head, amounts):
            start, end = (int(text, 16) for text in head[0].split("-"))
            yield _Mapping(start, end, head[1].endswith("s"), (head[3], head[4], head[2]))
        head, amounts = fields, {}


def _is_own(head: list[str], amounts: dict[str, int]) -> bool:
    permissions, inode, path = head[1], head[4], " ".join(head[5:])
    if not permissions.startswith("r") or path in _UNREADABLE or not amounts["Rss:"]:
        return False
    is_file_only = inode != "0" and permissions.endswith("p") and not amounts["Anonymous:"]
    return not is_file_only


@contextmanager
def _as_owner(pid: int) -> Iterator[None]:
    """Look at another user's process as that user: Postgres does not run as root, and root may lack CAP_SYS_PTRACE."""
    libc, owner = ctypes.CDLL(None), Path(f"/proc/{pid}").stat()
    user, group = libc.setfsuid(-1), libc.setfsgid(-1)
    if os.geteuid() != 0 or owner.st_uid == user:
        yield
        return
    libc.setfsgid(owner.st_gid)
    libc.setfsuid(owner.st_uid)
    try:
        yield
    finally:
        libc.setfsuid(user)
        libc.setfsgid(group)


def _families() -> dict[int, list[int]]:
    """The children of every process (proc(5), stat: the parent is the second field after the name)."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(parent), []).append(int(entry.name))
    return children


def _family(pid: int, children: dict[int, list[int]]) -> list[int]:
    return [pid, *(one for child in children.get(pid, ()) for one in _family(child, children))]


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has ended: a worker of Postgres


def _directory(client: Redis) -> Path:
    return Path(str(client.config_get("dir")["dir"]))


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file())


def _content(file: Path) -> Iterator[bytes]:
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        return  # a temporary file, gone since it was listed
    with opened:
        yield from cut(iter(lambda: opened.read(_CHUNK), b""))
