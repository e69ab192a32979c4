"""A relay with real stores, a stand-in for lobby's keys, and both doors."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as lobby_pb

from services.kit.app import App
from services.kit.clock import Clock, SystemClock
from services.match.app import build
from tests.harness import Issuer, running_app
from tests.integration.match.raw_client import Game, RawClient, dial_grpc, dial_websocket, envelope, hello, make_game

DOOR = "relay.test:443"
LOBBY_ISSUER = "https://lobby.koikoi/development"


@pytest.fixture
def lobby(tmp_path: Path) -> Issuer:
    return Issuer(tmp_path / "lobby-keys", SystemClock(), LOBBY_ISSUER)


@asynccontextmanager
async def serving_keys(lobby: Issuer) -> AsyncIterator[str]:
    """Serve LobbyService.GetKeySet."""

    async def get_key_set(_request: Any, _context: Any) -> lobby_pb.GetKeySetResponse:
        return lobby_pb.GetKeySetResponse(jwks=lobby.keys.jwks())

    handler = grpc.unary_unary_rpc_method_handler(
        get_key_set,
        request_deserializer=lobby_pb.GetKeySetRequest.FromString,
        response_serializer=lobby_pb.GetKeySetResponse.SerializeToString,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("koikoi.lobby.v1.LobbyService", {"GetKeySet": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@dataclass
class Place:
    """Starts relay processes on one Redis and one Postgres, and dials them."""

    lobby: Issuer
    settings: dict[str, str]
    stack: AsyncExitStack
    door: str = "websocket"

    async def start(self, **settings: str) -> App:
        return await self.stack.enter_async_context(running_app("match", **{**self.settings, **settings}))

    async def start_at(self, clock: Clock, **settings: str) -> App:
        """Start a process whose machine has its own idea of the time."""
        environ = {"grpc_address": "127.0.0.1:0", "websocket_address": "127.0.0.1:0", "metrics_address": "127.0.0.1:0"}
        environ.update(self.settings, **settings)
        named = {f"KOIKOI_MATCH_{name.upper()}": value for name, value in environ.items()}
        return await self.stack.enter_async_context(build(named, clock=clock))

    async def dial(self, app: App, match_id: str, door: str | None = None) -> RawClient:
        door = door or self.door
        client: RawClient
        if door == "websocket":
            client = await dial_websocket(app.ports["websocket"], match_id)
        else:
            client = await dial_grpc(app.ports["grpc"], match_id)
        self.stack.push_async_callback(client.hang_up)
        return client

    async def enter(self, app: App, game: Game, seat: int, *, position: int = 0, epoch: bytes = b"") -> RawClient:
        client = await self.dial(app, game.match_id)
        await client.join(game, seat, DOOR, position=position, epoch=epoch)
        return client

    async def pair(self, app: App, game: Game) -> list[RawClient]:
        """Join both seats; returns them in the order A, B."""
        clients = []
        for seat in game.order:
            client = await self.enter(app, game, seat)
            await client.expect("welcome")
            clients.append(client)
        return clients

    def game(self, **changes: Any) -> Game:
        return make_game(self.lobby, **changes)


@pytest.fixture(params=["websocket", "grpc"])
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def place(
    lobby: Issuer, database_url: Callable[..., str], redis_url: str, tmp_path: Path
) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(serving_keys(lobby))
        settings = {
            "database_url": database_url("match"),
            "redis_url": redis_url,
            "key_directory": str(tmp_path / "match-keys"),
            "lobby_target": target,
            "door_names": DOOR,
            "sweep_s": "0.1",
        }
        yield Place(lobby, settings, stack)


async def eventually(check: Callable[[], Awaitable[bool]], within_s: float = 5.0) -> None:
    async with asyncio.timeout(within_s):
        while not await check():
            await asyncio.sleep(0.05)


async def begin(place: Place, apps: Sequence[App], game: Game) -> list[RawClient]:
    """A on the first process, B on the last; both HELLOs sent; A owes number 2."""
    clients: list[RawClient] = []
    for app, seat in zip((apps[0], apps[-1]), game.order, strict=True):
        clients.append(await place.enter(app, game, seat))
        await clients[-1].expect("welcome")
    await clients[0].send(**envelope(0, 0, hello()))
    await clients[1].expect("envelope")
    await clients[1].send(**envelope(1, 0, hello()))
    await clients[0].expect("envelope")
    return clients
