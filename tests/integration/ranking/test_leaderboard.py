"""The leaderboard and single ratings, over gRPC."""

import grpc
import pytest

from tests.integration.ranking.conftest import Refused
from tests.unit.ranking.cases import Device, make_game, play

DRAW = play("house", *[("exhausted",)] * 6)


async def fill(bench, winners):
    """Let each of some players win once against a new one, in order."""
    pairs = [(Device(name=f"W{index}"), Device(name=f"L{index}")) for index in range(winners)]
    for winner, loser in pairs:
        await bench.submit(make_game(loser, winner))
    return pairs


async def test_an_empty_leaderboard(bench):
    board = await bench.board()
    assert not board.entries
    assert board.next_page_token == ""


async def test_equal_ratings_share_a_place_over_pages_of_every_size(bench):
    pairs = await fill(bench, 4)
    await bench.submit(make_game(match=DRAW))
    whole = (await bench.board()).entries
    assert [entry.rank for entry in whole] == [1, 1, 1, 1, 5, 5, 7, 7, 7, 7]
    assert {entry.account_id for entry in whole[:4]} == {winner.account for winner, _ in pairs}
    assert [entry.rating for entry in whole] == sorted((entry.rating for entry in whole), reverse=True)
    for size in (1, 2, 3, 4, 7, 9):
        pages, token = [], ""
        while True:
            page = await bench.board(size, token)
            pages += page.entries
            token = page.next_page_token
            if not token:
                break
        assert pages == list(whole), size


async def test_a_cursor_survives_changes_between_pages(bench):
    await fill(bench, 3)
    first = await bench.board(2)
    await bench.submit(make_game(Device(account="zz-loser"), Device(account="zz-winner")))
    second = await bench.board(200, first.next_page_token)
    shown = [entry.account_id for entry in [*first.entries, *second.entries]]
    assert len(shown) == len(set(shown))


async def test_names_are_those_of_the_last_recorded_match(bench):
    player = Device(name="Old")
    await bench.submit(make_game(player, Device()))
    player.name = "新しい"
    await bench.submit(make_game(player, Device(), ranked=False))
    entry = await bench.rating(player.account)
    assert (entry.display_name, entry.matches) == ("新しい", 1)


async def test_an_unknown_account_has_the_initial_rating_and_no_place(bench):
    entry = await bench.rating("nobody")
    assert (entry.rank, entry.account_id, entry.rating, entry.matches, entry.wins) == (0, "nobody", 1500, 0, 0)


@pytest.mark.parametrize("page_token", ["x", "AAAA", "🎴", "A" * 5000])
async def test_a_token_nobody_gave_out_is_refused(bench, page_token):
    with pytest.raises(Refused) as caught:
        await bench.board(10, page_token)
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID")
    assert caught.value.metadata["field"] == "page_token"


async def test_too_large_a_page_and_too_long_an_id_are_refused(bench):
    for call in (bench.board(201), bench.rating(""), bench.rating("a" * 300), bench.rating("a\0b")):
        with pytest.raises(Refused) as caught:
            await call
        assert caught.value.reason == "FIELD_INVALID"
