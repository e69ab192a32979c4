"""Handing in results: what counts, what is refused and why, and what stays when many come at once."""

import asyncio
import json
import random
import uuid

import grpc
import pytest
from koikoi.ranking.v1 import ranking_service_pb2 as pb

from services.kit.signatures import tagged
from services.ranking.app import build
from tests.harness import Issuer
from tests.integration.ranking.conftest import Bench, Refused, connect
from tests.unit.ranking.cases import (
    CONTRACT_TYP,
    LOBBY_ISSUER,
    NOW,
    SIX_ROUNDS,
    TORSION,
    Device,
    Game,
    add_order,
    make_game,
    play,
    rules_text,
    sign_game,
    sign_with_point,
)

WEEK = 7 * 24 * 3600
Code = grpc.StatusCode


async def refusal(bench: Bench, game: Game, **changes) -> Refused:
    before = [await bench.count("result"), await bench.count("account")]
    with pytest.raises(Refused) as caught:
        await bench.submit(game, **changes)
    assert [await bench.count("result"), await bench.count("account")] == before
    return caught.value


async def test_a_dual_signed_result_is_recorded_and_rated(bench):
    game = make_game()
    result = await bench.submit(game)
    assert result.match_id == game.match_id
    assert result.is_rated
    assert result.ending == pb.ENDING_ROUNDS_PLAYED
    assert result.winner_seat == 1
    assert result.rounds == 6
    assert result.create_time.seconds == NOW + 60
    first, second = result.seats
    assert [seat.account_id for seat in result.seats] == [device.account for device in game.devices]
    assert [seat.display_name for seat in result.seats] == ["Taro", "Hana"]
    assert [seat.points for seat in result.seats] == [19, 31]
    assert first.rating_before == second.rating_before == 1500
    assert first.rating_after < 1500 < second.rating_after
    for device, seat, wins in zip(game.devices, result.seats, (0, 1), strict=True):
        entry = await bench.rating(device.account)
        assert (entry.rating, entry.matches, entry.wins) == (seat.rating_after, 1, wins)
        assert entry.rank == 2 - wins


async def test_all_it_takes_to_verify_again_is_kept(bench):
    game = make_game()
    contract = bench.sign(game)
    await bench.submit(game, contract=contract)
    (row,) = await bench.rows("SELECT * FROM result")
    assert row["match_id"] == uuid.UUID(game.match_id)
    assert (row["contract"], row["statement"]) == (contract, game.statement)
    assert (row["signature_0"], row["signature_1"]) == game.signatures
    (key,) = json.loads(bench.lobby.keys.jwks())["keys"]
    assert row["lobby_key_id"] == key["kid"]
    assert len(row["lobby_key"]) == 32


async def test_the_same_statement_again_gives_the_same_receipt(bench):
    game = make_game()
    first = await bench.submit(game)
    bench.clock.advance(3600)
    assert await bench.submit(game) == first
    again = signed_by_hand(game, 0, None)
    assert again != game.signatures[0]
    assert await bench.submit(game, signatures=(again, game.signatures[1])) == first
    assert await bench.count("result") == 1
    assert await bench.count("conflict") == 0


async def test_another_statement_of_the_match_is_a_conflict_and_noted_once(bench):
    game = make_game()
    first = await bench.submit(game)
    other = sign_game(game.devices, game.payload, game.statement[:-1] + b"x")
    for _ in range(2):
        refused = await refusal(bench, other)
        assert (refused.code, refused.reason) == (Code.ALREADY_EXISTS, "RESULT_CONFLICT")
        assert refused.metadata["match_id"] == game.match_id
    (row,) = await bench.rows("SELECT * FROM conflict")
    assert (row["statement"], row["signature_1"]) == (other.statement, other.signatures[1])
    assert await bench.submit(game) == first


async def test_conflicts_of_a_match_are_bounded(bench):
    game = make_game()
    await bench.submit(game)
    for number in range(12):
        await refusal(bench, sign_game(game.devices, game.payload, game.statement[:-1] + bytes([number])))
    assert await bench.count("conflict") == 8


async def test_a_loser_cannot_keep_a_result_out_with_its_session_id(bench):
    """The loser knows the session id early, and signs with a friend another match's result that names it."""
    winner, loser, friend = Device(name="Taro"), Device(name="Hana"), Device(name="Ume")
    game = make_game(winner, loser, session_id=b"q" * 32)
    await bench.submit(make_game(loser, friend, session_id=b"q" * 32))
    assert (await bench.submit(game)).match_id == game.match_id
    assert await bench.count("conflict") == 0


async def test_an_unranked_result_is_recorded_but_not_rated(bench):
    game = make_game(
        match=play("nintendo", *[("shobu", 0, 3)] * 12, count=12), rules=rules_text("nintendo", 12), ranked=False
    )
    result = await bench.submit(game)
    assert not result.is_rated
    assert [(seat.rating_before, seat.rating_after) for seat in result.seats] == [(1500, 1500)] * 2
    assert [seat.points for seat in result.seats] == [36, 0]
    entry = await bench.rating(game.devices[0].account)
    assert (entry.rank, entry.matches, entry.rating, entry.display_name) == (0, 0, 1500, "Taro")
    assert not (await bench.board()).entries


