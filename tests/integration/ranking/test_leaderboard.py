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


async def test_the_way_back_shows_the_same_pages(bench):
    await fill(bench, 4)
    for size in (1, 2, 3, 5, 7):
        pages = [await bench.board(size)]
        while pages[-1].next_page_token:
            pages.append(await bench.board(size, pages[-1].next_page_token))
        assert not pages[0].previous_page_token
        back = [pages[-1]]
        while back[0].previous_page_token:
            back.insert(0, await bench.board(size, back[0].previous_page_token))
        walked = [entry for page in back for entry in page.entries]
        assert walked == [entry for page in pages for entry in page.entries], size


async def test_a_cursor_survives_changes_between_pages(bench):
    """Who moved is shown where it stands then; all others once, in both directions."""
    await fill(bench, 3)
    first = await bench.board(2)
    await bench.submit(make_game(Device(account="zz-loser"), Device(account="zz-winner")))
    second = await bench.board(200, first.next_page_token)
    shown = [entry.account_id for entry in [*first.entries, *second.entries]]
    assert len(shown) == len(set(shown))
    back = await bench.board(200, second.previous_page_token)
    assert [entry.account_id for entry in back.entries] == [entry.account_id for entry in first.entries]


async def test_the_way_back_is_there_when_all_on_this_side_moved_to_the_other(bench):
    ((winner, loser),) = await fill(bench, 1)
    first = await bench.board(1)
    second = await bench.board(1, first.next_page_token)
    await bench.rows("UPDATE account SET rating = 3000 WHERE account_id = $1", loser.account)
    empty = await bench.board(1, first.next_page_token)
    assert not empty.entries
    assert not empty.next_page_token
    whole = (await bench.board(5, empty.previous_page_token)).entries
    assert [(entry.rank, entry.account_id) for entry in whole] == [(1, loser.account), (2, winner.account)]
    await bench.rows("UPDATE account SET rating = 0")
    empty = await bench.board(1, second.previous_page_token)
    assert not empty.entries
    assert not empty.previous_page_token
    assert len((await bench.board(5, empty.next_page_token)).entries) == 2


async def test_the_order_of_equal_ratings_is_that_of_the_bytes_of_the_ids(bench):
    winners = ["b", "B", "a-1", "a1", "é", "花", "_"]
    for account in winners:
        await bench.submit(make_game(Device(), Device(account=account)))
    shown = [entry.account_id for entry in (await bench.board(len(winners))).entries]
    assert shown == sorted(winners, key=str.encode)


async def test_around_an_account_stand_its_neighbours(bench):
    await fill(bench, 3)
    await bench.submit(make_game(match=DRAW))
    whole = list((await bench.board()).entries)
    assert len(whole) == 8
    for index, entry in enumerate(whole):
        for above, below in ((0, 0), (1, 2), (3, 0), (100, 100)):
            found = await bench.around(entry.account_id, above=above, below=below)
            start, end = max(0, index - above), index + below + 1
            assert list(found.entries) == whole[start:end]
            assert bool(found.previous_page_token) == (start > 0)
            assert bool(found.next_page_token) == (end < len(whole))
            if found.previous_page_token:
                assert list((await bench.board(200, found.previous_page_token)).entries) == whole[:start]
            if found.next_page_token:
                assert list((await bench.board(200, found.next_page_token)).entries) == whole[end:]
    assert list((await bench.around(whole[7].account_id)).entries) == whole[2:]
    assert list((await bench.around(whole[0].account_id)).entries) == whole[:6]


async def test_around_an_account_without_a_place_stands_nobody(bench):
    await fill(bench, 1)
    unrated = make_game(ranked=False)
    await bench.submit(unrated)
    for account, name in ((unrated.devices[0].account, "Taro"), ("nobody", "")):
        found = await bench.around(account)
        (entry,) = found.entries
        assert (entry.rank, entry.account_id, entry.display_name, entry.rating) == (0, account, name, 1500)
        assert not found.next_page_token
        assert not found.previous_page_token


async def test_around_with_bad_fields_is_refused(bench):
    for call, field in (
        (bench.around(""), "account_id"),
        (bench.around("a", above=101), "above"),
        (bench.around("a", below=2**32 - 1), "below"),
    ):
        with pytest.raises(Refused) as caught:
            await call
        assert (caught.value.reason, caught.value.metadata["field"]) == ("FIELD_INVALID", field)


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
