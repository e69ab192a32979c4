"""No reading call looks through a whole table, on 100,000 results of 50,000 accounts; nor does handing in."""

from datetime import UTC, datetime

import asyncpg
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.ranking.v1 import ranking_service_pb2 as pb

from services.ranking.app import build
from services.ranking.store import histories, standings
from tests.integration.ranking.conftest import connect
from tests.unit.ranking.cases import Device, make_game

RESULTS = 100_000
STAR = "a000000"
"""Played in one result of ten, so its own history is long, too."""
FILL = f"""
    ALTER TABLE result_seat DISABLE TRIGGER ALL;
    ALTER TABLE appearance DISABLE TRIGGER ALL;
    INSERT INTO account SELECT 'a' || lpad(n::text, 6, '0'), 'Name', 25, 8, 1000 + n % 1000, 1 + n % 40, 0
    FROM generate_series(0, {RESULTS // 2}) AS n;
    INSERT INTO result (match_id, session_id, contract, contract_hash, lobby_key_id, lobby_key, statement, signature_0,
        signature_1, is_rated, ending, winner, rounds, create_time)
    SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, '', repeat('c', 400), '', 'k', '', '', '',
        '', n % 5 <> 0, 0, n % 2, 6, '2026-01-01'::timestamptz + n * interval '1 minute'
    FROM generate_series(1, {RESULTS}) AS n;
    INSERT INTO result_seat
    SELECT order_number, seat, 'a' || lpad(
        (CASE WHEN seat = 0 AND order_number % 10 = 0 THEN 0 WHEN seat = 0 THEN 1 + order_number % 25000
        ELSE 25001 + order_number % 24999 END)::text, 6, '0'), 'Name', 30 - seat, 25, 8, 25, 8
    FROM result CROSS JOIN generate_series(0, 1) AS seat;
    INSERT INTO appearance SELECT * FROM log_appearance;
    ALTER TABLE result_seat ENABLE TRIGGER ALL;
    ALTER TABLE appearance ENABLE TRIGGER ALL;
"""
TABLES = ("account", "result", "result_seat", "appearance")


@pytest.fixture
async def crowded(bench, database_url):
    connection = await asyncpg.connect(database_url("ranking", role="postgres"))
    await connection.execute("SET search_path = ranking")
    await connection.execute(FILL)
    for table in TABLES:
        await connection.execute(f"VACUUM ANALYZE {table}")
    yield bench, connection
    await connection.close()


async def sequential_scans(connection):
    await connection.execute("SELECT pg_stat_clear_snapshot()")
    rows = await connection.fetch("SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY ($1)", TABLES)
    return {row["relname"]: row["seq_scan"] for row in rows}


def at(seconds):
    return Timestamp(seconds=seconds)


MIDDLE = 1_770_000_000
"""A time in the middle of the results."""


async def list_calls(bench, stub):
    """Give every reading call in every shape that chooses another query."""
    board = await bench.call(stub.GetLeaderboard(pb.GetLeaderboardRequest(page_size=200)))
    around = await bench.call(stub.GetLeaderboardAround(pb.GetLeaderboardAroundRequest(account_id="a025000")))
    page = await bench.call(stub.ListMatchResults(pb.ListMatchResultsRequest(account_id=STAR)))
    filters = [
        {"rated_only": True},
        {"opponent_id": page.results[3].seats[1].account_id},
        {"opponent_id": "nobody"},
        {"outcome": pb.SEAT_OUTCOME_DRAWN},
        {"ending": pb.ENDING_RESIGNED},
        {"start_time": at(MIDDLE), "end_time": at(MIDDLE + 86400)},
        {"page_token": page.next_page_token},
    ]
    return [
        (stub.GetLeaderboard, pb.GetLeaderboardRequest(page_token=board.next_page_token)),
        (stub.GetLeaderboard, pb.GetLeaderboardRequest(page_token=around.next_page_token)),
        (stub.GetLeaderboard, pb.GetLeaderboardRequest(page_token=around.previous_page_token)),
        (stub.GetLeaderboardAround, pb.GetLeaderboardAroundRequest(account_id="a050000")),
        (stub.GetRating, pb.GetRatingRequest(account_id="a049000")),
        (stub.GetMatchResult, pb.GetMatchResultRequest(match_id=page.results[7].match_id)),
        (stub.GetRatingHistory, pb.GetRatingHistoryRequest(account_id=STAR, max_points=500)),
        (stub.GetRatingHistory, pb.GetRatingHistoryRequest(account_id=STAR, start_time=at(MIDDLE))),
        (stub.GetRatingHistory, pb.GetRatingHistoryRequest(account_id=STAR, start_time=at(MIDDLE * 2))),
        (stub.ListMatchResults, pb.ListMatchResultsRequest(account_id="a000123")),
        *(
            (stub.ListMatchResults, pb.ListMatchResultsRequest(account_id=STAR, page_size=200, **one))
            for one in filters
        ),
    ]


async def test_no_call_looks_through_a_whole_table(crowded):
    bench, connection = crowded
    before = await sequential_scans(connection)
    async with build(bench.environ, clock=bench.clock) as app, connect(app) as stub:
        for method, request in await list_calls(bench, stub):
            await bench.call(method(request))
        bench.stub = stub
        game = make_game(Device(account=STAR), Device())
        await bench.submit(game)
        await bench.submit(game)
    # The counts of a connection are told when it ends.
    assert await sequential_scans(connection) == before


PLANS = {
    "top": (standings._TOP, (51,)),
    "forward": (standings._FORWARD, (51, 1500, "a025000", False)),
    "backward": (standings._BACKWARD, (51, 1500, "a025000", True)),
    "counts": (standings._COUNTS, (1000, "a049000")),
    "older": (histories._OLDER, (STAR, None, None, None, None, None, False, 1 << 62, 51)),
    "older, filtered": (histories._OLDER, (STAR, None, None, "nobody", 0, 2, True, 1 << 62, 51)),
    "newer": (histories._NEWER, (STAR, None, None, None, None, None, False, 5, 51)),
    "rated": (histories._COUNT_RATED, (STAR, None, None)),
    "picked": (histories._PICK_RATED, (STAR, None, None, list(range(500)))),
    "last rated": (histories._LAST_RATED, (STAR, datetime(2026, 2, 1, tzinfo=UTC))),
    "points": (histories._POINTS, (STAR, list(range(1, 501)))),
    "receipts": (histories._RECEIPTS, (list(range(1, 202)),)),
    "match": (histories._FIND, ("00000000-0000-7000-8000-000000000001",)),
}


async def test_the_planner_goes_by_indices(crowded):
    _, connection = crowded
    for name, (query, arguments) in PLANS.items():
        plan = "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {query}", *arguments))
        assert "Index" in plan, f"{name}:\n{plan}"
        assert "Seq Scan" not in plan, f"{name}:\n{plan}"
