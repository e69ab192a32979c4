"""Lobby processes that are killed with -9 under those who watch rooms there."""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from koikoi.auth.v1 import auth_service_pb2_grpc as auth_grpc
from koikoi.lobby.v1 import lobby_service_pb2_grpc as pb_grpc

from services.kit.clock import SystemClock
from services.lobby.service import ROOM_LIFE_MS
from tests.harness import Issuer
from tests.integration.lobby.conftest import AuthKeys, Process
from tests.integration.lobby.watchers import joined, opened, watching, watching_list


@pytest.fixture
async def real_issuer(tmp_path: Path) -> AsyncIterator[tuple[Issuer, str]]:
    """auth's stand-in on the clock of the machine, for processes of their own."""
    issuer = Issuer(tmp_path / "real-auth-keys", SystemClock())
    server = grpc.aio.server()
    auth_grpc.add_AuthServiceServicer_to_server(AuthKeys(issuer), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield issuer, f"127.0.0.1:{port}"
    await server.stop(0)


@pytest.fixture
def spawn_lobby(redis_url: str, database_url: Callable[..., str], real_issuer: tuple[Issuer, str], tmp_path: Path):
    issuer, auth_target = real_issuer

    @asynccontextmanager
    async def spawn() -> AsyncIterator[tuple[Process, asyncio.subprocess.Process]]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environ = {
            "PYTHONPATH": ":".join(path for path in sys.path if path),
            "KOIKOI_PARENT_DEATH_SIGNAL": "1",
            "KOIKOI_LOBBY_REDIS_URL": redis_url,
            "KOIKOI_LOBBY_DATABASE_URL": database_url("lobby"),
            "KOIKOI_LOBBY_KEY_DIRECTORY": str(tmp_path / "lobby-keys"),
            "KOIKOI_LOBBY_AUTH_TARGET": auth_target,
            "KOIKOI_LOBBY_GRPC_ADDRESS": f"127.0.0.1:{port}",
            "KOIKOI_LOBBY_METRICS_ADDRESS": "127.0.0.1:0",
        }
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services.lobby", env=environ, stdout=asyncio.subprocess.DEVNULL
        )
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                await asyncio.wait_for(channel.channel_ready(), 30)
                yield Process(pb_grpc.LobbyServiceStub(channel), None, issuer.bearer), child  # type: ignore[arg-type]
        finally:
            if child.returncode is None:
                child.kill()
            await child.wait()

    return spawn


@pytest.mark.timeout(120)
async def test_a_host_that_comes_back_keeps_its_room_and_one_that_does_not_is_no_ghost(spawn_lobby):
    async with spawn_lobby() as (one, child), spawn_lobby() as (two, _):
        faithful, lost, guest = one.newcomer(), one.newcomer(), one.newcomer()
        kept, gone = (await opened(one, faithful)).room.code, (await opened(one, lost)).room.code
        async with (
            watching(one, faithful, kept) as first,
            watching(one, lost, gone) as other,
            watching_list(two, guest) as rooms,
        ):
            await first.view()
            await other.view()
            snapshot = (await rooms.until(lambda message: message.HasField("snapshot"))).snapshot
            assert {room.code for room in snapshot.rooms} == {kept, gone}
            child.kill()
            killed = time.monotonic()
            for tape in (first, other):
                error = await tape.end()
                assert error.code() is grpc.StatusCode.UNAVAILABLE
            async with watching(two, faithful, kept) as again:
                assert (await again.view()).room.is_host_present
                removed: list[str] = []
                while not removed:
                    await asyncio.sleep(0.5)
                    assert time.monotonic() - killed < ROOM_LIFE_MS / 1000 + 10, "a ghost stayed in the list"
                    removed = [code for said in rooms.said for code in said.change.removed_codes]
                assert removed == [gone]
                assert time.monotonic() - killed > ROOM_LIFE_MS / 1000 - 10
                answer = await joined(two, guest, kept)
                assert (await again.view(lambda view: view.contract)).contract == answer.contract


@pytest.mark.timeout(60)
async def test_sigterm_ends_streams_with_a_hint_and_the_process_in_time(spawn_lobby):
    async with spawn_lobby() as (process, child):
        host = process.newcomer()
        code = (await opened(process, host)).room.code
        async with watching(process, host, code) as tape:
            await tape.view()
            child.terminate()
            error = await tape.end()
            assert "going away" in error.details()
        assert await asyncio.wait_for(child.wait(), 15) == 0
