"""Both players, and everybody else, hand in at once: one right outcome, whatever the order.

`KOIKOI_RACES=1000` repeats every race so often.
"""

import asyncio
import os
import random
from collections import Counter

import pytest
from koikoi.ranking.v1 import ranking_service_pb2 as pb

from services.kit.postgres import open_pool
from services.ranking.store.rebuild import rebuild
from tests.integration.ranking.conftest import Refused
from tests.unit.ranking.cases import Device, make_game, sign_game

ROUNDS = int(os.environ.get("KOIKOI_RACES", "20"))
CLIENTS = 50
pytestmark = pytest.mark.timeout(120 + ROUNDS)


async def race(bench, games):
    """Hand in all games at once, in any order; give the receipts and the reasons of refusals, counted."""
    random.shuffle(games)
    answers = await asyncio.gather(*(bench.submit(game) for game in games), return_exceptions=True)
    receipts = [answer for answer in answers if isinstance(answer, pb.MatchResult)]
    refused = [answer for answer in answers if isinstance(answer, Refused)]
    assert len(receipts) + len(refused) == len(games), answers
    return receipts, Counter(error.reason for error in refused)


async def check_one(bench, receipts, players, matches):
    """Check that all receipts are the one that is recorded, and that it counted once."""
    assert all(receipt == receipts[0] for receipt in receipts)
    assert await bench.result(receipts[0].match_id) == receipts[0]
    assert await bench.count("result") == matches
    assert await bench.count("appearance") == 2 * matches
    for player in players:
        assert (await bench.rating(player.account)).matches == matches


async def test_the_same_statement_from_fifty_clients(bench):
    players = Device(name="Taro"), Device(name="Hana")
    for number in range(1, ROUNDS + 1):
        receipts, refused = await race(bench, [make_game(*players)] * CLIENTS)
        assert not refused
        await check_one(bench, receipts, players, number)
    assert await bench.count("conflict") == 0


async def test_two_stories_of_one_match_from_fifty_clients(bench):
    players = Device(name="Taro"), Device(name="Hana")
    for number in range(1, ROUNDS + 1):
        game = make_game(*players)
        other = sign_game(game.devices, game.payload, game.statement[:-1] + b"x")
        receipts, refused = await race(bench, [game, other] * (CLIENTS // 2))
        assert refused == {"RESULT_CONFLICT": CLIENTS // 2}
        await check_one(bench, receipts, players, number)
        assert await bench.count("conflict") == number


async def test_the_same_match_with_the_seats_swapped(bench):
    """A second contract of the match with the seats the other way round; the lobby never makes one. And signatures
    the other way round, which prove nothing."""
    players = Device(name="Taro"), Device(name="Hana")
    for number in range(1, ROUNDS + 1):
        game = make_game(*players)
        mirrored = make_game(*reversed(players), jti=game.match_id)
        crossed = sign_game(game.devices, game.payload, game.statement)
        crossed.signatures = crossed.signatures[::-1]
        receipts, refused = await race(bench, [game] * 20 + [mirrored] * 20 + [crossed] * 10)
        assert refused == {"RESULT_CONFLICT": 20, "SIGNATURE_INVALID": 10}
        await check_one(bench, receipts, players, number)


async def test_many_matches_of_few_players_rate_as_if_one_after_the_other(bench):
    players = [Device(name=f"P{index}") for index in range(5)]
    for _ in range(max(1, ROUNDS // 10)):
        games = [make_game(*random.sample(players, 2)) for _ in range(CLIENTS // 2)]
        receipts, refused = await race(bench, games * 2)
        assert not refused
        assert len({receipt.order_number for receipt in receipts}) == len(games)
    pool = await open_pool(bench.database, max_size=1, schema="ranking")
    try:
        assert (await rebuild(pool, repair=False)).is_clean
    finally:
        await pool.close()


async def walk(bench, account, size):
    """Read all pages down, then up again; give both walks, newest first."""
    page = await bench.results(account, page_size=size)
    down = list(page.results)
    while page.next_page_token:
        page = await bench.results(account, page_size=size, page_token=page.next_page_token)
        down += page.results
    up = list(page.results)
    while page.previous_page_token:
        page = await bench.results(account, page_size=size, page_token=page.previous_page_token)
        up = [*page.results, *up]
    return down, up


async def test_pages_read_while_results_come_repeat_and_miss_none(bench):
    """Every walk, begun at any moment, shows all results from its first one on."""
    own, rivals = Device(name="Own"), [Device(name=f"R{index}") for index in range(4)]
    await bench.submit(make_game(own, rivals[0]))
    writing = asyncio.gather(*(bench.submit(make_game(own, random.choice(rivals))) for _ in range(CLIENTS)))
    walks = []
    while not writing.done():
        walks += await walk(bench, own.account, random.randint(1, 5))
    await writing
    whole = list((await bench.results(own.account, page_size=200)).results)
    assert len(whole) == CLIENTS + 1
    for shown in walks:
        assert shown == whole[whole.index(shown[0]) :]
