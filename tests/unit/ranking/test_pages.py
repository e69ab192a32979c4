"""Pages of a list in both directions, and the tokens between them."""

import base64
import struct

import pytest

from services.ranking.domain.errors import FieldInvalid
from services.ranking.domain.history import Query
from services.ranking.domain.leaderboard import TOKENS, Place
from services.ranking.domain.pages import Bound, Page, Tokens, check_page_size, cut_page


def turn(items, size, bound=None):
    """Do what a store does, on a list that is sorted upwards."""
    before = [item for item in items if bound and (item < bound.key or (bound.is_included and item == bound.key))]
    after = [item for item in items if bound and (item > bound.key or (bound.is_included and item == bound.key))]
    if bound is None:
        rows, behind = items, []
    elif bound.is_forward:
        rows, behind = after, [item for item in items if item not in after]
    else:
        rows, behind = before[::-1], [item for item in items if item not in before]
    return cut_page(rows[: size + 1], size, bound, lambda item: item, has_behind=bool(behind))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 10, 11])
def test_a_walk_down_and_up_again_shows_everything_once(size):
    items = list(range(10))
    pages = [turn(items, size)]
    assert pages[0].previous is None
    while pages[-1].next is not None:
        pages.append(turn(items, size, pages[-1].next))
    assert [row for page in pages for row in page.rows] == items
    back = [pages[-1]]
    while back[0].previous is not None:
        back.insert(0, turn(items, size, back[0].previous))
    assert [row for page in back for row in page.rows] == items


def test_rows_that_come_between_two_pages_neither_repeat_nor_hide_a_row():
    first = turn([10, 20, 30, 40], 2)
    second = turn([5, 10, 15, 20, 25, 30, 40], 2, first.next)
    assert (first.rows, second.rows) == ((10, 20), (25, 30))
    assert turn([5, 10, 15, 20, 25, 30, 40], 2, second.previous).rows == (15, 20)


def test_an_empty_page_still_leads_back_to_the_row_it_went_on_from():
    forward = turn([10, 20], 2, Bound(20, is_forward=True))
    assert forward == Page((), Bound(20, is_forward=False, is_included=True), None)
    assert turn([10, 20], 2, forward.previous) == Page((10, 20), None, None)
    backward = turn([10, 20], 1, Bound(10, is_forward=False))
    assert backward == Page((), None, Bound(10, is_forward=True, is_included=True))
    assert turn([10, 20], 1, backward.next).rows == (10,)


def test_an_empty_list_has_no_neighbours():
    assert turn([], 5) == Page((), None, None)
    assert turn([], 5, Bound(3, is_forward=True)) == Page((), None, None)


def test_page_sizes():
    assert [check_page_size(size) for size in (0, 1, 200)] == [50, 1, 200]
    with pytest.raises(FieldInvalid):
        check_page_size(201)


PLACES = [Place(1500, "a"), Place(-3, "花"), Place(2**31 - 1, "x" * 256), Place(-(2**31), "🎴" * 256)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("is_forward", [True, False])
@pytest.mark.parametrize("is_included", [True, False])
def test_places_survive_the_way_out_and_back(place, is_forward, is_included):
    bound = Bound(place, is_forward, is_included)
    assert TOKENS.read(TOKENS.write(bound)) == bound


@pytest.mark.parametrize("number", [1, 2**31, 2**62 - 1])
def test_order_numbers_survive_the_way_out_and_back(number):
    tokens = Query("a").tokens()
    assert tokens.read(tokens.write(Bound(number, is_forward=True))) == Bound(number, is_forward=True)


def test_no_token_begins_at_the_top():
    assert TOKENS.read("") is None
    assert TOKENS.write(None) == ""


def refused(tokens, token):
    with pytest.raises(FieldInvalid) as caught:
        tokens.read(token)
    assert caught.value.field == "page_token"
    return True


def test_every_changed_character_is_refused():
    for tokens, key in ((TOKENS, Place(1500, "abc")), (Query("a").tokens(), 77)):
        token = tokens.write(Bound(key, is_forward=True))
        for index, char in enumerate(token):
            for other in "AQgw-_9=~":
                assert other == char or refused(tokens, token[:index] + other + token[index + 1 :])
        assert refused(tokens, token + "A")
        assert refused(tokens, token + "=")
        assert refused(tokens, token[:-1])


@pytest.mark.parametrize("token", ["x", "!!!!", "AAAA", "花", "A" * 16, "A" * 17, "A" * 2048, "A" * 5000, " ", "\n"])
def test_a_token_nobody_gave_out_is_refused(token):
    assert refused(TOKENS, token)
    assert refused(Query("a").tokens(), token)


@pytest.mark.parametrize(
    "key",
    [
        b"\0\0",
        struct.pack(">i", 1),
        struct.pack(">i", 1) + b"\xff",
        struct.pack(">i", 1) + b"a\0",
        struct.pack(">i", 1) + b"a" * 257,
    ],
)
def test_even_with_the_right_digest_a_place_must_be_one(key):
    forged = Tokens("leaderboard", bytes, bytes).write(Bound(key, is_forward=True))
    assert refused(TOKENS, forged)


@pytest.mark.parametrize("key", [b"", bytes(8), bytes(7) + b"\1\0", b"\x40" + bytes(7), b"\xff" * 8])
def test_even_with_the_right_digest_an_order_number_must_be_one(key):
    query = 'results ["a", false, null, null, null, null, null]'
    assert Tokens(query, bytes, bytes).read(Query("a").tokens().write(Bound(5, is_forward=True))) is not None
    assert refused(Query("a").tokens(), Tokens(query, bytes, bytes).write(Bound(key, is_forward=True)))


def test_unknown_flags_are_refused():
    token = TOKENS.write(Bound(Place(1, "a"), is_forward=True))
    data = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    data[12] |= 4
    data[:12] = TOKENS._digest(bytes(data[12:]))
    assert refused(TOKENS, base64.urlsafe_b64encode(data).rstrip(b"=").decode())
