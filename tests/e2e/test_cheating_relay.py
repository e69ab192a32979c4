"""Clients that cheat the relay: joins that prove nothing, envelopes out of turn, forged endings, garbage.

The contracts are real ones of the lobby; the clients are raw, so that every byte is theirs. Whatever they try, the
match stays where it was, the other seat gets nothing of it, and honest matches beside it go on.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import grpc
import pytest
from koikoi.match.v1 import match_service_pb2 as pb
from koikoi_sdk.client.home import Home
from koikoi_sdk.client.session import MatchEnd
from koikoi_sdk.table import parse_contract
from nacl.signing import SigningKey

from services.kit.signatures import tagged
from tests.e2e.cheaters import Opponents, play
from tests.e2e.lies import HONEST, noise
from tests.e2e.verdicts import record
from tests.integration.match.raw_client import (
    Closed,
    Game,
    GrpcClient,
    RawClient,
    closed_by,
    dial_grpc,
    dial_websocket,
    envelope,
    hello,
    sealed,
    signed_join,
)
from tools.stack import Stack

pytestmark = [pytest.mark.xdist_group("e2e-refusing"), pytest.mark.usefixtures("no_fault")]

DOORS = ("websocket", "grpc")
MEANT_SIZES = range(131, 146, 2)
BATCH = 250
"""Frames that one connection sends; beyond 300 in 10 s the relay would pause reading."""


class Scene:
    """A real contract, the keys of both its seats, and one door of the relay."""

    def __init__(self, stack: Stack, door: str, game: Game, session: dict[str, Any]) -> None:
        self.game, self.access_token = game, str(session["access_token"])
        address = stack.plan.addresses[f"KOIKOI_MATCH_{door.upper()}_ADDRESS"]
        self.name, self.port = address, int(address.rpartition(":")[2])
        self._dial = dial_websocket if door == "websocket" else dial_grpc
        self._clients: list[RawClient] = []

    async def dial(self, match_id: str | None = None) -> RawClient:
        client: RawClient = await self._dial(self.port, match_id or self.game.match_id)
        self._clients.append(client)
        return client

    async def enter(self, seat: int, position: int = 0) -> RawClient:
        client = await self.dial()
        await client.join(self.game, seat, self.name, position=position)
        await client.expect("welcome")
        return client

    async def close(self) -> None:
        for client in self._clients:
            await client.hang_up()


def keys_of(pair: Opponents, payload: bytes) -> tuple[SigningKey, SigningKey]:
    """The device keys of a contract's seats."""
    keys = [SigningKey((home / "device.key").read_bytes()) for home in pair.homes]
    by_public = {bytes(key.verify_key): key for key in keys}
    first, second = (by_public[public] for public in parse_contract(payload).keys)
    return first, second


async def game_of(pair: Opponents, host: int = 0) -> Game:
    signed = await pair.agree(host)
    return Game(signed.token, signed.payload, keys_of(pair, signed.payload), signed.match_id)


@pytest.fixture(params=DOORS)
async def scene(request: pytest.FixtureRequest, stack: Stack, opponents: list[Opponents]) -> AsyncIterator[Scene]:
    pair = opponents[DOORS.index(request.param)]
    session = Home(pair.homes[0]).load("session")
    assert session is not None
    scene = Scene(stack, request.param, await game_of(pair), session)
    yield scene
    await scene.close()


async def closed(client: RawClient) -> tuple[int, str]:
    """How the relay closed a connection, whatever came before."""
    while not isinstance(frame := await client.next(timeout=20), Closed):
        pass
    return frame.code, frame.reason.split()[0] if frame.reason else ""


# Joining


async def test_no_join_without_proof(scene: Scene, opponents: list[Opponents]):
    game, name = scene.game, scene.name
    other = await game_of(opponents[2])
    header, payload, signature = game.compact.split(".")
    forged = f"{header}.{payload}.{signature[::-1]}"
    wrong = "JOIN_SIGNATURE_INVALID", "CONTRACT_INVALID", "FRAME_INVALID"
    joins: list[tuple[int, str, dict[str, Any]]] = [
        (4503, wrong[0], {"key": SigningKey.generate()}),
        (4503, wrong[0], {"key": game.keys[1]}),
        (4503, wrong[0], {"signed_door": "relay.elsewhere:443"}),
        (4503, wrong[0], {"door": "relay.elsewhere:443"}),
        (4502, wrong[1], {"contract": scene.access_token}),
        (4502, wrong[1], {"contract": other.compact}),
        (4502, wrong[1], {"contract": forged}),
        (4502, wrong[1], {"contract": payload}),
        (4501, wrong[2], {"epoch": b"seven..", "door": name}),
    ]
    for code, reason, changes in joins:
        client = await scene.dial()
        await client.join(game, 0, changes.pop("door", name), **changes)
        assert await closed(client) == (code, reason), changes
    # what another connection was asked
    watched = await scene.dial()
    challenge = (await watched.expect("challenge")).challenge
    replayed = signed_join(game, 0, name, challenge)
    for _ in range(2):
        client = await scene.dial()
        await client.expect("challenge")
        await client.send(join=replayed)
        assert await closed(client) == (4503, wrong[0])
    # the right key in the other seat, and a seat that does not exist
    client = await scene.dial()
    replayed.seat = 1
    await client.expect("challenge")
    await client.send(join=replayed)
    assert await closed(client) == (4503, wrong[0])
    client = await scene.dial()
    replayed.seat = 2
    await client.expect("challenge")
    await client.send(join=replayed)
    assert await closed(client) == (4501, wrong[2])
    # another match's path
    client = await scene.dial(other.match_id)
    await client.join(game, 0, name)
    assert await closed(client) == (4502, wrong[1])
    for seat in (0, 1):
        await scene.enter(seat)


