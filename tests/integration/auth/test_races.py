"""Fifty clients at one thing: one right outcome each. `KOIKOI_RACES=1000` repeats them a thousand times."""

import asyncio
import os
from typing import Any

import pytest
from koikoi.auth.v1 import auth_service_pb2 as pb

from tests.integration.auth.device import Refused
from tests.integration.auth.world import World

ROUNDS = int(os.environ.get("KOIKOI_RACES", "20"))
CLIENTS = 50
UNLIMITED = {"device_per_minute": "10000", "account_per_minute": "10000", "address_per_minute": "100000"}


@pytest.mark.timeout(1200)
async def test_fifty_refreshes_of_one_token_give_one_generation_and_one_answer(world: World):
    async with world.running(**UNLIMITED), world.running(**UNLIMITED):
        device = world.device(process=1)
        await device.sign_in()
        stubs: list[Any] = world.stubs[1:]
        for generation in range(1, ROUNDS + 1):
            request = device.refresh_request()
            answers = await asyncio.gather(
                *(stubs[number % len(stubs)].RefreshSession(request) for number in range(CLIENTS))
            )
            assert len({answer.session.refresh_token for answer in answers}) == 1
            assert len({answer.session.refresh_expire_time.ToNanoseconds() for answer in answers}) == 1
            assert answers[0].session.refresh_token != device.session.refresh_token
            device.session = answers[0].session
            assert _generation(device.session.refresh_token) == generation
            world.clock.advance(31)


@pytest.mark.timeout(1200)
async def test_a_reused_token_among_fifty_refreshes_ends_the_family_for_all(world: World):
    """The new token and a stolen old one come at once: whatever is first, in the end nobody has a live token."""
    async with world.running(**UNLIMITED), world.running(**UNLIMITED):
        device = world.device(process=1)
        stubs: list[Any] = world.stubs[1:]
        for _ in range(ROUNDS):
            await device.sign_in()
            stolen = device.refresh_request()
            await device.refresh()
            world.clock.advance(31)
            requests = [device.refresh_request()] * (CLIENTS - 1) + [stolen]
            answers = await asyncio.gather(
                *(stubs[number % len(stubs)].RefreshSession(one) for number, one in enumerate(requests)),
                return_exceptions=True,
            )
            good = [answer for answer in answers if isinstance(answer, pb.RefreshSessionResponse)]
            assert len({answer.session.refresh_token for answer in good}) <= 1
            async with Refused("REFRESH_TOKEN_REUSED"):
                raise answers[-1]  # type: ignore[misc]
            if good:
                device.session = good[0].session
            async with Refused("REFRESH_TOKEN_INVALID"):
                await device.refresh()


def _generation(refresh_token: str) -> int:
    from services.auth.domain.sessions import parse_refresh_token

    return parse_refresh_token(refresh_token).generation
