"""A device is revoked in mid-match: its live streams end within 5 s everywhere, and its opponent is told."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import struct
import time
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from koikoi.match.v1 import match_service_pb2 as pb

from services.gateway.documents import DOCUMENT
from tests.integration.gateway.players import AUTH, LOBBY, READ, Player, put_in
from tests.integration.match.raw_client import Game, RawClient, dial_grpc, dial_websocket, envelope, hello, sealed
from tools.stack import Stack

pytestmark = [pytest.mark.xdist_group("e2e"), pytest.mark.usefixtures("no_fault")]
LIMIT_S = 5.0
LOST = 0
"""The seat of the revoked device: it opens the room."""


class Device(Player):
    """A player whose account may be known already, which the example of SignIn does not show."""

    async def follow(self, method: str, **live: Any) -> dict[str, Any]:
        answer: dict[str, Any] = await self.post(method, put_in(READ[method]["request"], live))
        return answer


@dataclass
class Table:
    """A running match: the owner's two devices, the opponent, and both seats' connections."""

    owner: Player
    lost: Player
    opponent: Player
    game: Game
    seats: list[RawClient]

    async def revoke_lost(self) -> float:
        """Revoke the lost device from the other one; gives when."""
        devices = (await self.owner.post(f"{AUTH}/ListDevices", {}))["devices"]
        [lost_id] = [one["deviceId"] for one in devices if one["deviceId"] == device_id_of(self.lost.token)]
        started = time.monotonic()
        request = {"deviceId": lost_id, "requestId": secrets.token_hex(8)}
        assert (await self.owner.post(f"{AUTH}/RevokeDevice", request))["hasEndedSession"]
        return started


def device_id_of(access_token: str) -> str:
    payload = access_token.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["device"])


async def players(stack: Stack, http: aiohttp.ClientSession) -> tuple[Player, Player, Player]:
    """Sign in two devices of one account and one of another."""
    name, document = f"owner-{secrets.token_hex(4)}", json.loads(DOCUMENT.read_text(encoding="utf-8"))
    made = [Device(one, stack.plan, http, set(), document) for one in (name, name, f"{name}-opponent")]
    for player in made:
        await player.sign_in()
    return made[0], made[1], made[2]


async def create_room(host: Player) -> str:
    request = {**READ[f"{LOBBY}/CreateRoom"]["request"], "requestId": secrets.token_hex(8)}
    return str((await host.post(f"{LOBBY}/CreateRoom", request))["room"]["code"])


async def sit_down(stack: Stack, http: aiohttp.ClientSession, door: str) -> Table:
    owner, lost, opponent = await players(stack, http)
    code = await create_room(lost)
    joined = await opponent.post(f"{LOBBY}/JoinRoom", {"code": code, "requestId": secrets.token_hex(8)})
    payload = joined["contract"].split(".")[1]
    content = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    contract: dict[str, Any] = json.loads(content)
    keys = [base64.urlsafe_b64decode(seat["key"] + "=") for seat in contract["seats"]]
    assert keys == [bytes(lost.key.verify_key), bytes(opponent.key.verify_key)]
    game = Game(joined["contract"], content, (lost.key, opponent.key), contract["jti"])
    setting = f"KOIKOI_MATCH_{door.upper()}_ADDRESS"
    address = stack.plan.addresses[setting]
    dial = dial_websocket if door == "websocket" else dial_grpc
    seats: list[RawClient] = []
    for seat in (0, 1):
        client = await dial(int(address.rpartition(":")[2]), game.match_id)
        await client.join(game, seat, address)
        await client.expect("welcome")
        seats.append(client)
    for number, phase in enumerate((0, 0, 1)):
        sender, receiver = game.owner(number), game.owner(number + 1)
        await seats[sender].send(**envelope(number, phase, hello() if number < 2 else sealed()))
        await seats[receiver].expect("envelope")
    return Table(owner, lost, opponent, game, seats)


@pytest.mark.parametrize("door", ["websocket", "grpc"])
async def test_a_match_of_a_revoked_device_ends_for_both(stack: Stack, door: str):
    async with aiohttp.ClientSession() as http:
        table = await sit_down(stack, http, door)
        started = await table.revoke_lost()
        for client in table.seats:
            ended = await client.expect("ended", LIMIT_S)
            assert (ended.outcome, ended.seat) == (pb.OUTCOME_ABANDONED, LOST)
        assert time.monotonic() - started < LIMIT_S
        for client in table.seats:
            await client.hang_up()


async def test_what_the_lobby_keeps_open_for_a_revoked_device_ends(stack: Stack):
    async with aiohttp.ClientSession() as http:
        owner, lost, opponent = await players(stack, http)
        code = await create_room(lost)
        table = Table(owner, lost, opponent, None, [])  # type: ignore[arg-type]
        request = json.dumps({"code": code, "leaveOther": True}).encode()
        headers = {**lost.headers, "Content-Type": "application/connect+json"}
        body = struct.pack(">BI", 0, len(request)) + request
        async with http.post(lost.url(f"{LOBBY}/WatchRoom"), data=body, headers=headers) as stream:
            flags, size = struct.unpack(">BI", await stream.content.readexactly(5))
            assert (flags, bool(await stream.content.readexactly(size))) == (0, True)
            started = await table.revoke_lost()
            async with asyncio.timeout(LIMIT_S):
                rest = await stream.content.read()
            assert time.monotonic() - started < LIMIT_S
        assert b"ACCESS_TOKEN_INVALID" in rest or b"unauthenticated" in rest, rest[-400:]
        async with http.post(lost.url(f"{LOBBY}/GetRoom"), json={"code": code}, headers=lost.headers) as refused:
            assert refused.status == 401
