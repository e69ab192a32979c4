"""The everyday life of a match on both doors: alternation, acknowledgement, repetition, conflict, resume, receipts."""

import secrets
from hashlib import sha256

import grpc
import pytest
from koikoi.match.v1 import match_service_pb2 as pb
from koikoi.match.v1 import match_service_pb2_grpc

from services.kit.clock import SystemClock
from services.kit.tokens import KeySet, verify_document
from tests.integration.match.conftest import Place
from tests.integration.match.raw_client import Closed, RawClient, envelope, hello, sealed


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


async def play_on(clients: list[RawClient], phases: tuple[int, ...], start: int = 0) -> list[bytes]:
    """Send envelopes of these phases in turn; returns their bytes."""
    sent = []
    for number, phase in enumerate(phases, start):
        data = hello() if number < 2 else sealed()
        await clients[number % 2].send(**envelope(number, phase, data))
        await clients[1 - number % 2].expect("envelope")
        sent.append(data)
    return sent


async def test_the_welcome_tells_where_the_match_stands(place: Place):
    app = await place.start(min_client_version="0.1", notices="Maintenance,保守")
    game = place.game()
    first, second = game.order
    one = await place.enter(app, game, second)
    welcome = await one.expect("welcome")
    assert len(welcome.epoch) == 8
    assert (welcome.counter, welcome.is_recovered, welcome.is_recovering) == (0, False, False)
    assert welcome.status.owing_seat == first
    assert list(welcome.status.is_connected) == [second == 0, second == 1]
    assert 55_000 < welcome.status.deadline_ms <= 60_000  # the first seat is not here: its gone time runs
    assert (welcome.min_client_version, list(welcome.notices)) == ("0.1", ["Maintenance", "保守"])
    two = await place.enter(app, game, first)
    welcome = await two.expect("welcome")
    assert 25_000 < welcome.status.deadline_ms <= 30_000
    await one.expect_status(owing=first, connected=[True, True])


async def test_both_sides_are_told_who_owes_who_is_gone_and_who_is_back(place: Place):
    app = await place.start()
    game = place.game()
    clients = await place.pair(app, game)
    await play_on(clients, (0,))
    for client in clients:
        status = await client.expect_status(owing=game.order[1], connected=[True, True])
        assert 15_000 < status.deadline_ms <= 20_000
    await clients[1].hang_up()
    gone = [seat == game.order[0] for seat in (0, 1)]
    status = await clients[0].expect_status(owing=game.order[1], connected=gone)
    assert 55_000 < status.deadline_ms <= 60_000
    await place.enter(app, game, game.order[1], position=1)
    await clients[0].expect_status(owing=game.order[1], connected=[True, True])


async def test_wrong_turn_wrong_shape_and_conflict_refuse_the_frame_and_keep_the_connection(place: Place):
    app = await place.start()
    game = place.game()
    a, b = await place.pair(app, game)
    for client, frame, reason in (
        (b, envelope(0, 0, hello()), "NOT_YOUR_TURN"),
        (b, envelope(1, 0, hello()), "NOT_YOUR_TURN"),
        (a, envelope(2, 1, sealed()), "NOT_YOUR_TURN"),
        (a, envelope(0, 1, hello()), "ENVELOPE_INVALID"),
        (a, envelope(0, 0, sealed()), "ENVELOPE_INVALID"),
        (a, envelope(0, 0, b""), "ENVELOPE_INVALID"),
        (a, envelope(2**32 - 2, 200, b""), "ENVELOPE_INVALID"),
    ):
        await client.send(**frame)
        refusal = await client.expect("refusal")
        assert pb.Reason.Name(refusal.reason) == f"REASON_{reason}"
        assert refusal.counter == 0
        assert refusal.message
    data = hello()
    await a.send(**envelope(0, 0, data))
    assert (await b.expect("envelope")).sealed == data
    await a.send(**envelope(0, 0, hello()))
    refusal = await a.expect("refusal")
    assert pb.Reason.Name(refusal.reason) == "REASON_ENVELOPE_CONFLICT"
    assert refusal.counter == 1


async def test_the_same_envelope_again_is_acknowledged_again_and_forwarded_once(place: Place):
    app = await place.start()
    a, b = await place.pair(app, place.game())
    data = hello()
    for _ in range(3):
        a.acknowledged = None
        await a.send(**envelope(0, 0, data))
        await a.expect_acknowledged(1)
    assert (await b.expect("envelope")).sealed == data
    await b.send(**envelope(1, 0, hello()))
    await a.expect("envelope")
    a.acknowledged = None
    await a.send(**envelope(0, 0, data))  # even after the answer
    await a.expect_acknowledged(1)
    await b.send(receipt_request={})
    await b.expect("receipt")  # and no second envelope came in between


