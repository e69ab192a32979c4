"""How matches end: every outcome, told to both, recorded once, announced once. Times are shortened by settings."""

import asyncio
import json
import secrets
import time
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from koikoi.match.v1 import match_service_pb2 as pb
from redis.asyncio import Redis

from services.kit.signatures import tagged
from services.kit.tokens import encode_base64url
from tests.integration.match.conftest import Place, eventually
from tests.integration.match.raw_client import Game, RawClient, envelope, hello, sealed

SHORT = {
    "turn_s": "0.6",
    "step_s": "0.4",
    "first_hello_s": "0.5",
    "grace_s": "0.1",
    "gone_s": "0.7",
    "closing_s": "0.5",
}


async def record(place: Place, game: Game, *, is_stormy: bool = False) -> dict[str, Any]:
    """Wait for the match's one row and its announcement, and return them; in a storm it may be announced again."""
    connection = await asyncpg.connect(place.settings["database_url"])
    redis = Redis.from_url(place.settings["redis_url"])
    rows: list[Any] = []
    entries: list[Any] = []

    async def is_there() -> bool:
        rows[:] = await connection.fetch("SELECT * FROM ended_match WHERE match_id = $1", UUID(game.match_id))
        entries[:] = [
            fields for _, fields in await redis.xrange("outcomes") if fields[b"match_id"] == game.match_id.encode()
        ]
        return bool(rows and entries)

    try:
        await eventually(is_there)
        assert len(entries) == 1 or (is_stormy and all(entry == entries[0] for entry in entries))
        accounts = [seat["account"] for seat in json.loads(game.payload)["seats"]]
        row = dict(rows[0])
        assert [row["account_0"], row["account_1"]] == accounts
        assert row["contract_hash"] == game.contract_hash
        entry = {key.decode(): value.decode() for key, value in entries[0].items()}
        assert [entry["account_0"], entry["account_1"]] == accounts
        assert (entry["outcome"], entry["seat"]) == (row["outcome"], "" if row["seat"] is None else str(row["seat"]))
        return row
    finally:
        await connection.close()
        await redis.aclose()


async def played(place: Place, app: Any, game: Game, phases: tuple[int, ...] = (0, 0, 1, 2, 2, 3)) -> list[RawClient]:
    clients = await place.pair(app, game)
    for number, phase in enumerate(phases):
        await clients[number % 2].send(**envelope(number, phase, hello() if number < 2 else sealed()))
        await clients[1 - number % 2].expect("envelope")
    return clients


async def assert_ended(clients: list[RawClient], outcome: str, seat: int | None = None) -> None:
    for client in clients:
        ended = await client.expect("ended")
        assert pb.Outcome.Name(ended.outcome) == f"OUTCOME_{outcome}"
        assert (ended.seat if ended.HasField("seat") else None) == seat
        assert abs(ended.end_time.ToSeconds() - time.time()) < 10
        closed = await client.expect("closed")
        assert (closed.code, closed.reason) == (4500, "MATCH_CLOSED")


async def test_never_started_when_nobody_greets(place: Place):
    app = await place.start(**SHORT)
    game = place.game()
    clients = await place.pair(app, game)
    await assert_ended(clients, "NEVER_STARTED")
    assert (await record(place, game))["outcome"] == "never_started"


async def test_never_started_when_the_other_never_comes(place: Place):
    app = await place.start(**SHORT)
    game = place.game()
    client = await place.enter(app, game, game.order[1])
    await client.expect("welcome")
    await assert_ended([client], "NEVER_STARTED")


async def test_stalled_by_the_connected_seat_that_owes(place: Place, door: str):
    place.door = door
    app = await place.start(**SHORT)
    game = place.game()
    clients = await played(place, app, game)
    await assert_ended(clients, "STALLED", game.order[0])
    row = await record(place, game)
    assert (row["outcome"], row["seat"], row["counter"], row["phase"]) == ("stalled", game.order[0], 6, 3)


