"""Ranking in this process on a real Postgres and a real Valkey, with a lobby that only tells its keys."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from koikoi.auth.v1 import auth_service_pb2, auth_service_pb2_grpc
from koikoi.lobby.v1 import lobby_service_pb2, lobby_service_pb2_grpc
from koikoi.ranking.v1 import ranking_service_pb2 as pb
from koikoi.ranking.v1 import ranking_service_pb2_grpc

from services.kit.app import App
from services.ranking.app import build
from tests.harness import FakeClock, Issuer
from tests.unit.ranking.cases import CONTRACT_TYP, LOBBY_ISSUER, NOW, Game


class KeyTeller(lobby_service_pb2_grpc.LobbyServiceServicer):
    """The one thing ranking asks of the lobby."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.calls = 0

    async def GetKeySet(self, request, context):
        self.calls += 1
        return lobby_service_pb2.GetKeySetResponse(jwks=self.issuer.keys.jwks())


class AuthKeyTeller(auth_service_pb2_grpc.AuthServiceServicer):
    """The one thing ranking asks of auth."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.is_away = False

    async def GetKeySet(self, request, context):
        if self.is_away:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        return auth_service_pb2.GetKeySetResponse(jwks=self.issuer.keys.jwks())


@dataclass
class Refused(Exception):
    """What a client sees of a refusal."""

    code: grpc.StatusCode
    reason: str
    metadata: dict[str, str]
    retry_after_s: float | None


@dataclass
class Bench:
    """A running ranking, and what a test needs around it."""

    app: App
    stub: Any
    lobby: Issuer
    auth: Issuer
    teller: KeyTeller
    auth_teller: "AuthKeyTeller"
    clock: FakeClock
    environ: dict[str, str]
    database: str

    def sign(self, game: Game, *, issuer: Issuer | None = None, typ: str = CONTRACT_TYP) -> str:
        return (issuer or self.lobby).keys.sign(game.payload, typ)

    async def submit(self, game: Game, *, contract: str | None = None, metadata=(), **changes: Any) -> pb.MatchResult:
        """Hand in a game; a refusal is raised as `Refused`."""
        game = replace(game, **changes)
        request = pb.SubmitResultRequest(
            contract=contract or self.sign(game), statement=game.statement, signatures=game.signatures
        )
        return (await self.call(self.stub.SubmitResult(request, metadata=metadata))).result

    async def call(self, call: Awaitable[Any]) -> Any:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise read_refusal(error) from None

    async def rating(self, account_id: str) -> pb.LeaderboardEntry:
        return (await self.call(self.stub.GetRating(pb.GetRatingRequest(account_id=account_id)))).entry

    async def board(self, page_size: int = 0, page_token: str = "") -> pb.GetLeaderboardResponse:
        request = pb.GetLeaderboardRequest(page_size=page_size, page_token=page_token)
        return await self.call(self.stub.GetLeaderboard(request))

    async def around(self, account_id: str, **wanted: int) -> pb.GetLeaderboardAroundResponse:
        request = pb.GetLeaderboardAroundRequest(account_id=account_id, **wanted)
        return await self.call(self.stub.GetLeaderboardAround(request))

    async def results(self, account_id: str, **query: Any) -> pb.ListMatchResultsResponse:
        return await self.call(self.stub.ListMatchResults(pb.ListMatchResultsRequest(account_id=account_id, **query)))

    async def result(self, match_id: str) -> pb.MatchResult:
        return (await self.call(self.stub.GetMatchResult(pb.GetMatchResultRequest(match_id=match_id)))).result

    async def history(self, account_id: str, **query: Any) -> pb.GetRatingHistoryResponse:
        return await self.call(self.stub.GetRatingHistory(pb.GetRatingHistoryRequest(account_id=account_id, **query)))

    async def rows(self, query: str, *arguments: Any) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.database)
        try:
            return await connection.fetch(query, *arguments)
        finally:
            await connection.close()

    async def count(self, table: str) -> int:
        return (await self.rows(f"SELECT count(*) AS n FROM {table}"))[0]["n"]


def read_refusal(error: grpc.aio.AioRpcError) -> Refused:
    status = rpc_status.from_call(error)
    assert status is not None, f"{error.code()} {error.details()} came without details"
    reason, metadata, retry_after_s = "", {}, None
    for detail in status.details:
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            assert info.domain == "ranking.koikoi"
            reason, metadata = info.reason, dict(info.metadata)
        if detail.Unpack(retry):
            retry_after_s = retry.retry_delay.ToTimedelta().total_seconds()
    return Refused(error.code(), reason, metadata, retry_after_s)


@asynccontextmanager
async def serve_keys(lobby: KeyTeller, auth: AuthKeyTeller) -> AsyncIterator[str]:
    server = grpc.aio.server()
    lobby_service_pb2_grpc.add_LobbyServiceServicer_to_server(lobby, server)
    auth_service_pb2_grpc.add_AuthServiceServicer_to_server(auth, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def connect(app: App) -> AsyncIterator[Any]:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{app.ports['grpc']}") as channel:
        yield ranking_service_pb2_grpc.RankingServiceStub(channel)


@pytest.fixture
async def bench(database_url: Callable[..., str], redis_url: str, tmp_path: Path) -> AsyncIterator[Bench]:
    clock = FakeClock(NOW + 60)
    lobby = Issuer(tmp_path / "lobby-keys", clock, LOBBY_ISSUER)
    auth = Issuer(tmp_path / "auth-keys", clock)
    teller, auth_teller = KeyTeller(lobby), AuthKeyTeller(auth)
    database = database_url("ranking")
    async with serve_keys(teller, auth_teller) as target:
        environ = {
            "KOIKOI_ENVIRONMENT": "development",
            "KOIKOI_RANKING_DATABASE_URL": database,
            "KOIKOI_RANKING_REDIS_URL": redis_url,
            "KOIKOI_RANKING_GRPC_ADDRESS": "127.0.0.1:0",
            "KOIKOI_RANKING_METRICS_ADDRESS": "127.0.0.1:0",
            "KOIKOI_RANKING_LOBBY_TARGET": target,
            "KOIKOI_RANKING_AUTH_TARGET": target,
            "KOIKOI_RANKING_SUBMISSIONS_PER_MINUTE": "1000000",
            "KOIKOI_RANKING_READS_PER_MINUTE": "1000000",
        }
        async with (
            build(environ, clock=clock) as app,
            grpc.aio.insecure_channel(f"127.0.0.1:{app.ports['grpc']}") as ch,
        ):
            stub = ranking_service_pb2_grpc.RankingServiceStub(ch)
            yield Bench(app, stub, lobby, auth, teller, auth_teller, clock, environ, database)
