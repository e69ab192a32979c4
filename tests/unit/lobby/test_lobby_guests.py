"""Invitations, bulletins, previews, filters, and who is held by which room: pure, nothing running."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
from koikoi_sdk.rules import PRESETS, Variant, make_rules

from services.lobby.domain.bulletin import Bulletin, check_entry, parse_bulletin, version_numbers
from services.lobby.domain.errors import ClientTooOld, FieldInvalid, Maintenance
from services.lobby.domain.filters import Filter
from services.lobby.domain.invites import invite_url, is_invited, new_secret, read_secret
from services.lobby.domain.preview import differences
from services.lobby.domain.rooms import (
    HOLD_MS,
    LATE_MS,
    Standing,
    check_account_id,
    is_held,
    standing,
)
from tests.unit.lobby.test_lobby_domain import CLOSED, CONTRACT, GUEST, HOST, NOW, READY, ROOM

SECRET = new_secret(bytes(range(16)))


def test_the_kept_out_are_strangers_but_never_members():
    barred = frozenset({GUEST.account_id, "pest", HOST.account_id})
    room, ready = replace(ROOM, barred=barred), replace(READY, barred=barred)
    assert standing(room, "pest", NOW) is Standing.STRANGER
    assert standing(room, "somebody", NOW) is Standing.NEWCOMER
    assert standing(room, HOST.account_id, NOW) is Standing.HOST
    assert standing(ready, GUEST.account_id, NOW) is Standing.GUEST
    assert standing(ready, "pest", CONTRACT.fill_time + 1) is Standing.STRANGER
    assert standing(ready, "somebody", CONTRACT.fill_time + LATE_MS - 1) is Standing.LATE


def test_a_room_holds_its_host_while_open_and_both_players_until_the_match_can_begin_no_more():
    assert is_held(ROOM, HOST.account_id, NOW)
    assert not is_held(ROOM, GUEST.account_id, NOW)
    assert not is_held(ROOM, HOST.account_id, ROOM.alive_until)
    assert not is_held(CLOSED, HOST.account_id, NOW)
    for player in (HOST, GUEST):
        assert is_held(READY, player.account_id, CONTRACT.fill_time + HOLD_MS - 1)
        assert not is_held(READY, player.account_id, CONTRACT.fill_time + HOLD_MS)
    assert not is_held(READY, "somebody", CONTRACT.fill_time)


@pytest.mark.parametrize("account_id", ["", "x" * 65, "a b", "a|b", "花", "a\n", " "])
def test_what_cannot_be_an_account_id_is_refused(account_id):
    with pytest.raises(FieldInvalid) as caught:
        check_account_id(account_id)
    assert caught.value.metadata["field"] == "account_id"


def test_an_account_id_is_left_as_it_is():
    assert check_account_id("77afbad9-a6c8-4d5c-8970-03ddb2d8973a") == "77afbad9-a6c8-4d5c-8970-03ddb2d8973a"


def test_a_secret_has_128_bits_in_22_characters():
    assert SECRET == "AAECAwQFBgcICQoLDA0ODw"
    assert new_secret(bytes(range(32))) == SECRET
    assert read_secret(SECRET) == SECRET
    assert read_secret("") == ""


@pytest.mark.parametrize("typed", ["x", SECRET + "A", SECRET[:-1] + "=", SECRET[:-1] + "é", SECRET[:-1] + "\n"])
def test_what_cannot_be_a_secret_is_no_guess(typed):
    with pytest.raises(FieldInvalid):
        read_secret(typed)


def test_only_a_rooms_own_secret_invites():
    room = replace(ROOM, invite_secret=SECRET)
    assert is_invited(room, SECRET)
    assert not is_invited(room, new_secret(bytes(16)))
    assert not is_invited(room, "")
    for nothing in (None, ROOM):
        for secret in ("", SECRET, "A" * 22):
            assert not is_invited(nothing, secret)


def test_a_link_has_code_and_secret_in_its_path():
    room = replace(ROOM, invite_secret=SECRET)
    assert invite_url("https://play.example/", room) == f"https://play.example/i/7KWQ3X.{SECRET}"
    assert invite_url("https://play.example", room) == f"https://play.example/i/7KWQ3X.{SECRET}"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1", (1, 0, 0, 0)),
        ("1.4.2", (1, 4, 2, 0)),
        ("koikoi-web/1.10", (1, 10, 0, 0)),
        ("1.4.2-beta.7", (1, 4, 2, 0)),
        ("1.4.2+abc", (1, 4, 2, 0)),
        ("1.4 (Linux)", (1, 4, 0, 0)),
        ("", ()),
        ("newest", ()),
        ("1.", ()),
        ("1.2.3.4.5", ()),
        ("v1", ()),
        ("１.2", ()),
        ("9999999", ()),
        ("a/b/1.2", ()),
    ],
)
def test_versions_are_numbers(text, numbers):
    assert version_numbers(text) == numbers


def test_the_oldest_client_and_the_maintenance_are_told_with_what_to_do():
    check_entry(Bulletin(), "")
    check_entry(Bulletin(min_client_version="1.2"), "1.2.0")
    for old in ("1.1.9", "", "garbage"):
        with pytest.raises(ClientTooOld) as caught:
            check_entry(Bulletin(min_client_version="1.2", is_closed=True), old)
        assert caught.value.metadata == {"min_client_version": "1.2"}
    with pytest.raises(Maintenance) as closed:
        check_entry(Bulletin(is_closed=True, retry_after_s=60.0), "9")
    assert closed.value.retry_after_s == 60.0


def test_a_bulletin_is_read():
    assert parse_bulletin("{}") == Bulletin()
    text = '{"notice_en": "a", "notice_ja": "あ", "min_client_version": "1.2", "is_closed": true, "retry_after_s": 5}'
    assert parse_bulletin(text) == Bulletin("a", "あ", "1.2", True, 5)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "JSON"),
        ("[" * 100_000, "JSON"),
        ("[]", "object"),
        ('{"colour": "red"}', "members"),
        ('{"notice_en": 7}', "notice_en"),
        ('{"is_closed": 1}', "is_closed"),
        ('{"retry_after_s": true}', "retry_after_s"),
        ('{"retry_after_s": 0}', "retry_after_s"),
        ('{"retry_after_s": 1e9}', "retry_after_s"),
        ('{"min_client_version": "newest"}', "min_client_version"),
        ('{"notice_ja": "' + "保" * 501 + '"}', "notice_ja"),
    ],
)
def test_a_bulletin_that_makes_no_sense_says_why(text, word):
    with pytest.raises(ValueError, match=word):
        parse_bulletin(text)


def test_every_point_of_a_rule_set_has_words():
    """A point that a new preset brings must be shown, too."""
    base = PRESETS["house"]
    for field in dataclasses.fields(Variant):
        if field.name in ("name", "rounds", "rounds_allowed"):
            continue
        other = next((p for p in PRESETS.values() if getattr(p, field.name) != getattr(base, field.name)), None)
        if other is not None:
            shown = {one.field: one for one in differences(make_rules(other.name, {}, other.rounds))}
            assert field.name in shown
            assert shown[field.name].text_en
            assert shown[field.name].text_ja


def test_house_differs_from_itself_in_its_switches_only():
    assert differences(make_rules("house", {}, 6)) == []
    rules = make_rules("house", {"hanami_tsukimi": False, "double_at": None}, 12)
    assert [(one.field, one.house_value, one.value) for one in differences(rules)] == [
        ("rounds", "6", "12"),
        ("double_at", "8", "none"),
        ("hanami_tsukimi", "true", "false"),
    ]


def test_what_is_not_asked_for_lets_everything_through():
    locked = replace(ROOM, password_hash="x")
    assert Filter().passes(ROOM)
    assert Filter().passes(locked)
    assert Filter("house", has_password=False, is_ranked=True).passes(ROOM)
    assert not Filter("sdin").passes(ROOM)
    assert not Filter(has_password=False).passes(locked)
    assert Filter(has_password=True).passes(locked)
    assert not Filter(is_ranked=False).passes(ROOM)