async def test_resume_at_every_position(place: Place):
    """Whoever reconnects, wherever it stands, gets at most one envelope, and the match goes on."""
    app = await place.start()
    game = place.game()
    clients = await place.pair(app, game)
    epoch = clients[0].seen[-1].welcome.epoch
    last = b""
    for number, phase in enumerate((0, 0, 1, 2, 2, 3, 3, 4, 4, 4)):
        mine, theirs = number % 2, 1 - number % 2
        last = hello() if number < 2 else sealed()
        await clients[mine].hang_up()
        clients[mine] = await place.enter(app, game, game.order[mine], position=number, epoch=epoch)
        welcome = await clients[mine].expect("welcome")
        assert (welcome.counter, welcome.is_recovered, welcome.epoch) == (number, True, epoch)
        await clients[mine].send(**envelope(number, phase, last))
        await clients[mine].expect_acknowledged(number + 1)
        for position in (number, number - 1):  # with and without its own last one acknowledged
            if position < 0:
                continue
            clients[theirs] = await place.enter(app, game, game.order[theirs], position=position, epoch=epoch)
            assert (await clients[theirs].expect("welcome")).counter == number + 1
            got = await clients[theirs].expect("envelope")
            assert (got.counter, got.sealed) == (number, last)
        clients[theirs] = await place.enter(app, game, game.order[theirs], position=number + 1, epoch=epoch)
        await clients[theirs].expect("welcome")
        await clients[theirs].send(receipt_request={})
        await clients[theirs].expect("receipt")  # nothing was sent that it has
        clients[mine] = await place.enter(app, game, game.order[mine], position=number, epoch=epoch)
        await clients[mine].expect("welcome")
        await clients[mine].expect_acknowledged(number + 1)


async def test_a_newer_connection_supersedes_for_good(place: Place):
    app = await place.start()
    game = place.game()
    a, b = await place.pair(app, game)
    newer = await place.enter(app, game, game.order[0])
    await newer.expect("welcome")
    assert await a.expect("closed") == Closed(4505, "SUPERSEDED")
    await newer.send(**envelope(0, 0, hello()))
    await b.expect("envelope")
    status = await b.expect_status(connected=[True, True])
    assert status.owing_seat == game.order[1]


async def test_receipts_verify_and_say_what_the_relay_knows(place: Place):
    app = await place.start()
    game = place.game()
    clients = await place.pair(app, game)
    epoch = clients[0].seen[-1].welcome.epoch
    sent = await play_on(clients, (0, 0, 1))
    await clients[0].send(receipt_request={})
    compact = (await clients[0].expect("receipt")).receipt
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{app.ports['grpc']}")
    stub = match_service_pb2_grpc.MatchServiceStub(channel)

    async def fetch() -> str:
        return (await stub.GetKeySet(pb.GetKeySetRequest())).jwks

    issuer = "https://match.koikoi/development"
    document = await verify_document(
        compact, typ="koikoi-receipt+jws", keys=KeySet(issuer, fetch, SystemClock()), max_chars=4096
    )
    await channel.close()
    rolling = bytes(32)
    for number, data in enumerate(sent):
        rolling = sha256(rolling + number.to_bytes(4, "big") + sha256(data).digest()).digest()
    claims = document.claims
    now = claims.pop("now_ms")
    assert abs(now / 1000 - SystemClock().now()) < 5
    assert now - 5000 < claims.pop("last_time_ms") <= now
    assert now - 5000 < claims.pop("owing_since_ms") <= now
    assert claims == {
        "iss": issuer,
        "match_id": game.match_id,
        "contract_hash": game.contract_hash.hex(),
        "epoch": epoch.hex(),
        "counter": 3,
        "rolling_hash": rolling.hex(),
        "last_hash": sha256(sent[-1]).hexdigest(),
        "owing_seat": game.order[1],
        "outcome": None,
    }


GARBAGE = [
    *(secrets.token_bytes(size) for size in (1, 2, 3, 7, 64, 653, 4096, 16_384)),
    b"\xff" * 40,
    pb.ClientFrame().SerializeToString(),
    pb.ClientFrame(close=pb.Close(outcome=77)).SerializeToString(),
    pb.ClientFrame(close=pb.Close(outcome=pb.OUTCOME_STALLED)).SerializeToString(),
    pb.ClientFrame(join=pb.Join(seat=7)).SerializeToString(),
    pb.ServerFrame(welcome=pb.Welcome(epoch=b"12345678", counter=7)).SerializeToString(),
    b"\x00" * 16_385,
    b"",
]


async def test_garbage_closes_only_its_own_connection(place: Place):
    app = await place.start()
    game = place.game()
    a, b = await place.pair(app, game)
    for data in GARBAGE:
        await b.send_bytes(data)
        closed = await b.expect("closed")
        assert (closed.code, closed.reason) == (4501, "FRAME_INVALID")
        first = await place.dial(app, game.match_id)
        await first.expect("challenge")
        await first.send_bytes(data)
        assert await first.expect("closed") == closed
        b = await place.enter(app, game, game.order[1])
        await b.expect("welcome")
    await a.send(**envelope(0, 0, hello()))
    await b.expect("envelope")