# Envelopes and endings


class Pair:
    """Both seats of a match at the relay, A first; everything the relay says is looked at."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clients: list[RawClient] = []
        self.delivered: list[list[tuple[int, int, bytes]]] = [[], []]

    async def enter(self, position: int = 0) -> None:
        self.clients = [await self.scene.enter(seat, position) for seat in self.scene.game.order]

    async def refused(self, who: int, reason: str, **frame: Any) -> None:
        await self.clients[who].send(**frame)
        refusal = await self.clients[who].expect("refusal")
        assert pb.Reason.Name(refusal.reason) == f"REASON_{reason}", frame

    async def closing(self, who: int, **frame: Any) -> None:
        """Send a frame that costs the connection, and come back."""
        position = 0 if self.clients[who].acknowledged is None else self.clients[who].acknowledged
        await self.clients[who].send(**frame)
        assert await closed(self.clients[who]) == (4501, "FRAME_INVALID"), frame
        self.clients[who] = await self.scene.enter(self.scene.game.order[who], position)

    async def pass_on(self, number: int, phase: int, data: bytes) -> None:
        """Send the right envelope; it is the next that the other seat gets."""
        await self.clients[number % 2].send(**envelope(number, phase, data))
        got = await self.clients[1 - number % 2].expect("envelope")
        assert (got.counter, got.phase, got.sealed) == (number, phase, data)
        await self.clients[number % 2].expect_acknowledged(number + 1)


async def test_nothing_out_of_turn_and_nothing_twice(scene: Scene):
    pair = Pair(scene)
    await pair.enter()
    first, second = hello(), hello()
    await pair.refused(1, "NOT_YOUR_TURN", **envelope(1, 0, second))
    await pair.refused(1, "NOT_YOUR_TURN", **envelope(0, 0, first))
    await pair.refused(0, "NOT_YOUR_TURN", **envelope(2, 1, sealed()))
    for phase in (1, 4, 6, 7, 2**32 - 1):
        await pair.refused(0, "ENVELOPE_INVALID", **envelope(0, phase, first))
    for size in (0, 130, 132, 147, 653, 9357):
        await pair.refused(0, "ENVELOPE_INVALID", **envelope(0, 0, noise(size)))
    await pair.pass_on(0, 0, first)
    await pair.refused(0, "ENVELOPE_CONFLICT", **envelope(0, 0, hello()))
    await pair.refused(0, "NOT_YOUR_TURN", **envelope(2, 1, sealed()))
    await pair.clients[0].send(**envelope(0, 0, first))  # the same again is no second one
    await pair.pass_on(1, 0, second)
    await pair.refused(0, "ENVELOPE_CONFLICT", **envelope(0, 0, hello()))
    await pair.refused(1, "ENVELOPE_CONFLICT", **envelope(1, 0, hello()))
    await pair.refused(1, "NOT_YOUR_TURN", **envelope(3, 2, sealed()))
    for number in (4, 6, 2**31, 2**32 - 2):
        await pair.refused(0, "NOT_YOUR_TURN", **envelope(number, 1, sealed()))
    for phase in (0, 2, 3, 4, 5, 7, 99):
        await pair.refused(0, "ENVELOPE_INVALID", **envelope(2, phase, sealed()))
    for size in (0, 131, 652, 654, 3724, 3726, 9356, 9358, 15_000):
        await pair.refused(0, "ENVELOPE_INVALID", **envelope(2, 1, noise(size)))
    await pair.pass_on(2, 1, sealed())
    await pair.pass_on(3, 2, sealed(9357))


async def test_no_ending_of_one_s_own_making(stack: Stack, scene: Scene):
    """Forged signatures, foreign resignations, unknown reasons: the match goes on, until somebody disputes."""
    game, pair = scene.game, Pair(scene)
    await pair.enter()
    await pair.pass_on(0, 0, hello())
    await pair.pass_on(1, 0, hello())
    cheater = game.order[0]
    digest = tagged("match-result", b"a statement that only one device signed")
    own = game.keys[cheater].sign(digest).signature
    stranger = SigningKey.generate().sign(digest).signature
    by_seat = [own, stranger] if cheater == 0 else [stranger, own]
    for shown in ([own, own], by_seat, [own], [], [own, own, own], [bytes(64), bytes(64)]):
        close = {"outcome": pb.OUTCOME_FINISHED, "result_digest": digest, "result_signatures": shown}
        await pair.refused(0, "RESULT_PROOF_INVALID", close=close)
    close = {"outcome": pb.OUTCOME_FINISHED, "result_digest": digest[:63], "result_signatures": by_seat}
    await pair.refused(0, "RESULT_PROOF_INVALID", close=close)
    for close in (
        {"outcome": pb.OUTCOME_RESIGNED},
        {"outcome": pb.OUTCOME_STALLED},
        {"outcome": pb.OUTCOME_ABANDONED},
        {"outcome": pb.OUTCOME_UNSPECIFIED},
        {"outcome": 99},
        {"outcome": pb.OUTCOME_DISPUTED},
        {"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 14},
    ):
        await pair.closing(0, close=close)
    await pair.clients[0].send(close={"outcome": pb.OUTCOME_FINISHED})  # one seat's word alone ends nothing
    await pair.pass_on(2, 1, sealed())
    await pair.clients[1].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 4})
    for client in pair.clients:
        assert (await client.expect("ended")).outcome == pb.OUTCOME_DISPUTED
    assert await record(stack, game.match_id) == "disputed||4"
    late = await scene.dial()  # and nothing changes the end
    await late.join(game, cheater, scene.name, position=3)
    await late.expect("welcome")
    assert (await late.expect("ended")).outcome == pb.OUTCOME_DISPUTED


# Garbage


def garbage(size: int) -> bytes:
    return hashlib.shake_256(f"garbage/{size}".encode()).digest(size)


async def in_batches(sizes: range, try_one: Callable[[int], Coroutine[Any, Any, None]], at_once: int = 20) -> None:
    for start in range(sizes.start, sizes.stop, at_once):
        await asyncio.gather(*(try_one(size) for size in sizes[start - sizes.start :][:at_once]))


async def test_garbage_of_every_length_as_first_frame(stack: Stack, scene: Scene, opponents: list[Opponents]):
    """Each closes its connection; an honest match on the same relay goes on beside it."""

    async def over_websocket(size: int) -> None:
        client = await scene.dial()
        await client.expect("challenge")
        await client.send_bytes(garbage(size))
        assert await closed(client) == (4501, "FRAME_INVALID"), size

    async def over_grpc(size: int) -> None:
        call = relay(metadata=[("koikoi-match-id", scene.game.match_id)])
        assert pb.ServerFrame.FromString(await call.read()).challenge.challenge
        await call.write(garbage(size))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert closed_by(caught.value) == Closed(4501, "FRAME_INVALID"), size

    async with grpc.aio.insecure_channel(f"127.0.0.1:{scene.port}") as channel:
        relay = channel.stream_stream("/koikoi.match.v1.MatchService/Relay")
        is_grpc = isinstance(await scene.dial(), GrpcClient)
        match = play(opponents[2], HONEST, (stack.plan.grpc_url, stack.plan.websocket_url))
        affair, _ = await asyncio.gather(match, in_batches(range(701), over_grpc if is_grpc else over_websocket))
    assert isinstance(affair.honest_end, MatchEnd)
    assert affair.honest_end.outcome == pb.OUTCOME_RESIGNED
    assert affair.honest_end == affair.cheater_end


async def test_large_garbage(scene: Scene):
    """Beyond the limits nothing is parsed; far beyond them the connection just ends."""
    for size in (4096, 4097, 9357, 16_384, 16_385, 40_000, 1 << 20):
        client = await scene.dial()
        await client.expect("challenge")
        await client.send_bytes(garbage(size))
        code, _ = await closed(client)
        assert code in ({4501} if size <= 16_385 else {4501, 1006, 1009}), size
    await scene.enter(0)


async def test_garbage_of_every_length_in_a_match(scene: Scene):
    """Sealed garbage is refused unless its size is a right one; a frame of garbage costs the connection only."""
    pair = Pair(scene)
    await pair.enter()
    sizes = [size for size in range(701) if size not in MEANT_SIZES]
    for start in range(0, len(sizes), BATCH):
        for size in sizes[start : start + BATCH]:
            await pair.refused(0, "ENVELOPE_INVALID", **envelope(0, 0, garbage(size)))
        pair.clients[0] = await scene.enter(scene.game.order[0])
    for size in (0, 1, 2, 5, 64, 131, 653, 700, 3725, 9357, 16_384, 16_385, 30_000):
        await pair.clients[0].send_bytes(garbage(size))
        assert (await closed(pair.clients[0]))[0] == 4501, size
        pair.clients[0] = await scene.enter(scene.game.order[0])
    await pair.pass_on(0, 0, hello())
    await pair.pass_on(1, 0, secrets.token_bytes(145))
