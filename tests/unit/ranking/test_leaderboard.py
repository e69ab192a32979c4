"""Places, pages and cursors."""

import base64

import pytest

from services.ranking.domain.errors import FieldInvalid
from services.ranking.domain.leaderboard import (
    Cursor,
    Standing,
    check_account_id,
    check_page_size,
    decode_cursor,
    encode_cursor,
    paginate,
)


def rows(*ratings):
    return [Standing(f"a{index}", "", rating, 1, 0) for index, rating in enumerate(ratings)]


def test_equal_ratings_share_a_place():
    page = paginate(rows(1600, 1550, 1550, 1500), 10, 1, 1)
    assert [entry.rank for entry in page.entries] == [1, 2, 2, 4]
    assert page.next_page_token == ""


def test_a_page_goes_on_where_the_last_one_ended():
    page = paginate(rows(1600, 1550, 1550), 2, 1, 1)
    assert [entry.rank for entry in page.entries] == [1, 2]
    assert decode_cursor(page.next_page_token) == Cursor(1550, "a1")
    following = paginate(rows(1550, 1500), 2, 3, 2)
    assert [entry.rank for entry in following.entries] == [2, 4]
    assert following.next_page_token == ""


def test_an_empty_page_has_no_next():
    assert paginate([], 5, 1, 1).entries == ()


@pytest.mark.parametrize("cursor", [Cursor(1500, "a"), Cursor(-3, "花"), Cursor(2**31 - 1, "x" * 256)])
def test_cursors_survive_the_way_out_and_back(cursor):
    assert decode_cursor(encode_cursor(cursor)) == cursor


def test_no_token_begins_at_the_top():
    assert decode_cursor("") is None


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "!!!!",
        "AAAA",
        "花",
        encode_cursor(Cursor(1, "a")) + "AAAA=",
        encode_cursor(Cursor(1, "a")).rstrip("=") if encode_cursor(Cursor(1, "a")).endswith("=") else "A",
        base64.urlsafe_b64encode(b"\0\0\0\1\xff").decode(),
        base64.urlsafe_b64encode(b"\0\0\0\1").decode(),
        base64.urlsafe_b64encode(b"\0\0\0\1a\0").decode(),
        base64.urlsafe_b64encode(b"\0\0\0\1" + b"a" * 4000).decode(),
    ],
)
def test_a_token_nobody_gave_out_is_refused(token):
    with pytest.raises(FieldInvalid) as caught:
        decode_cursor(token)
    assert caught.value.field == "page_token"


def test_page_sizes():
    assert [check_page_size(size) for size in (0, 1, 200)] == [50, 1, 200]
    with pytest.raises(FieldInvalid):
        check_page_size(201)


def test_account_ids():
    assert check_account_id("a" * 256) == "a" * 256
    for bad in ("", "a" * 257, "a\0"):
        with pytest.raises(FieldInvalid):
            check_account_id(bad)
