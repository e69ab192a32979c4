"""What accounts played: pages of results with filters, single results, ratings over time."""

import random
from itertools import pairwise

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.ranking.v1 import ranking_service_pb2 as pb

from tests.integration.ranking.conftest import Refused
from tests.unit.ranking.cases import NOW, SIX_ROUNDS, Device, make_game, play, uuid7

WON_BY_1 = play("house", *SIX_ROUNDS)
DRAW = play("house", *[("exhausted",)] * 6)
BUST_BY_0 = play("house", ("shobu", 0, 10, 1))


def at(seconds, nanos=0):
    return Timestamp(seconds=seconds, nanos=nanos)


async def play_career(bench, matches=30):
    """One account against three, over some days, in every way a match can end; gives account, rivals, receipts."""
    chance, own, rivals = random.Random(5), Device(name="Own"), [Device(name=f"R{index}") for index in range(3)]
    receipts = []
    for number in range(matches):
        bench.clock.advance(600)
        pair = [own, chance.choice(rivals)]
        if chance.random() < 0.5:
            pair.reverse()
        resigned_by = chance.choice([None, None, 0, 1])
        match = (
            play("house", *SIX_ROUNDS[:2]) if resigned_by is not None else chance.choice([WON_BY_1, DRAW, BUST_BY_0])
        )
        game = make_game(*pair, match=match, resigned_by=resigned_by, ranked=number % 4 != 0)
        receipts.append(await bench.submit(game))
    return own.account, rivals, receipts[::-1]


def outcome_of(receipt, account):
    if not receipt.HasField("winner_seat"):
        return pb.SEAT_OUTCOME_DRAWN
    own = [seat.account_id for seat in receipt.seats].index(account)
    return pb.SEAT_OUTCOME_WON if receipt.winner_seat == own else pb.SEAT_OUTCOME_LOST


async def walk(bench, account, **query):
    pages = [await bench.results(account, **query)]
    while pages[-1].next_page_token:
        pages.append(await bench.results(account, **query, page_token=pages[-1].next_page_token))
    return pages


async def test_every_filter_gives_what_a_look_at_all_results_gives(bench):
    account, rivals, receipts = await play_career(bench)
    middle = receipts[15].create_time.seconds
    filters = [
        ({}, lambda one: True),
        ({"rated_only": True}, lambda one: one.is_rated),
        ({"opponent_id": rivals[1].account}, lambda one: rivals[1].account in [s.account_id for s in one.seats]),
        ({"opponent_id": "nobody"}, lambda one: False),
        ({"start_time": at(middle)}, lambda one: one.create_time.seconds >= middle),
        ({"start_time": at(middle, 1)}, lambda one: one.create_time.seconds > middle),
        ({"end_time": at(middle)}, lambda one: one.create_time.seconds < middle),
        ({"start_time": at(middle), "end_time": at(middle + 1)}, lambda one: one.create_time.seconds == middle),
        *(({"outcome": o}, lambda one, o=o: outcome_of(one, account) == o) for o in (1, 2, 3)),
        *(({"ending": e}, lambda one, e=e: one.ending == e) for e in (1, 2, 3)),
        (
            {"rated_only": True, "outcome": pb.SEAT_OUTCOME_WON, "ending": pb.ENDING_RESIGNED},
            lambda one: one.is_rated and outcome_of(one, account) == pb.SEAT_OUTCOME_WON and one.ending == 3,
        ),
    ]
    for query, is_meant in filters:
        expected = [one for one in receipts if is_meant(one)]
        assert "opponent_id" in query or expected, f"{query} tests nothing"
        for size in (1, 7, 200):
            pages = await walk(bench, account, page_size=size, **query)
            assert [one for page in pages for one in page.results] == expected, (query, size)
            assert all(len(page.results) == size for page in pages[:-1])
            assert not pages[0].previous_page_token
    assert not (await bench.results("nobody")).results


async def test_new_results_between_pages_neither_repeat_nor_hide_one(bench):
    account, rivals, receipts = await play_career(bench, 12)
    own, at_first = Device(account=account), list(receipts)
    page = first = await bench.results(account, page_size=5)
    shown = list(page.results)
    while page.next_page_token:
        receipts.insert(0, await bench.submit(make_game(own, rivals[0])))
        page = await bench.results(account, page_size=5, page_token=page.next_page_token)
        shown += page.results
    assert shown == at_first
    rest, back = len(page.results), []
    while page.previous_page_token:
        page = await bench.results(account, page_size=5, page_token=page.previous_page_token)
        back = [*page.results, *back]
    assert back == receipts[:-rest]
    assert (await bench.results(account, page_size=2, page_token=first.next_page_token)).results == at_first[5:7]