async def test_abandoned_by_the_gone_seat_that_owes_even_when_nobody_is_connected(place: Place):
    app = await place.start(**SHORT)
    game = place.game()
    clients = await played(place, app, game)
    for client in clients:
        await client.hang_up()
    row = await record(place, game)
    assert (row["outcome"], row["seat"]) == ("abandoned", game.order[0])


async def test_gone_and_back_in_time_is_not_charged(place: Place):
    app = await place.start(**{**SHORT, "turn_s": "4", "gone_s": "2"})
    game = place.game()
    clients = await played(place, app, game)
    await clients[0].hang_up()
    await asyncio.sleep(0.5)
    clients[0] = await place.enter(app, game, game.order[0], position=6)
    await clients[0].expect("welcome")
    await asyncio.sleep(2)  # longer than what was left of the gone time
    await clients[0].send(**envelope(6, 3, sealed()))
    await clients[1].expect("envelope")


async def test_expired_charges_nobody(place: Place):
    app = await place.start(match_s="1.2")
    game = place.game()
    clients = await played(place, app, game)
    await assert_ended(clients, "EXPIRED")
    assert (await record(place, game))["seat"] is None


async def test_finished_by_both(place: Place, door: str):
    place.door = door
    app = await place.start()
    game = place.game()
    clients = await played(place, app, game, (0, 0, 1, 6, 6))
    await clients[0].send(close={"outcome": pb.OUTCOME_FINISHED})
    await clients[0].send(receipt_request={})
    await clients[0].expect("receipt")
    await clients[1].send(close={"outcome": pb.OUTCOME_FINISHED})
    await assert_ended(clients, "FINISHED")
    assert (await record(place, game))["phase"] == 6


def proof(game: Game, keys: tuple[Any, Any] | None = None) -> dict[str, Any]:
    digest = tagged("match-result", secrets.token_bytes(120))
    signatures = [key.sign(digest).signature for key in keys or game.keys]
    return {"outcome": pb.OUTCOME_FINISHED, "result_digest": digest, "result_signatures": signatures}


async def test_finished_by_one_seat_with_both_signatures_over_the_result(place: Place):
    app = await place.start()
    game = place.game()
    clients = await played(place, app, game, (0, 0, 1, 6))
    stranger = place.game()
    shown = proof(game)
    for bad in (
        proof(game, (game.keys[1], game.keys[0])),
        proof(game, (game.keys[0], stranger.keys[1])),
        {**shown, "result_signatures": shown["result_signatures"][:1]},
        {**shown, "result_signatures": [shown["result_signatures"][0]] * 2},
        {**shown, "result_digest": secrets.token_bytes(64)},
        {**shown, "result_digest": b""},
        {**shown, "result_digest": shown["result_digest"][:63]},
        {"outcome": pb.OUTCOME_FINISHED, "result_digest": shown["result_digest"]},
    ):
        await clients[1].send(close=bad)
        refusal = await clients[1].expect("refusal")
        assert pb.Reason.Name(refusal.reason) == "REASON_RESULT_PROOF_INVALID"
    await clients[1].send(close=shown)
    await assert_ended(clients, "FINISHED")


async def test_what_was_said_before_hanging_up_counts(place: Place):
    app = await place.start()
    game = place.game()
    clients = await played(place, app, game)
    await clients[1].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 3})
    await clients[1].hang_up()
    await assert_ended(clients[:1], "DISPUTED")


async def test_finished_without_a_close_after_both_signed(place: Place):
    app = await place.start(**SHORT)
    game = place.game()
    clients = await played(place, app, game, (0, 0, 1, 6, 6))
    await assert_ended(clients, "FINISHED")


async def test_refusing_to_sign_is_charged(place: Place):
    app = await place.start(**SHORT)
    game = place.game()
    clients = await played(place, app, game, (0, 0, 1, 6))
    await assert_ended(clients, "STALLED", game.order[0])


