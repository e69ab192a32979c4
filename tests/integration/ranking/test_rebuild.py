"""Ratings made anew from the log equal what the live service came to; what was tampered with is mended."""

import random
import subprocess
import sys

import asyncpg
import pytest

from services.kit.postgres import open_pool
from services.ranking.store.rebuild import rebuild
from tests.unit.ranking.cases import SIX_ROUNDS, Device, make_game, play

MATCHES = [
    play("house", *SIX_ROUNDS),
    play("house", *[("exhausted",)] * 6),
    play("house", ("shobu", 0, 10, 1)),
    play("house", ("shobu", 1, 13)),
]


async def play_history(bench):
    random_, players = random.Random(11), [Device(name=f"P{index}") for index in range(6)]
    for _ in range(25):
        first, second = random_.sample(players, 2)
        await bench.submit(make_game(first, second, match=random_.choice(MATCHES), ranked=random_.random() < 0.8))
    return players


async def run(database, *, repair):
    pool = await open_pool(database, max_size=1, schema="ranking")
    try:
        return await rebuild(pool, repair=repair)
    finally:
        await pool.close()


async def everything(bench):
    return [
        await bench.rows("SELECT * FROM account ORDER BY account_id"),
        await bench.rows("SELECT * FROM result_seat ORDER BY order_number, seat"),
        await bench.rows("SELECT * FROM appearance ORDER BY order_number, account_id"),
    ]


async def test_rebuild_equals_history(bench):
    await play_history(bench)
    before = await everything(bench)
    report = await run(bench.database, repair=True)
    assert (report.results, report.accounts, report.is_clean) == (25, 6, True)
    assert await everything(bench) == before


async def test_what_was_tampered_with_is_found_and_mended(bench):
    players = await play_history(bench)
    before = await everything(bench)
    connection = await asyncpg.connect(bench.database)
    await connection.execute(
        "UPDATE account SET mu = 40, rating = 2000, wins = 99 WHERE account_id = $1", players[0].account
    )
    await connection.execute("UPDATE account SET display_name = 'x' WHERE account_id = $1", players[1].account)
    await connection.execute("UPDATE result_seat SET mu_after = 0 WHERE order_number = 3 AND seat = 1")
    await connection.execute("UPDATE appearance SET outcome = 0 WHERE order_number = 5 AND outcome = 1")
    await connection.execute("DELETE FROM appearance WHERE order_number = 7 AND account_id < opponent_id")
    await connection.close()
    seen = await run(bench.database, repair=False)
    assert (seen.seats_wrong, seen.accounts_wrong, seen.is_clean) == (1, 2, False)
    assert seen.appearances_wrong == 3  # one stands that does not follow, two follow that do not stand
    assert await everything(bench) != before
    assert await run(bench.database, repair=True) == seen
    assert await everything(bench) == before
    assert (await run(bench.database, repair=False)).is_clean


async def test_an_empty_log_is_clean(bench):
    report = await run(bench.database, repair=True)
    assert (report.results, report.accounts, report.is_clean) == (0, 0, True)


@pytest.mark.parametrize(("command", "status"), [("verify", 1), ("rebuild", 0), ("nonsense", 2)])
async def test_the_commands_of_the_operator(bench, command, status):
    await bench.submit(make_game())
    connection = await asyncpg.connect(bench.database)
    await connection.execute("UPDATE account SET wins = 5")
    await connection.close()
    done = subprocess.run(
        [sys.executable, "-m", "services.ranking", command],
        env=bench.environ | {"PYTHONPATH": ":".join(path for path in sys.path if path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == status, done.stderr
    wins = [row["wins"] for row in await bench.rows("SELECT wins FROM account ORDER BY wins")]
    assert wins == ([0, 1] if command == "rebuild" else [5, 5])