async def test_a_page_token_counts_for_its_own_question_only(bench):
    account, rivals, _ = await play_career(bench, 6)
    token = (await bench.results(account, page_size=2)).next_page_token
    board = (await bench.board(1)).next_page_token
    assert (await bench.results(account, page_size=5, page_token=token)).results
    flipped = token[:-1] + ("A" if token[-1] != "A" else "B")
    for other, query in (
        (rivals[0].account, {"page_token": token}),
        (account, {"page_token": token, "rated_only": True}),
        (account, {"page_token": token, "opponent_id": rivals[0].account}),
        (account, {"page_token": token, "outcome": pb.SEAT_OUTCOME_WON}),
        (account, {"page_token": token, "ending": pb.ENDING_BUST}),
        (account, {"page_token": token, "start_time": at(1)}),
        (account, {"page_token": token, "end_time": at(NOW * 2)}),
        (account, {"page_token": flipped}),
        (account, {"page_token": board}),
        (account, {"page_token": "🎴"}),
    ):
        with pytest.raises(Refused) as caught:
            await bench.results(other, **query)
        assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "FIELD_INVALID"), query
        assert caught.value.metadata["field"] == "page_token"
    with pytest.raises(Refused):
        await bench.board(1, token)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"account_id": ""}, "account_id"),
        ({"account_id": "a" * 257}, "account_id"),
        ({"account_id": "a", "opponent_id": "a\0"}, "opponent_id"),
        ({"account_id": "a", "outcome": 9}, "outcome"),
        ({"account_id": "a", "ending": 9}, "ending"),
        ({"account_id": "a", "start_time": at(-1)}, "start_time"),
        ({"account_id": "a", "end_time": at(10, -5)}, "end_time"),
        ({"account_id": "a", "end_time": at(1 << 62)}, "end_time"),
        ({"account_id": "a", "start_time": at(5), "end_time": at(5)}, "end_time"),
        ({"account_id": "a", "page_size": 201}, "page_size"),
    ],
)
async def test_bad_questions_are_refused(bench, query, field):
    with pytest.raises(Refused) as caught:
        await bench.results(query.pop("account_id"), **query)
    assert (caught.value.reason, caught.value.metadata["field"]) == ("FIELD_INVALID", field)


async def test_a_result_is_found_by_its_match(bench):
    game = make_game()
    receipt = await bench.submit(game)
    assert await bench.result(game.match_id) == receipt
    with pytest.raises(Refused) as caught:
        await bench.result(uuid7())
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.NOT_FOUND, "RESULT_NOT_FOUND")
    for bad in ("", "x", game.match_id.upper(), game.match_id + "\0"):
        with pytest.raises(Refused) as caught:
            await bench.result(bad)
        assert (caught.value.reason, caught.value.metadata["field"]) == ("FIELD_INVALID", "match_id")


async def test_a_rating_is_traced_result_by_result(bench):
    account, _, receipts = await play_career(bench)
    rated = [one for one in reversed(receipts) if one.is_rated]
    seats = [next(seat for seat in one.seats if seat.account_id == account) for one in rated]
    history = await bench.history(account)
    assert [point.order_number for point in history.points] == [one.order_number for one in rated]
    assert [point.create_time for point in history.points] == [one.create_time for one in rated]
    assert [point.rating for point in history.points] == [seat.rating_after for seat in seats]
    assert (history.matches, history.rating_before) == (len(rated), 1500)
    assert history.points[-1].rating == (await bench.rating(account)).rating
    for most in (1, 2, 5, 500):
        thinned = await bench.history(account, max_points=most)
        numbers = [point.order_number for point in thinned.points]
        assert len(numbers) == min(most, len(rated))
        assert all(a < b for a, b in pairwise(numbers))
        assert thinned.points[-1] == history.points[-1]
        assert most == 1 or thinned.points[0] == history.points[0]
        assert thinned.matches == len(rated)


async def test_a_window_of_a_rating_begins_with_what_stood_before(bench):
    account, _, receipts = await play_career(bench)
    rated = [one for one in reversed(receipts) if one.is_rated]
    start, end = rated[5].create_time, rated[9].create_time
    window = await bench.history(account, start_time=start, end_time=end)
    assert [point.order_number for point in window.points] == [one.order_number for one in rated[5:9]]
    seat = next(seat for seat in rated[5].seats if seat.account_id == account)
    assert (window.matches, window.rating_before) == (4, seat.rating_before)
    after = await bench.history(account, start_time=at(rated[-1].create_time.seconds + 1))
    assert (len(after.points), after.matches) == (0, 0)
    assert after.rating_before == (await bench.rating(account)).rating
    between = await bench.history(
        account, start_time=at(start.seconds + 1), end_time=at(start.seconds + 2), max_points=1
    )
    assert (len(between.points), between.rating_before) == (0, seat.rating_after)
    for nobody in (await bench.history("nobody"), await bench.history(account, end_time=at(5))):
        assert (len(nobody.points), nobody.matches, nobody.rating_before) == (0, 0, 1500)


async def test_bad_windows_and_numbers_of_points_are_refused(bench):
    for account, query, field in (
        ("", {}, "account_id"),
        ("a", {"max_points": 501}, "max_points"),
        ("a", {"start_time": at(5), "end_time": at(4)}, "end_time"),
    ):
        with pytest.raises(Refused) as caught:
            await bench.history(account, **query)
        assert (caught.value.reason, caught.value.metadata["field"]) == ("FIELD_INVALID", field)
