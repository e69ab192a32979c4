"""The everyday life of a match on both doors: alternation, acknowledgement, repetition, conflict."""

import secrets

import pytest

from tests.integration.match.conftest import Place
from tests.integration.match.raw_client import envelope, hello, sealed


@pytest.fixture(autouse=True)
def _door(place: Place, door: str) -> None:
    place.door = door


async def test_two_seats_play_in_turn(place: Place):
    app = await place.start()
    game = place.game()
    clients = await place.pair(app, game)
    sent = [hello(), hello(), sealed(), sealed(9357), sealed(3725), sealed()]
    for number, (phase, data) in enumerate(zip((0, 0, 1, 2, 2, 3), sent, strict=True)):
        mine, theirs = clients[number % 2], clients[1 - number % 2]
        await mine.send(**envelope(number, phase, data))
        got = await theirs.expect("envelope")
        assert (got.counter, got.phase, got.sealed) == (number, phase, data)
        await mine.expect_acknowledged(number + 1)
