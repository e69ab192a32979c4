"""One lobby on a real Valkey with a clock moved by hand; and a whole lobby process behind gRPC."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from koikoi.auth.v1 import auth_service_pb2 as auth_pb
from koikoi.auth.v1 import auth_service_pb2_grpc as auth_grpc
from koikoi.lobby.v1 import lobby_service_pb2_grpc as pb_grpc
from redis.asyncio import Redis

from services.kit import postgres
from services.kit.app import App
from services.kit.limits import Limiter
from services.kit.redis import open_client
from services.kit.tokens import SigningKeys
from services.lobby.app import build
from services.lobby.conduct import Conducts
from services.lobby.domain.choices import Choice
from services.lobby.domain.rooms import Player, Visibility
from services.lobby.doorkeeper import Doorkeeper
from services.lobby.holds import Holds
from services.lobby.hosting import Hosting
from services.lobby.passwords import ArgonPasswords
from services.lobby.seating import Seating
from services.lobby.service import ROOM_LIFE_MS, Lobby, Wish
from services.lobby.store.blocks import PostgresBlocks
from services.lobby.store.conduct import PostgresMarks
from services.lobby.store.index import RedisIndex
from services.lobby.store.presence import RedisPresence
from services.lobby.store.rooms import RedisRooms
from services.lobby.sweeper import Sweeper
from tests.harness import FakeClock, Issuer, make_caller

ISSUER = "https://lobby.koikoi/development"
_numbers = itertools.count(1)


def player(name: str = "花子", *, account_id: str | None = None, device_key: bytes | None = None) -> Player:
    """A player with an account and a device of their own."""
    number = next(_numbers)
    return Player(account_id or f"account-{number}", device_key or number.to_bytes(32, "big"), name, "crane")


def wish(
    *,
    password: str = "",
    preset: str = "house",
    rounds: int = 0,
    request_id: str | None = None,
    is_public: bool = True,
    **others: bool,
) -> Wish:
    visibility = Visibility.PUBLIC if is_public else Visibility.UNLISTED
    return Wish(visibility, password, Choice(preset, rounds), request_id or f"request-{next(_numbers)}", **others)


def somewhere() -> str:
    """An address that nobody else has."""
    number = next(_numbers)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@dataclass
class Bench:
    """A lobby and everything under it."""

    client: Redis
    clock: FakeClock
    passwords: ArgonPasswords
    blocks: PostgresBlocks
    marks: PostgresMarks
    directory: Path
    events: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rooms = RedisRooms(self.client, ROOM_LIFE_MS)
        self.index = RedisIndex(self.client, ROOM_LIFE_MS)
        self.presence = RedisPresence(self.client, ROOM_LIFE_MS)
        self.limits = Limiter(self.client, self.clock, "lobby:limit:")
        self.keys = self.signing_keys("keys")
        self.sweeper = Sweeper(self.rooms, self.index, self.clock)
        self.lobby = self.process()
        self.hosting = self.hosting_process()

    def signing_keys(self, name: str) -> SigningKeys:
        return SigningKeys(self.directory / name, self.clock, create=True)

    def now(self) -> int:
        return int(self.clock.now() * 1000)

    def process(self, **changes: object) -> Lobby:
        """Another process of the same lobby, with some parts of its own."""
        parts = self.parts(**changes)
        names = (
            "rooms",
            "index",
            "blocks",
            "passwords",
            "doorkeeper",
            "holds",
            "seating",
            "conducts",
            "clock",
            "count",
            "choose",
        )
        return Lobby(**{name: parts[name] for name in names if name in parts})  # type: ignore[arg-type]

    def hosting_process(self, **changes: object) -> Hosting:
        parts = self.parts(**changes)
        names = ("rooms", "presence", "blocks", "limits", "holds", "seating", "clock", "count")
        return Hosting(**{name: parts[name] for name in names})  # type: ignore[arg-type]

    def parts(self, **changes: object) -> dict[str, object]:
        one: dict[str, object] = {
            "rooms": self.rooms,
            "index": self.index,
            "presence": self.presence,
            "blocks": self.blocks,
            "passwords": self.passwords,
            "limits": self.limits,
            "signer": self.keys,
            "conducts": Conducts(self.marks, 300.0, self.clock),
            "clock": self.clock,
            "count": lambda event: self.events.update([event]),
            **changes,
        }
        rooms, index = one["rooms"], one["index"]
        one["holds"] = Holds(rooms, index, self.clock)  # type: ignore[arg-type]
        one["doorkeeper"] = Doorkeeper(rooms, one["passwords"], one["limits"], self.clock)  # type: ignore[arg-type]
        shared = {name: one[name] for name in ("rooms", "index", "holds", "signer", "clock", "count")}
        one["seating"] = Seating(issuer=ISSUER, **shared)  # type: ignore[arg-type]
        return one


@pytest.fixture
async def bench(
    redis_url: str, database_url: Callable[..., str], fake_clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Bench]:
    client, passwords = open_client(redis_url, max_connections=200), ArgonPasswords()
    pool = await postgres.open_pool(database_url("lobby"), schema="lobby")
    yield Bench(client, fake_clock, passwords, PostgresBlocks(pool), PostgresMarks(pool), tmp_path)
    passwords.close()
    await pool.close()
    await client.aclose()


class AuthKeys(auth_grpc.AuthServiceServicer):
    """Auth's one method that lobby calls."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer

    async def GetKeySet(self, request: auth_pb.GetKeySetRequest, context: object) -> auth_pb.GetKeySetResponse:
        return auth_pb.GetKeySetResponse(jwks=self.issuer.keys.jwks())


@dataclass
class Process:
    """A lobby behind gRPC."""

    stub: pb_grpc.LobbyServiceStub
    app: App
    bearer: Callable[..., list[tuple[str, str]]]

    @property
    def ports(self) -> dict[str, int]:
        return self.app.ports

    def newcomer(self, name: str = "Taro", **others: object) -> list[tuple[str, str]]:
        """Metadata of somebody new."""
        return self.bearer(make_caller(name, **others))  # type: ignore[arg-type]


@pytest.fixture
async def auth_target(issuer: Issuer) -> AsyncIterator[str]:
    server = grpc.aio.server()
    auth_grpc.add_AuthServiceServicer_to_server(AuthKeys(issuer), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


@pytest.fixture
def start_lobby(
    redis_url: str,
    database_url: Callable[..., str],
    issuer: Issuer,
    auth_target: str,
    fake_clock: FakeClock,
    tmp_path: Path,
):
    """`async with start_lobby() as process`: a whole lobby process on free ports; settings as for the launcher."""

    @asynccontextmanager
    async def start(**settings: str) -> AsyncIterator[Process]:
        values = {
            "redis_url": redis_url,
            "database_url": database_url("lobby"),
            "key_directory": str(tmp_path / "lobby-keys"),
            "auth_target": auth_target,
            "grpc_address": "127.0.0.1:0",
            "metrics_address": "127.0.0.1:0",
            "presence_period_s": "0.1",
            **settings,
        }
        environ = {f"KOIKOI_LOBBY_{name.upper()}": value for name, value in values.items()}
        async with (
            build(environ, clock=fake_clock) as app,
            grpc.aio.insecure_channel(f"127.0.0.1:{app.ports['grpc']}") as channel,
        ):
            yield Process(pb_grpc.LobbyServiceStub(channel), app, issuer.bearer)

    return start


@pytest.fixture
async def process(start_lobby) -> AsyncIterator[Process]:
    async with start_lobby() as process:
        yield process
