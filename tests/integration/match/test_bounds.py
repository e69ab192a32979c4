"""Everything is bounded: connections, handshakes, what a client sends, what it does not read."""

import asyncio
import time
from socket import SO_RCVBUF, SOL_SOCKET
from typing import Any

import aiohttp
import pytest

from tests.integration.match.conftest import DOOR, Place
from tests.integration.match.raw_client import Closed, WebSocketClient, envelope, hello


@pytest.fixture(autouse=True)
def _door(place: Place, door: str) -> None:
    place.door = door


async def test_more_connections_than_the_cap_are_told_to_come_back(place: Place):
    app = await place.start(most_connections="2")
    clients = [await place.dial(app, place.game().match_id) for _ in range(2)]
    for client in clients:
        await client.expect("challenge")
    third = await place.dial(app, place.game().match_id)
    closed = await third.expect("closed")
    assert (closed.code, closed.reason.split()[0]) == (4005, "RATE_LIMITED")
    await clients[0].hang_up()
    await asyncio.sleep(0.2)
    again = await place.dial(app, place.game().match_id)
    await again.expect("challenge")


async def test_handshakes_per_second_are_capped(place: Place):
    app = await place.start(joins_per_s="3")
    codes = []
    for _ in range(8):
        client = await place.dial(app, place.game().match_id)
        frame = await client.next()
        codes.append(frame.code if isinstance(frame, Closed) else 0)
    assert codes[:3] == [0, 0, 0]
    assert 4005 in codes


async def test_over_budget_the_relay_pauses_reading_and_loses_nothing(place: Place):
    """A flood is slowed down to the budget, not dropped and not buffered without end."""
    app = await place.start(budget_frames="20")
    game = place.game()
    a, b = await place.pair(app, game)
    data = hello()
    for _ in range(25):
        await a.send(**envelope(0, 0, data))
    await a.send(receipt_request={})
    await b.expect("envelope")
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        await a.expect("receipt", timeout=2)
    await b.send(**envelope(1, 0, hello()))  # the other seat is not held up
    await b.expect_acknowledged(2)
    assert time.monotonic() - started < 5


async def test_a_slow_consumer_is_closed_and_the_match_goes_on(place: Place):
    app = await place.start(most_unsent_bytes="16384", budget_frames="100000", budget_bytes="100000000")
    game = place.game()
    a, b = await place.pair(app, game)
    if isinstance(b, WebSocketClient):
        socket = b.transport.underlying_transport.get_extra_info("socket")
        socket.setsockopt(SOL_SOCKET, SO_RCVBUF, 2048)  # so that little is hidden in the kernel
        b.transport.underlying_transport.pause_reading()
    else:
        b.reader.cancel()  # type: ignore[attr-defined]

    async def gone() -> bool:
        status: Any = await a.expect_status(timeout=20)
        return not all(status.is_connected)

    async def ask() -> None:
        for _ in range(60_000):
            await b.send(receipt_request={})
            await asyncio.sleep(0)

    asking = asyncio.get_running_loop().create_task(ask())
    async with asyncio.timeout(30):
        while not await gone():
            pass
    asking.cancel()
    await asyncio.wait([asking])
    back = await place.enter(app, game, game.order[1])
    await back.expect("welcome")
    await a.send(**envelope(0, 0, hello()))
    await back.expect("envelope")


async def test_a_silent_socket_is_gone(place: Place, door: str):
    """A client that answers no ping for too long counts as gone, though its socket is open."""
    if door != "websocket":
        return
    app = await place.start(ping_every_s="0.3", silent_for_s="0.6")
    game = place.game()
    a, b = await place.pair(app, game)
    assert isinstance(b, WebSocketClient)
    b.transport.underlying_transport.pause_reading()
    await a.expect_status(connected=[seat == game.order[0] for seat in (0, 1)])


async def test_metrics_tell_the_health_of_matches_and_no_ids(place: Place):
    app = await place.start()
    game = place.game()
    a, b = await place.pair(app, game)
    data = hello()
    for _ in range(2):
        await a.send(**envelope(0, 0, data))
    await b.expect("envelope")
    await b.send(**envelope(0, 0, hello()))
    await b.expect("refusal")
    stranger = await place.dial(app, game.match_id)
    await stranger.join(game, 0, "elsewhere:1")
    await stranger.expect("closed")
    await asyncio.sleep(0.3)
    async with aiohttp.ClientSession() as http:
        text = await (await http.get(f"http://127.0.0.1:{app.ports['metrics']}/metrics")).text()
    for line in (
        'koikoi_match_envelopes_total{outcome="accepted"} 1.0',
        'koikoi_match_envelopes_total{outcome="repeated"} 1.0',
        'koikoi_match_envelopes_total{outcome="not_your_turn"} 1.0',
        'koikoi_match_phases_total{phase="hello"} 1.0',
        'koikoi_match_joins_total{result="ok"} 2.0',
        'koikoi_match_joins_total{result="join_signature_invalid"} 1.0',
        f'koikoi_match_connections{{door="{place.door}"}} 2.0',
        'koikoi_match_begun_total{kind="new"} 1.0',
        "koikoi_match_both_connected_ratio 1.0",
    ):
        assert line in text
    assert "koikoi_match_commit_seconds_count" in text
    assert game.match_id not in text
    assert DOOR not in text
