"""A database of the release before gains its histories, and processes of that release go on writing them."""

import shutil

import asyncpg
import pytest

from services.kit.postgres import migrate
from services.ranking.store.postgres import MIGRATIONS

SCHEMA = "before"
# As the release before wrote a result, and listed the leaderboard.
OLD_RESULT = """
    INSERT INTO result (match_id, session_id, contract, contract_hash, lobby_key_id, lobby_key, statement, signature_0,
        signature_1, is_rated, ending, winner, rounds, create_time)
    VALUES (gen_random_uuid(), '', 'c', '', 'k', '', '', '', '', $1, 0, $2, 6, now()) RETURNING order_number
"""
OLD_SEAT = "INSERT INTO result_seat VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
OLD_BOARD = "SELECT * FROM account WHERE matches > 0 ORDER BY rating DESC, account_id LIMIT 10"
OLD_LOG = """
    SELECT result.order_number, is_rated, winner, seat, account_id, display_name, mu_before, sigma_before, mu_after,
        sigma_after
    FROM result JOIN result_seat USING (order_number) ORDER BY result.order_number, seat
"""


@pytest.fixture
async def connection(database_url):
    connection = await asyncpg.connect(database_url("ranking", role="postgres"))
    await connection.execute(f"CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}")
    yield connection
    await connection.close()


async def record(connection, *, winner, is_rated=True):
    number = await connection.fetchval(OLD_RESULT, is_rated, winner)
    await connection.executemany(
        OLD_SEAT, [(number, seat, account, "N", 25, 25.0, 8.0, 25.0, 8.0) for seat, account in enumerate("ab")]
    )
    return number


async def test_old_results_are_taken_over_and_old_processes_go_on(connection, database_url, tmp_path):
    url = database_url("ranking", role="postgres")
    for file in sorted(MIGRATIONS.glob("*.sql"))[:2]:
        shutil.copy(file, tmp_path)
    assert await migrate(url, SCHEMA, tmp_path) == ["0001_init.sql", "0002_session.sql"]
    await connection.execute("INSERT INTO account SELECT unnest('{a,b}'::text[]), 'N', 25, 8, 1500, 1, 0")
    before = [await record(connection, winner=1), await record(connection, winner=None, is_rated=False)]
    assert (await migrate(url, SCHEMA, MIGRATIONS))[0] == "0003_appearance.sql"
    after = await record(connection, winner=0)
    rows = await connection.fetch(
        "SELECT account_id, order_number, opponent_id, outcome, is_rated FROM appearance "
        "ORDER BY order_number, account_id"
    )
    assert [tuple(row) for row in rows] == [
        ("a", before[0], "b", -1, True),
        ("b", before[0], "a", 1, True),
        ("a", before[1], "b", 0, False),
        ("b", before[1], "a", 0, False),
        ("a", after, "b", 1, True),
        ("b", after, "a", -1, True),
    ]
    assert [row["account_id"] for row in await connection.fetch(OLD_BOARD)] == ["a", "b"]
    assert len(await connection.fetch(OLD_LOG)) == 6