@pytest.mark.parametrize(
    ("rounds", "resigned_by", "ending", "winner"),
    [
        ([("exhausted",)] * 6, None, pb.ENDING_ROUNDS_PLAYED, None),
        ([("shobu", 1, 10, 1)], None, pb.ENDING_BUST, 1),
        (SIX_ROUNDS[:2], 0, pb.ENDING_RESIGNED, 1),
        ([], 1, pb.ENDING_RESIGNED, 0),
    ],
)
async def test_every_ending_is_told(bench, rounds, resigned_by, ending, winner):
    result = await bench.submit(make_game(match=play("house", *rounds), resigned_by=resigned_by))
    assert result.ending == ending
    assert (result.winner_seat if result.HasField("winner_seat") else None) == winner
    assert result.rounds == len(rounds)


def signed_by_hand(game, seat, extra, **kind):
    return sign_with_point(game.devices[seat], tagged("match-result", game.statement), extra, **kind)


SIGNATURES = {
    "one is missing": (lambda game: game.signatures[:1], "FIELD_INVALID"),
    "none": (lambda game: (), "FIELD_INVALID"),
    "one is empty": (lambda game: (game.signatures[0], b""), "FIELD_INVALID"),
    "swapped": (lambda game: game.signatures[::-1], "SIGNATURE_INVALID"),
    "the same twice": (lambda game: (game.signatures[0],) * 2, "SIGNATURE_INVALID"),
    "a stranger's": (lambda game: (game.signatures[0], Device().sign(game.statement)), "SIGNATURE_INVALID"),
    "S + L": (lambda game: (add_order(game.signatures[0]), game.signatures[1]), "SIGNATURE_INVALID"),
    "torsion": (lambda game: (signed_by_hand(game, 0, TORSION), game.signatures[1]), "SIGNATURE_INVALID"),
    "small order": (
        lambda game: (game.signatures[0], signed_by_hand(game, 1, None, has_nonce=False)),
        "SIGNATURE_INVALID",
    ),
}


@pytest.mark.parametrize("name", sorted(SIGNATURES))
async def test_fewer_than_two_valid_signatures_never_count(bench, name):
    game = make_game()
    forge, reason = SIGNATURES[name]
    refused = await refusal(bench, game, signatures=forge(game))
    assert refused.reason == reason
    assert refused.code is (Code.INVALID_ARGUMENT if reason == "FIELD_INVALID" else Code.PERMISSION_DENIED)


async def test_a_statement_of_another_contract_is_refused(bench):
    game = make_game()
    refused = await refusal(bench, sign_game(game.devices, game.payload, make_game().statement))
    assert (refused.code, refused.reason) == (Code.PERMISSION_DENIED, "CONTRACT_MISMATCH")


async def test_impossible_points_are_refused(bench):
    refused = await refusal(bench, make_game(lies={"points": (20, 30)}))
    assert (refused.code, refused.reason) == (Code.INVALID_ARGUMENT, "STATEMENT_IMPOSSIBLE")
    assert refused.metadata["part"] == "points"


async def test_a_malformed_statement_is_refused(bench):
    refused = await refusal(bench, make_game(lies={"version": 2}))
    assert (refused.code, refused.reason) == (Code.INVALID_ARGUMENT, "STATEMENT_MALFORMED")


async def test_doctored_bytes_are_refused(bench):
    game = make_game()
    for position in random.Random(7).sample(range(len(game.statement)), 12):
        doctored = bytearray(game.statement)
        doctored[position] ^= 0x40
        await refusal(bench, game, statement=bytes(doctored))


async def test_results_are_taken_for_seven_days(bench):
    game, late = make_game(), make_game()
    bench.clock.advance(WEEK - 61)
    await bench.submit(game)  # the contract itself expired days ago
    bench.clock.advance(10)
    refused = await refusal(bench, late)
    assert (refused.code, refused.reason) == (Code.FAILED_PRECONDITION, "CONTRACT_TOO_OLD")


async def test_contracts_of_another_environment_or_issuer_are_refused(bench, tmp_path):
    stranger = Issuer(tmp_path / "stranger", bench.clock, LOBBY_ISSUER)
    game = make_game()
    tampered = bench.sign(game).split(".")
    tampered[1] = tampered[1][:-4] + ("AAAA" if tampered[1][-4:] != "AAAA" else "BBBB")
    cases = {
        "another environment": bench.sign(make_game(iss="https://lobby.koikoi/production")),
        "auth's name": bench.sign(make_game(iss="https://auth.koikoi/development")),
        "a stranger's key": bench.sign(game, issuer=stranger),
        "another type": bench.sign(game, typ="at+jwt"),
        "tampered": ".".join(tampered),
        "no signature": bench.sign(game).rsplit(".", 1)[0] + ".",
        "no document": "x.y.z",
        "garbage": "ä",
        "from the future": bench.sign(make_game(iat=NOW + 4000, exp=NOW + 9000)),
        "equal accounts": bench.sign(make_game(Device("same"), Device("same"))),
        "unknown rules": bench.sign(make_game(rules=rules_text("chess"))),
    }
    for name, contract in cases.items():
        refused = await refusal(bench, game, contract=contract)
        assert (refused.code, refused.reason) == (Code.PERMISSION_DENIED, "CONTRACT_INVALID"), name


