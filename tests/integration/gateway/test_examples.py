"""Every example of the OpenAPI document is sent to the running services and answered in the shape it shows."""

import asyncio
import json
import secrets
import uuid

import aiohttp
import pytest
from redis.asyncio import Redis

from services.gateway.methods import public_methods
from tests.integration.gateway.players import AUTH, LOBBY, MATCH, RANKING, READ, Player, finished_match
from tools.openapi import DOCUMENT


def test_every_public_method_has_an_example():
    assert {f"/{name}" for name in READ} == set(public_methods()), "add it to tools/openapi_examples.json"


@pytest.mark.timeout(120)
async def test_the_examples_are_true(running):
    document, sent = json.loads(DOCUMENT.read_text(encoding="utf-8")), set()
    async with aiohttp.ClientSession() as http:
        tsuru, kame = (Player(name, running.plan, http, sent, document) for name in ("tsuru", "kame"))
        anybody = Player("", running.plan, http, sent, document)
        for service in (AUTH, LOBBY, MATCH):
            await anybody.follow(f"{service}/GetKeySet")
        first = await tsuru.sign_in()
        await kame.sign_in()
        await account(tsuru, first)
        await anybody.follow(f"{LOBBY}/PreviewRules")
        contract = await room(tsuru, kame)
        await result(anybody, contract, tsuru, kame, first["profile"]["accountId"])
        await conduct(running, tsuru, first["profile"]["accountId"])
        matsu = Player("matsu", running.plan, http, sent, document)
        await matsu.sign_in_by_redirect()
        await devices(matsu)
        await tsuru.follow(f"{AUTH}/SignOut", requestId=secrets.token_hex(8))
    assert sent == set(READ), "the story of this test leaves examples out"


async def account(player, signed_in):
    await player.refresh(signed_in)
    await player.follow(f"{AUTH}/GetProfile")
    await player.follow(f"{AUTH}/UpdateProfile", requestId=secrets.token_hex(8))


async def devices(player):
    device = (await player.follow(f"{AUTH}/ListDevices"))["devices"][0]
    assert device["isCurrent"]
    await player.follow(f"{AUTH}/RenameDevice", deviceId=device["deviceId"], requestId=secrets.token_hex(8))
    await player.follow(f"{AUTH}/RevokeDevice", deviceId=device["deviceId"], requestId=secrets.token_hex(8))


async def conduct(running, player, account_id):
    """Tell the lobby what the relay tells it when an account left its match, so that the example of conduct holds."""
    entry = {"match_id": str(uuid.uuid4()), "outcome": "abandoned", "seat": "0", "end_time_ms": "1800000000000"}
    async with Redis.from_url(running.valkey.url) as redis:
        await redis.xadd("outcomes", entry | {"account_0": account_id, "account_1": "somebody"})
    async with asyncio.timeout(20):
        while not (await player.post(f"{LOBBY}/GetMyConduct", {})).get("charged"):
            await asyncio.sleep(0.1)
    await player.follow(f"{LOBBY}/GetMyConduct")


async def room(host, guest):
    opened = await host.follow(f"{LOBBY}/CreateRoom", requestId=secrets.token_hex(8))
    code = opened["room"]["code"]
    await guest.follow(f"{LOBBY}/ListRooms")
    await guest.follow(f"{LOBBY}/WatchRooms")
    await guest.follow(f"{LOBBY}/GetRoom", code=code)
    joined = await guest.follow(f"{LOBBY}/JoinRoom", code=code, requestId=secrets.token_hex(8))
    await host.follow(f"{LOBBY}/ListMyMatches")
    again = READ[f"{LOBBY}/CreateRoom"]["request"] | {"requestId": "again", "leaveOther": True}
    other = (await host.post(f"{LOBBY}/CreateRoom", again))["room"]
    await host.follow(f"{LOBBY}/KickGuest", code=other["code"], accountId="somebody", requestId="kick")
    await host.follow(f"{LOBBY}/WatchRoom", code=other["code"])
    await host.follow(f"{LOBBY}/LeaveRoom", code=other["code"], requestId=secrets.token_hex(8))
    await let_in(host, guest, joined["room"]["guest"]["accountId"])
    return joined["contract"]


async def let_in(host, guest, guest_id):
    """Knock, be accepted; be blocked for the next time."""
    wanted = READ[f"{LOBBY}/CreateRoom"]["request"] | {"requestId": "door", "needsApproval": True, "leaveOther": True}
    code = (await host.post(f"{LOBBY}/CreateRoom", wanted))["room"]["code"]
    async with guest.opened(f"{LOBBY}/WatchRoom", {"code": code, "leaveOther": True}):
        await host.follow(f"{LOBBY}/AcceptGuest", code=code, accountId=guest_id, requestId=secrets.token_hex(8))
    await host.follow(f"{LOBBY}/BlockAccount", accountId=guest_id, requestId=secrets.token_hex(8))
    await host.follow(f"{LOBBY}/ListBlocks")
    await host.follow(f"{LOBBY}/UnblockAccount", accountId=guest_id, requestId=secrets.token_hex(8))


async def result(anybody, contract, host, guest, account_id):
    receipt = await anybody.follow(f"{RANKING}/SubmitResult", **finished_match(contract, host, guest))
    await anybody.follow(f"{RANKING}/GetLeaderboard")
    await anybody.follow(f"{RANKING}/GetMatchResult", matchId=receipt["result"]["matchId"])
    for method in ("GetRating", "GetLeaderboardAround", "GetRatingHistory", "ListMatchResults"):
        await anybody.follow(f"{RANKING}/{method}", accountId=account_id)
