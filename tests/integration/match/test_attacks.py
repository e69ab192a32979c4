"""What an attacker does to the doors: floods, odd frames, clients that never read."""

import asyncio
import struct
from typing import Any

import grpc
import pytest
from koikoi.match.v1 import match_service_pb2 as pb

from tests.integration.match.conftest import DOOR, Place
from tests.integration.match.raw_client import envelope, hello, signed_join

BINARY, CLOSE, PING, PONG = 2, 8, 9, 10


async def raw_websocket(port: int, match_id: str = "0" * 36) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a WebSocket by hand; the challenge is the first that comes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET /m/{match_id} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Protocol: koikoi.match.v1\r\n\r\n".encode()
    )
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(2 + 36)
    return reader, writer


def masked(opcode: int, payload: bytes, first: int = 0x80) -> bytes:
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
    return bytes([first | opcode]) + length + bytes(4) + payload


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (masked(CLOSE, b""), 1000),
        (masked(CLOSE, struct.pack(">H", 0)), 1000),
        (masked(CLOSE, struct.pack(">H", 1006)), 1000),
        (masked(CLOSE, struct.pack(">H", 4500)), 1000),
        (masked(1, b"text"), 4501),
        (masked(0, b"continuation"), 4501),
        (masked(BINARY, b"fragment", first=0), 4501),
        (masked(BINARY, b"compressed", first=0xC0), 4501),
        (masked(BINARY, bytes(2 * 16_384)), 4501),
        (masked(PING, b"x") * 301, 4501),
        (masked(PONG, b"x") * 301, 4501),
        (masked(PING, bytes(126)), 1002),
        (masked(11, b""), 1002),
        (b"\x82\x02no", 1002),  # not masked
        (masked(BINARY, bytes(2 * 16_384 + 1)), 1009),
    ],
)
async def test_odd_frames_are_answered_by_a_close_code(place: Place, data: bytes, code: int):
    app = await place.start()
    reader, writer = await raw_websocket(app.ports["websocket"])
    writer.write(data)
    async with asyncio.timeout(5):
        answer = await reader.read()
    at = answer.rindex(bytes([0x80 | CLOSE]))
    while answer[at + 1] != len(answer) - at - 2:  # the byte may also be in the reason
        at = answer.rindex(bytes([0x80 | CLOSE]), 0, at)
    assert int.from_bytes(answer[at + 2 : at + 4], "big") == code
    writer.close()


async def test_a_ping_is_answered(place: Place):
    app = await place.start()
    reader, writer = await raw_websocket(app.ports["websocket"])
    writer.write(masked(PING, b"are you there"))
    assert await reader.readexactly(15) == bytes([0x80 | PONG, 13]) + b"are you there"
    writer.close()


async def test_a_flood_of_pings_by_a_client_that_reads_nothing_ends_the_connection(place: Place):
    """Each ping makes an answer; they must not pile up in the relay."""
    app = await place.start(budget_frames="10000000", most_unsent_bytes="16384")
    _, writer = await raw_websocket(app.ports["websocket"])
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    flood = masked(PING, bytes(125)) * 500
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(20):
            while True:
                writer.write(flood)
                await writer.drain()
                await asyncio.sleep(0)


async def test_a_grpc_client_that_reads_nothing_is_cut_off(place: Place):
    """Its library answers pings, so only what piles up tells."""
    place.door = "grpc"
    app = await place.start(most_unsent_bytes="16384", budget_frames="10000000", budget_bytes="1000000000")
    game = place.game()
    a = await place.enter(app, game, game.order[0])
    await a.expect("welcome")
    async with grpc.aio.insecure_channel(f"127.0.0.1:{app.ports['grpc']}") as channel:
        call: Any = channel.stream_stream("/koikoi.match.v1.MatchService/Relay")()
        challenge = pb.ServerFrame.FromString(await call.read()).challenge.challenge
        join = signed_join(game, game.order[1], DOOR, challenge)
        await call.write(pb.ClientFrame(join=join).SerializeToString())
        await a.expect_status(connected=[True, True])

        async def ask() -> None:
            while True:
                await call.write(pb.ClientFrame(receipt_request={}).SerializeToString())
                await asyncio.sleep(0)

        asking = asyncio.get_running_loop().create_task(ask())
        await a.expect_status(timeout=30, connected=[seat == game.order[0] for seat in (0, 1)])
        asking.cancel()
        await asyncio.wait([asking])
    back = await place.enter(app, game, game.order[1])
    await back.expect("welcome")
    await a.send(**envelope(0, 0, hello()))
    await back.expect("envelope")