async def test_a_lobby_that_cannot_be_reached_is_an_outage_and_no_verdict(bench, redis_url):
    environ = bench.environ | {"KOIKOI_RANKING_LOBBY_TARGET": "127.0.0.1:1"}
    async with build(environ, clock=bench.clock) as app, connect(app) as bench.stub:
        refused = await refusal(bench, make_game())
    assert refused.code is Code.UNAVAILABLE
    assert refused.retry_after_s


async def test_oversized_fields_are_refused_before_any_work(bench):
    game = make_game()
    calls = bench.teller.calls
    assert (await refusal(bench, game, contract="c" * 4097)).metadata["field"] == "contract"
    assert (await refusal(bench, game, statement=bytes(513))).metadata["field"] == "statement"
    assert bench.teller.calls == calls


async def test_limits_hold_per_address_and_come_first(bench):
    environ = bench.environ | {"KOIKOI_RANKING_SUBMISSIONS_PER_MINUTE": "3"}
    async with build(environ, clock=bench.clock) as app, connect(app) as bench.stub:
        garbage, near = make_game(), [("x-forwarded-for", "2001:db8::1")]
        neighbour = [("x-forwarded-for", "2001:db8::2")]
        for _ in range(3):
            assert (await refusal(bench, garbage, contract="x.y.z", metadata=near)).reason == "CONTRACT_INVALID"
        refused = await refusal(bench, garbage, contract="x.y.z", metadata=neighbour)
        assert (refused.code, refused.reason) == (Code.RESOURCE_EXHAUSTED, "RATE_LIMITED")
        assert 0 < refused.retry_after_s <= 60
        await bench.submit(make_game(), metadata=[("x-forwarded-for", "203.0.113.9")])
        bench.clock.advance(61)
        await bench.submit(make_game(), metadata=near)


async def test_both_players_and_their_friends_at_once_make_one_record(bench):
    game = make_game()
    results = await asyncio.gather(*(bench.submit(game) for _ in range(20)))
    assert all(result == results[0] for result in results)
    assert await bench.count("result") == 1
    assert (await bench.rating(game.devices[0].account)).matches == 1


async def test_two_stories_at_once_make_one_record_and_one_conflict(bench):
    game = make_game()
    other = sign_game(game.devices, game.payload, game.statement[:-1] + b"x")
    answers = await asyncio.gather(*(bench.submit(story) for story in (game, other) * 10), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    accepted = [answer for answer in answers if isinstance(answer, pb.MatchResult)]
    assert len(refused) == len(accepted) == 10
    assert {error.reason for error in refused} == {"RESULT_CONFLICT"}
    assert all(result == accepted[0] for result in accepted)
    assert [await bench.count("result"), await bench.count("conflict")] == [1, 1]


async def test_crossing_pairs_never_deadlock(bench):
    """Every pair of five players, both ways round, all at once: locks are taken in id order."""
    players = [Device(name=f"P{index}") for index in range(5)]
    games = [make_game(a, b) for a in players for b in players if a is not b]
    random.Random(3).shuffle(games)
    results = await asyncio.gather(*(bench.submit(game) for game in games))
    assert len({result.order_number for result in results}) == len(games)
    for player in players:
        assert (await bench.rating(player.account)).matches == 8
    by_order = sorted(results, key=lambda result: result.order_number)
    last = {}
    for result in by_order:
        for seat in result.seats:
            assert seat.rating_before == last.get(seat.account_id, 1500)
            last[seat.account_id] = seat.rating_after


async def test_a_match_id_given_to_many_pairs_at_once_counts_once(bench):
    """The lobby never does that; their accounts share no lock, so the table itself decides."""
    match_id = make_game().match_id
    games = [make_game(jti=match_id) for _ in range(6)]
    answers = await asyncio.gather(*(bench.submit(game) for game in games), return_exceptions=True)
    assert sum(isinstance(answer, pb.MatchResult) for answer in answers) == 1
    assert {answer.reason for answer in answers if isinstance(answer, Refused)} == {"RESULT_CONFLICT"}
    assert await bench.count("account") == 2


async def test_a_new_lobby_key_is_fetched_when_a_contract_names_it(bench, tmp_path):
    await bench.submit(make_game())
    bench.clock.advance(11)
    bench.teller.issuer = Issuer(tmp_path / "next", bench.clock, LOBBY_ISSUER)
    game = make_game()
    await bench.submit(game, contract=bench.sign(game, issuer=bench.teller.issuer, typ=CONTRACT_TYP))
