"""The embedded servers: they die with their parent, keep their data, and heal what kill -9 left behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import asyncpg
import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from tests.integration.tools.processes import living, wait_gone
from tools.embedded import EmbeddedError, Lock, Postgres, Valkey, socket_directory

LAUNCHER = """
    import sys, time
    from pathlib import Path
    from tools.embedded import Postgres, Valkey
    directory = Path(sys.argv[1])
    postgres, valkey = Postgres(directory), Valkey(directory)
    postgres.start(); valkey.start()
    print(postgres.child.pid, valkey.child.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def directory():
    path = Path(tempfile.mkdtemp(prefix="koikoi-test-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def launch(directory: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LAUNCHER), str(directory)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert len(process.stdout.readline().split()) == 2
    return process


def test_nothing_survives_a_launcher_that_was_killed(directory):
    for _ in range(3):  # and each start heals what the kill before left
        process = launch(directory)
        assert len(living(directory)) >= 3
        process.kill()
        process.communicate()
        wait_gone(directory)
    postgres = Postgres(directory)
    postgres.start()
    assert postgres.execute("SELECT 1") == "1\n"
    postgres.stop()


def test_data_survives_a_clean_stop_and_a_kill(directory):
    postgres, valkey = Postgres(directory), Valkey(directory)
    for round_ in range(3):
        postgres.start()
        valkey.start()
        with Redis.from_url(valkey.url) as client:
            assert client.get("kept") == (None if round_ == 0 else b"value")
            client.set("kept", "value")
            if round_ == 0:
                postgres.execute("CREATE TABLE public.kept AS SELECT 7 AS n")
            assert postgres.execute("SELECT n FROM public.kept") == "7\n"
            if round_ == 1:
                time.sleep(1.2)  # the append-only file is written every second
                valkey.kill()
                postgres.kill()
        valkey.stop()
        postgres.stop()
    wait_gone(directory)


@pytest.mark.parametrize("name", ["c++ #1 100%41", "what?a=b&c=d;e", 'it\'s "花札" [1] *', "one,two"])
async def test_a_directory_may_have_any_name(directory, name):
    place = directory / name
    postgres, valkey = Postgres(place, durable=False), Valkey(place, durable=False)
    try:
        postgres.start()
        valkey.start()
        async with AsyncRedis.from_url(valkey.url) as client:
            assert await client.ping()
        connection = await asyncpg.connect(postgres.url("auth"))
        assert await connection.fetchval("SELECT current_user") == "auth"
        await connection.close()
    finally:
        valkey.stop()
        postgres.stop()
        if not postgres.sockets.is_relative_to(place):
            shutil.rmtree(postgres.sockets, ignore_errors=True)


def test_killing_the_server_itself_is_healed_by_the_next_start(directory):
    postgres = Postgres(directory, durable=False)
    postgres.start()
    postgres.execute("CREATE TABLE public.kept (n int); INSERT INTO public.kept VALUES (7)")
    postgres.child.kill()
    assert postgres.has_ended
    assert (directory / "postgres" / "postmaster.pid").exists()
    postgres.start()
    assert postgres.execute("SELECT n FROM public.kept") == "7\n"
    postgres.stop()


def test_a_pid_file_that_names_a_living_stranger_is_no_obstacle(directory):
    postgres = Postgres(directory, durable=False)
    postgres.start()
    postgres.child.kill()
    pid_file = directory / "postgres" / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        postgres.start()
        postgres.stop()
        assert stranger.poll() is None, "the stranger was left alone"
    finally:
        stranger.kill()
        stranger.wait()


def test_half_made_data_is_made_again(directory):
    draft = directory / "postgres.draft"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18")
    postgres = Postgres(directory, durable=False)
    postgres.start()
    assert not draft.exists()
    postgres.stop()


def test_nobody_else_can_reach_the_sockets(directory):
    postgres, valkey = Postgres(directory, durable=False), Valkey(directory, durable=False)
    postgres.start()
    valkey.start()
    try:
        for place in (postgres.sockets, directory / "postgres", directory / "valkey"):
            assert place.stat().st_mode & 0o077 == 0
        inside = {name for name in Path("/proc/net/tcp").read_text().split() if name.endswith(":1538")}
        assert not inside, "Postgres does not listen on TCP"
    finally:
        valkey.stop()
        postgres.stop()


def test_a_deep_checkout_gets_a_short_socket_path(directory):
    deep = directory.joinpath(*["d" * 40] * 5)
    postgres, valkey = Postgres(deep, durable=False), Valkey(deep, durable=False)
    try:
        postgres.start()
        valkey.start()
        assert len(str(valkey.socket)) < 100
        assert len(str(postgres.sockets / ".s.PGSQL.5432.lock")) < 100
        assert socket_directory(deep) == postgres.sockets, "the same again at the next start"
    finally:
        valkey.stop()
        postgres.stop()
        shutil.rmtree(postgres.sockets, ignore_errors=True)


def test_one_process_at_a_time_uses_a_directory(directory):
    lock = Lock(directory)
    with pytest.raises(EmbeddedError, match="stop it first"):
        Lock(directory)
    lock.release()
    Lock(directory).release()


def test_a_server_that_cannot_start_says_why(directory):
    (directory / "postgres").mkdir(parents=True)
    (directory / "postgres" / "PG_VERSION").write_text("9.6\n")
    postgres = Postgres(directory)
    with pytest.raises(EmbeddedError, match="Postgres does not start"):
        postgres.start()
    assert postgres.has_ended, "a watcher must try again"
    wait_gone(directory)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may become nobody")
def test_as_root_without_user_namespaces_it_runs_as_nobody(directory, monkeypatch):
    monkeypatch.setattr("tools.embedded._postgres_identity", lambda: "nobody")
    postgres = Postgres(directory, durable=False)
    try:
        postgres.start()
        assert Path(f"/proc/{postgres.child.pid}").stat().st_uid == 65534
        postgres.execute("CREATE TABLE public.kept AS SELECT 7 AS n")
        postgres.stop()
        postgres.start()
        assert postgres.execute("SELECT n FROM public.kept") == "7\n"
        os.kill(postgres.child.pid, signal.SIGKILL)
        postgres.child.process.wait()
        postgres.start()
    finally:
        postgres.stop()
        shutil.rmtree(postgres._root.parent, ignore_errors=True)
