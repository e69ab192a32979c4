"""What the services made of a match: the relay's row, the ranking's answers, the leaderboard."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from koikoi.ranking.v1 import ranking_service_pb2 as ranking_pb
from koikoi.ranking.v1 import ranking_service_pb2_grpc
from koikoi_sdk.table import Ending, Statement

from tests.e2e.cheaters import Affair
from tools.stack import Stack

__all__ = ["claimed", "leaderboard", "record", "refused", "results"]


async def record(stack: Stack, match_id: str) -> str:
    """Wait for the relay's row of a match: outcome, seat charged, reason."""
    statement = f"SELECT outcome, seat, dispute_reason FROM match.ended_match WHERE match_id = '{match_id}'"
    async with asyncio.timeout(30):
        while not (row := await asyncio.to_thread(stack.postgres.execute, statement)):
            await asyncio.sleep(0.1)
    return row.strip()


async def leaderboard(stack: Stack) -> ranking_pb.GetLeaderboardResponse:
    async with grpc.aio.insecure_channel(stack.plan.addresses["KOIKOI_RANKING_GRPC_ADDRESS"]) as channel:
        stub = ranking_service_pb2_grpc.RankingServiceStub(channel)
        return await stub.GetLeaderboard(ranking_pb.GetLeaderboardRequest(page_size=200))


async def refused(
    stack: Stack, contract: str, statement: bytes, signatures: list[bytes], address: str
) -> tuple[str, str]:
    """Hand a result in; returns the reason of the refusal and the seat it names."""
    request = ranking_pb.SubmitResultRequest(contract=contract, statement=statement, signatures=signatures)
    async with grpc.aio.insecure_channel(stack.plan.addresses["KOIKOI_RANKING_GRPC_ADDRESS"]) as channel:
        stub = ranking_service_pb2_grpc.RankingServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.SubmitResult(request, metadata=[("x-forwarded-for", address)])
    return reason_of(caught.value)


def reason_of(error: grpc.aio.AioRpcError) -> tuple[str, str]:
    status = rpc_status.from_call(error)
    assert status is not None, error
    info = error_details_pb2.ErrorInfo()
    assert any(detail.Unpack(info) for detail in status.details), status
    return info.reason, info.metadata.get("seat", "")


def claimed(affair: Affair) -> Statement:
    """What the match came to or, before its end, that the honest seat gave it up."""
    if (signed := affair.cheater._state.statement) is not None:
        return signed
    state, channel = affair.cheater._state, affair.cheater._state.channel
    return Statement(
        contract_hash=affair.cheater.contract.hash,
        session_id=channel.session_id if channel else bytes(32),
        ending=Ending.RESIGNED,
        winner=affair.cheater.seat,
        points=affair.cheater._table.points,
        rounds=state.results,
        head=state.head.ljust(32, b"\0"),
    )


async def results(stack: Stack, match_id: str) -> int:
    """How often the ranking recorded a match."""
    rows = f"SELECT count(*) FROM ranking.result WHERE match_id = '{match_id}'"
    return int(await asyncio.to_thread(stack.postgres.execute, rows))