async def test_a_resignation_waits_for_the_peer_s_one_envelope(place: Place):
    app = await place.start()
    game = place.game()
    clients = await played(place, app, game, (0, 0, 1, 6))
    await clients[0].send(close={"outcome": pb.OUTCOME_RESIGNED})
    assert (await clients[0].expect("closed")).code == 4501  # it did not send the first closing envelope
    clients[0] = await place.enter(app, game, game.order[0], position=4)
    await clients[0].expect("welcome")
    await clients[1].send(close={"outcome": pb.OUTCOME_RESIGNED})
    await clients[1].send(receipt_request={})
    await clients[1].expect("receipt")
    await clients[0].send(close=proof(game))  # changes nothing
    await clients[0].send(**envelope(4, 6, sealed()))
    assert (await clients[1].expect("envelope")).counter == 4
    await assert_ended(clients, "RESIGNED", game.order[1])


async def test_a_resignation_ends_without_the_peer_and_charges_it_nothing(place: Place):
    app = await place.start(**SHORT)
    game = place.game()
    clients = await played(place, app, game, (0, 0, 1, 6))
    await clients[1].send(close={"outcome": pb.OUTCOME_RESIGNED})
    await clients[0].hang_up()
    await assert_ended(clients[1:], "RESIGNED", game.order[1])


async def test_a_dispute_stores_its_reason_and_does_not_show_it(place: Place, door: str):
    place.door = door
    app = await place.start()
    game = place.game()
    clients = await played(place, app, game)
    await clients[1].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 5})
    await assert_ended(clients, "DISPUTED")
    row = await record(place, game)
    assert (row["outcome"], row["seat"], row["dispute_reason"]) == ("disputed", None, 5)


@pytest.mark.parametrize("reason", [0, 14, 2**32 - 1])
async def test_a_dispute_without_a_reason_of_the_list_closes_the_connection_only(place: Place, reason: int):
    app = await place.start()
    clients = await played(place, app, place.game())
    await clients[1].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": reason})
    assert (await clients[1].expect("closed")).code == 4501
    await clients[0].send(receipt_request={})
    await clients[0].expect("receipt")


async def test_a_closed_match_still_answers_a_join_with_what_was_missed_and_the_outcome(place: Place):
    app = await place.start()
    game = place.game()
    clients = await played(place, app, game)
    await clients[0].hang_up()
    await clients[1].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 1})
    await clients[1].expect("ended")
    await record(place, game)
    for position, seat in ((5, 0), (6, 0), (5, 1)):
        late = await place.enter(app, game, game.order[seat], position=position)
        assert (await late.expect("welcome")).counter == 6
        if (position, seat) == (5, 0):
            assert (await late.expect("envelope")).counter == 5
        await assert_ended([late], "DISPUTED")


async def test_a_closed_match_is_never_begun_again_even_if_redis_lost_it(place: Place):
    app = await place.start()
    game = place.game()
    clients = await played(place, app, game)
    await clients[1].send(close={"outcome": pb.OUTCOME_DISPUTED, "dispute_reason": 1})
    await clients[1].expect("ended")
    await record(place, game)
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        await redis.flushall()
    for position in (0, 6):
        late = await place.enter(app, game, game.order[0], position=position)
        assert (await late.expect("welcome")).counter == 6
        await assert_ended([late], "DISPUTED")


async def test_a_device_that_is_signed_out_abandons_its_match(place: Place):
    app = await place.start()
    game, other = place.game(age_s=5), place.game()
    clients = await played(place, app, game)
    bystanders = await played(place, app, other)
    async with Redis.from_url(place.settings["redis_url"]) as redis:
        now_ms = int(place.lobby.clock.now() * 1000)
        await redis.xadd("revocations", {"nonsense": "1"})
        await redis.xadd("revocations", {"device_key": "???", "time": "x"})
        for key, time_ms in ((game.keys[1], now_ms), (other.keys[0], now_ms - 60_000)):
            entry = {"device_key": encode_base64url(bytes(key.verify_key)), "time": time_ms, "account_id": "x"}
            await redis.xadd("revocations", entry)
    await assert_ended(clients, "ABANDONED", 1)
    await bystanders[0].send(receipt_request={})
    await bystanders[0].expect("receipt")  # that one was signed out before its contract was made
