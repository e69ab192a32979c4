"""A device that lets its opponent wait, through the real relay, has to wait at the lobby."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as pb
from koikoi.lobby.v1 import lobby_service_pb2_grpc as pb_grpc
from koikoi.match.v1 import match_service_pb2 as match_pb
from koikoi_sdk.client.account import Account
from koikoi_sdk.client.connect import ConnectClient
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.lobby import Lobby
from koikoi_sdk.poker import DeviceKey
from koikoi_sdk.table import Kind, Reason

from tests.e2e.cheaters import Lie, Opponents, play
from tests.e2e.test_refusing import hasty_relay, mute
from tests.harness import running_app
from tests.integration.lobby.test_lobby_rpc import create, refusal
from tests.unit.table.pair import has_teshi
from tools.stack import Stack

pytestmark = [pytest.mark.xdist_group("e2e-refusing"), pytest.mark.usefixtures("no_fault")]
PATIENCE_S = 30.0


def strict_lobby(stack: Stack):
    """A second lobby process on the same stores, with cool-downs: the stack of the tests has none."""
    return running_app(
        "lobby",
        database_url=stack.postgres.url("lobby"),
        redis_url=stack.valkey.url,
        key_directory=str(stack.directory / "keys" / "lobby"),
        auth_target=stack.plan.addresses["KOIKOI_AUTH_GRPC_ADDRESS"],
        cool_down_s="300",
    )


async def conduct_of(stack: Stack, home: Home) -> pb.GetMyConductResponse:
    async with ConnectClient(stack.plan.gateway_url) as client:
        return await Lobby(client, Account(client, home)).get_my_conduct()


async def bearer(stack: Stack, home: Home) -> list[tuple[str, str]]:
    async with ConnectClient(stack.plan.gateway_url) as client:
        await Account(client, home).ensure_fresh()
    session = home.load("session")
    assert session is not None
    return [("authorization", f"Bearer {session['access_token']}")]


async def test_a_staller_cools_down_and_its_opponent_does_not(stack: Stack, opponents: list[Opponents]):
    pair = opponents[0]
    homes = [Home(directory) for directory in pair.homes]
    before = [await conduct_of(stack, home) for home in homes]
    async with hasty_relay(stack) as doors:
        affair = await play(pair, Lie("the audit", Kind.AU1, mute, Reason.FORM, wish=has_teshi), doors)
    assert getattr(affair.honest_end, "outcome", None) == match_pb.OUTCOME_STALLED
    staller = 0 if is_key_of(homes[0], affair.cheater_key) else 1
    async with asyncio.timeout(PATIENCE_S):
        while (await conduct_of(stack, homes[staller])).charged != before[staller].charged + 1:
            await asyncio.sleep(0.5)
    honest = await conduct_of(stack, homes[1 - staller])
    assert honest.completed == before[1 - staller].completed + 1
    assert honest.charged == before[1 - staller].charged
    async with (
        strict_lobby(stack) as lobby,
        grpc.aio.insecure_channel(f"127.0.0.1:{lobby.ports['grpc']}") as channel,
    ):
        stub, says = pb_grpc.LobbyServiceStub(channel), await bearer(stack, homes[staller])
        code, info, retry_s = await refusal(stub.CreateRoom(create(leave_other=True), metadata=says))
        assert (code, info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "COOLING_DOWN")
        assert retry_s is not None and retry_s > 60
        friendly = create(rules=pb.Rules(preset="nintendo"), leave_other=True)
        room = (await stub.CreateRoom(friendly, metadata=says)).room
        assert room.host_completion_percent < 100
        mine = await stub.GetMyConduct(pb.GetMyConductRequest(), metadata=says)
        assert mine.cool_down_end_time.seconds > room.create_time.seconds
        await stub.LeaveRoom(pb.LeaveRoomRequest(code=room.code, request_id="leave"), metadata=says)


def is_key_of(home: Home, key: DeviceKey) -> bool:
    return home.device_key().public == key.public
