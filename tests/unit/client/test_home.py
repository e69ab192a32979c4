"""A device's directory: private, atomic, shared by processes that start at once."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import stat
from pathlib import Path

import pytest
from koikoi.auth.v1 import auth_service_pb2 as auth
from koikoi_sdk.client import home as home_module
from koikoi_sdk.client.account import Account
from koikoi_sdk.client.errors import LocalProtocolError, ServerError, StorageError
from koikoi_sdk.client.home import Home, default_directory, write_private

SPAWN = multiprocessing.get_context("spawn")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"KOIKOI_HOME": "/a", "XDG_DATA_HOME": "/b"}, Path("/a")),
        ({"XDG_DATA_HOME": "/b"}, Path("/b/koikoi")),
        ({}, Path.home() / ".local/share/koikoi"),
    ],
)
def test_where_it_is(environ: dict[str, str], expected: Path) -> None:
    assert default_directory(environ) == expected


def test_everything_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "a" / "b")
    home.device_key()
    home.save("session", {"x": 1})
    assert mode(home.directory) == mode(home.matches) == 0o700
    assert [mode(path) for path in home.directory.iterdir() if path.is_file()] == [0o600, 0o600]


def test_documents(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.load("session") is None
    home.save("session", {"x": "花"})
    assert home.load("session") == {"x": "花"}
    home.forget("session")
    home.forget("session")
    assert home.load("session") is None


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_private(path, b"old")

    def fail(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync", fail) if step == "fsync" else (Path, "replace", fail)))
    with pytest.raises(StorageError, match="No space left"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_sees_the_old_or_the_new_content(tmp_path: Path) -> None:
    path, contents = tmp_path / "file", [bytes([n]) * 50_000 for n in (1, 2)]
    write_private(path, contents[0])
    process = SPAWN.Process(target=_write_often, args=(path, contents))
    process.start()
    seen = set[bytes]()
    while process.is_alive():
        seen.add(path.read_bytes())
    process.join()
    assert process.exitcode == 0
    assert seen <= set(contents)


def _write_often(path: Path, contents: list[bytes]) -> None:
    for number in range(200):
        write_private(path, contents[number % 2])


def test_processes_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    with SPAWN.Pool(4) as pool:
        keys = pool.map(_public_key, [tmp_path] * 16, chunksize=1)
    assert len(set(keys)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["device.key"]


def _public_key(directory: Path) -> bytes:
    return Home(directory).device_key().public


def test_a_key_made_meanwhile_by_another_process_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, link = Home(tmp_path), os.link

    def late(source: Path, target: Path) -> None:
        target.write_bytes(b"k" * 32)
        link(source, target)

    monkeypatch.setattr(home_module.os, "link", late)
    home.device_key()
    assert (tmp_path / "device.key").read_bytes() == b"k" * 32
    assert len(list(tmp_path.iterdir())) == 1


async def test_one_lock_between_tasks_and_a_cancelled_wait_leaves_it(tmp_path: Path) -> None:
    home, inside = Home(tmp_path), 0

    async def enter() -> None:
        nonlocal inside
        async with home.lock("session"):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            inside -= 1

    async with home.lock("session"):
        waiting = asyncio.create_task(enter())
        await asyncio.sleep(0.05)
        waiting.cancel()
    async with asyncio.timeout(10):
        await asyncio.gather(*(enter() for _ in range(5)))


async def test_a_lock_is_held_between_processes_and_freed_by_death(tmp_path: Path) -> None:
    started = SPAWN.Event()
    process = SPAWN.Process(target=_hold, args=(tmp_path, started))
    process.start()
    assert await asyncio.to_thread(started.wait, 30)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1), Home(tmp_path).lock("session"):
            pass
    process.kill()
    async with asyncio.timeout(30), Home(tmp_path).lock("session"):
        process.join()


def _hold(directory: Path, started: object) -> None:
    async def hold() -> None:
        async with Home(directory).lock("session"):
            started.set()  # type: ignore[attr-defined]
            await asyncio.sleep(600)

    asyncio.run(hold())


class Service:
    """Stands for the gateway; renews a session once for each refresh token."""

    def __init__(self, failure: ServerError | None = None) -> None:
        self.calls: list[str] = []
        self._failure = failure

    async def call(self, method: str, request: object, answer_type: type) -> object:
        self.calls.append(method.rpartition("/")[2])
        await asyncio.sleep(0.01)
        if self._failure is not None:
            raise self._failure
        answer = answer_type()
        if isinstance(answer, auth.RefreshSessionResponse):
            answer.session.access_token, answer.session.refresh_token = "new", "next"
            answer.session.access_expire_time.seconds = 2000
        return answer


def signed_in(directory: Path, service: Service, now: float) -> Account:
    home = Home(directory)
    if home.load("session") is None:
        home.save(
            "session",
            {
                "account_id": "a", "display_name": "n", "issuer": "https://auth.koikoi/test", "access_token": "old",
                "access_expires": 1000, "refresh_token": "first",
            },
        )  # fmt: skip
    return Account(service, home, clock=lambda: now)  # type: ignore[arg-type]


@pytest.mark.parametrize(("now", "calls"), [(939.0, []), (941.0, ["RefreshSession"]), (5000.0, ["RefreshSession"])])
async def test_a_session_is_renewed_in_time(tmp_path: Path, now: float, calls: list[str]) -> None:
    service = Service()
    account = signed_in(tmp_path, service, now)
    await account.ensure_fresh()
    assert service.calls == calls
    assert service.access_token() == ("new" if calls else "old")  # type: ignore[attr-defined]


async def test_devices_processes_renew_a_session_once(tmp_path: Path) -> None:
    """A refresh token used twice would revoke the session."""
    services = [Service() for _ in range(4)]
    accounts = [signed_in(tmp_path, service, 950.0) for service in services]
    await asyncio.gather(*(account.ensure_fresh() for account in accounts))
    assert sum(len(service.calls) for service in services) == 1
    assert {service.access_token() for service in services} == {"new"}  # type: ignore[attr-defined]


async def test_a_revoked_session_is_forgotten_another_failure_is_not(tmp_path: Path) -> None:
    for code, is_kept in (("unavailable", True), ("unauthenticated", False)):
        account = signed_in(tmp_path, Service(ServerError("no", code=code)), 950.0)
        with pytest.raises(ServerError):
            await account.ensure_fresh()
        assert (Home(tmp_path).load("session") is not None) is is_kept
    with pytest.raises(LocalProtocolError, match="nobody is signed in"):
        await account.ensure_fresh()


async def test_signing_out_of_a_session_that_is_gone_forgets_it(tmp_path: Path) -> None:
    account = signed_in(tmp_path, Service(ServerError("no", code="unauthenticated")), 0.0)
    with pytest.raises(ServerError):  # the other devices were not signed out, and that must not pass in silence
        await account.sign_out(all_devices=True)
    await signed_in(tmp_path, Service(ServerError("no", code="unauthenticated")), 0.0).sign_out()
    assert Home(tmp_path).load("session") is None
    account = signed_in(tmp_path, Service(ServerError("no", code="unavailable")), 0.0)
    with pytest.raises(ServerError):
        await account.sign_out()
    assert Home(tmp_path).load("session") is not None
