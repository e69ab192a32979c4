"""What a room is, who may see it, and what its contract says: pure, nothing running."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import cycle
from uuid import UUID

import pytest
from koikoi_sdk.rules import PRESETS, make_rules, parse_rules

from services.kit.errors import Code
from services.kit.tokens import decode_base64url
from services.lobby.domain import errors
from services.lobby.domain.choices import Choice, check_preset, choose_rules
from services.lobby.domain.codes import ALPHABET, new_code, read_code
from services.lobby.domain.contracts import CONTRACT_LIFE_S, MAX_PAYLOAD_BYTES, draw_contract, uuid7
from services.lobby.domain.errors import FieldInvalid, PasswordInvalid, RulesInvalid
from services.lobby.domain.rooms import (
    LATE_MS,
    Player,
    Room,
    RoomState,
    Standing,
    Visibility,
    check_request_id,
    make_player,
    read_password,
    request_digest,
    standing,
)

NOW = 1_800_000_000_123
HOUSE = make_rules("house", {}, 6)
HOST = Player("account-host", bytes(range(32)), "月見の兎", "crane")
GUEST = Player("account-guest", bytes(range(32, 64)), "花子", "moon")
ROOM = Room(
    room_id="room-1",
    code="7KWQ3X",
    visibility=Visibility.PUBLIC,
    password_hash="",
    rules=HOUSE,
    host=HOST,
    create_time=NOW,
    alive_until=NOW + 120_000,
    request_id="request-1",
    digest="digest",
)
CONTRACT = draw_contract("https://lobby.koikoi/test", HOUSE, HOST, GUEST, now=NOW, random=bytes(10))
READY = replace(ROOM, state=RoomState.READY, guest=GUEST, contract=CONTRACT)
CLOSED = replace(ROOM, state=RoomState.CLOSED)


@pytest.mark.parametrize("typed", ["7KWQ3X", "7kwq3x", "7kw-q3x", " 7K W Q-3 X ", "-7-k-w-q-3-x-"])
def test_a_code_is_read_as_people_type_it(typed):
    assert read_code(typed) == "7KWQ3X"


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "7KWQ3",
        "7KWQ3XX",
        "7KWQ30",
        "7KWQ3O",
        "7KWQ31",
        "7KWQ3A",
        "７KWQ3X",
        "ßßß777",
        "7KWQ3\x00",
        "-" * 40,
        "7" * 9999,
    ],
)
def test_what_cannot_be_a_code_is_refused_by_name_and_limit(typed):
    with pytest.raises(FieldInvalid) as caught:
        read_code(typed)
    assert caught.value.field == "code"
    assert caught.value.metadata["limit"] == f"6 characters of {ALPHABET}"
    assert typed == "" or typed not in caught.value.message


def test_a_new_code_uses_the_given_choice_and_can_be_read():
    letters = cycle(ALPHABET)
    code = new_code(lambda alphabet: next(letters) if alphabet == ALPHABET else "!")
    assert code == ALPHABET[:6] == read_code(code)


def test_the_alphabet_has_no_lookalikes_and_no_vowels():
    assert len(set(ALPHABET)) == len(ALPHABET) == 27
    assert not set(ALPHABET) & set("01OILAEUY")


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        (Choice("house"), '{"overrides":{},"preset":"house","rounds":6,"version":1}'),
        (Choice("house", 12), '{"overrides":{},"preset":"house","rounds":12,"version":1}'),
        (Choice("house", 6, double_at=8), '{"overrides":{},"preset":"house","rounds":6,"version":1}'),
        (Choice("house", 6, double_at=0), '{"overrides":{"double_at":null},"preset":"house","rounds":6,"version":1}'),
        (Choice("house", cup="both"), '{"overrides":{"cup":"both"},"preset":"house","rounds":6,"version":1}'),
        (Choice("sdin", double_at=0), '{"overrides":{},"preset":"sdin","rounds":12,"version":1}'),
        (
            Choice("sdin", 12, double_at=10, hanami_tsukimi=True, cup="tane"),
            '{"overrides":{"cup":"tane","double_at":10,"hanami_tsukimi":true},"preset":"sdin","rounds":12,"version":1}',
        ),
        (Choice("boardgameland", 3), '{"overrides":{},"preset":"boardgameland","rounds":3,"version":1}'),
    ],
)
def test_one_rule_set_has_one_string(choice, text):
    rules = choose_rules(choice)
    assert parse_rules(text) == rules


@pytest.mark.parametrize(
    ("choice", "is_ranked"),
    [
        (Choice("house"), True),
        (Choice("house", 12, double_at=8, hanami_tsukimi=True, cup="tane"), True),
        (Choice("house", 6, double_at=0), False),
        (Choice("house", 6, double_at=7), False),
        (Choice("house", 6, hanami_tsukimi=False), False),
        (Choice("house", 6, cup="both"), False),
        *((Choice(preset), False) for preset in PRESETS if preset != "house"),
    ],
)
def test_only_house_with_doubling_at_8_is_ranked(choice, is_ranked):
    assert choose_rules(choice).is_ranked is is_ranked


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        (Choice(""), "rules.preset"),
        (Choice("House"), "rules.preset"),
        (Choice("house" * 10_000), "rules.preset"),
        (Choice("house", 7), "rules.rounds"),
        (Choice("house", 4_294_967_295), "rules.rounds"),
        (Choice("nintendo", 6), "rules.rounds"),
        (Choice("house", double_at=256), "rules.double_at"),
        (Choice("house", cup=""), "rules.cup"),
        (Choice("house", cup="TANE"), "rules.cup"),
    ],
)
def test_rules_that_do_not_exist_are_refused_by_name_and_limit(choice, field):
    with pytest.raises(RulesInvalid) as caught:
        choose_rules(choice)
    assert caught.value.field == field
    assert caught.value.metadata["limit"]
    assert len(caught.value.message) < 200


def test_a_preset_to_filter_by_must_exist():
    check_preset("house")
    with pytest.raises(FieldInvalid):
        check_preset("poker")


@pytest.mark.parametrize(
    ("room", "account", "now", "expected"),
    [
        (None, "x", NOW, Standing.STRANGER),
        (ROOM, "account-host", NOW, Standing.HOST),
        (ROOM, "x", NOW, Standing.NEWCOMER),
        (ROOM, "x", ROOM.alive_until - 1, Standing.NEWCOMER),
        (ROOM, "x", ROOM.alive_until, Standing.STRANGER),
        (ROOM, "account-host", ROOM.alive_until, Standing.STRANGER),
        (CLOSED, "account-host", NOW, Standing.STRANGER),
        (READY, "account-host", NOW, Standing.HOST),
        (READY, "account-guest", ROOM.alive_until, Standing.GUEST),
        (READY, "x", NOW, Standing.LATE),
        (READY, "x", NOW + LATE_MS - 1, Standing.LATE),
        (READY, "x", NOW + LATE_MS, Standing.STRANGER),
        (READY, "account-guest", CONTRACT.expire_time - 1, Standing.GUEST),
        (READY, "account-guest", CONTRACT.expire_time, Standing.STRANGER),
        (READY, "account-host", CONTRACT.expire_time, Standing.STRANGER),
        (replace(READY, guest=None), "x", NOW, Standing.LATE),
    ],
)
def test_what_a_caller_is_to_a_room(room, account, now, expected):
    assert standing(room, account, now) is expected


def test_only_open_public_rooms_are_listed():
    assert ROOM.is_listed(NOW)
    assert not replace(ROOM, visibility=Visibility.UNLISTED).is_listed(NOW)
    assert not READY.is_listed(NOW)
    assert not CLOSED.is_listed(NOW)
    assert not ROOM.is_listed(ROOM.alive_until)
    assert not ROOM.has_password
    assert replace(ROOM, password_hash="$argon2id$").has_password


def test_a_player_with_longest_texts():
    player = make_player("a" * 64, bytes(32), "名" * 85, '"' * 128)
    assert player == Player("a" * 64, bytes(32), "名" * 85, '"' * 128)


@pytest.mark.parametrize(
    ("account", "name", "avatar", "field"),
    [
        ("a" * 65, "n", "v", "account_id"),
        ("a", "名" * 86, "v", "display_name"),
        ("a", "n", '"' * 129, "avatar"),
    ],
)
def test_texts_that_do_not_fit_a_contract_are_refused(account, name, avatar, field):
    with pytest.raises(FieldInvalid) as caught:
        make_player(account, bytes(32), name, avatar)
    assert caught.value.field == field


def test_request_ids_have_1_to_64_characters():
    assert check_request_id("x") == "x"
    assert check_request_id("名" * 64) == "名" * 64
    for bad in ("", "x" * 65):
        with pytest.raises(FieldInvalid):
            check_request_id(bad)


def test_a_password_is_the_same_composed_or_not_and_bounded():
    assert read_password("か\u3099") == "が"
    assert read_password("") == ""
    assert read_password("x" * 64) == "x" * 64
    with pytest.raises(PasswordInvalid) as caught:
        read_password("s" * 65)
    assert "sss" not in caught.value.message


def test_the_digest_of_a_request_tells_everything_but_the_password_apart():
    digests = {
        request_digest(visibility, make_rules("house", {}, rounds), needs_approval=approval, with_invite=invite)
        for visibility in Visibility
        for rounds in (6, 12)
        for approval in (True, False)
        for invite in (True, False)
    }
    assert len(digests) == 16


def test_a_contract_has_exactly_the_members_of_the_specification():
    payload = json.loads(CONTRACT.payload)
    assert list(payload) == ["exp", "iat", "iss", "jti", "ranked", "rules", "seats"]
    assert payload["iss"] == "https://lobby.koikoi/test"
    assert payload["iat"] == NOW // 1000
    assert payload["exp"] == NOW // 1000 + 3 * 3600
    assert payload["jti"] == CONTRACT.match_id
    assert payload["ranked"] is True
    assert payload["rules"] == '{"overrides":{},"preset":"house","rounds":6,"version":1}'
    assert payload["seats"] == [
        {
            "account": "account-host",
            "avatar": "crane",
            "key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
            "name": "月見の兎",
        },
        {
            "account": "account-guest",
            "avatar": "moon",
            "key": "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8",
            "name": "花子",
        },
    ]
    assert decode_base64url(payload["seats"][0]["key"]) == HOST.device_key
    assert CONTRACT.expire_time == (NOW // 1000 + CONTRACT_LIFE_S) * 1000
    assert CONTRACT.jws is None


def test_the_longest_contract_fits_the_first_frame_of_the_relay():
    def longest(letter: str) -> Player:
        return make_player(letter * 64, bytes(32), '"' * 128, "名" * 85)

    rules = choose_rules(Choice("wikipedia_ja", 12, double_at=100, hanami_tsukimi=True, cup="tane"))
    contract = draw_contract(
        "https://lobby.koikoi/production", rules, longest("a"), longest("b"), now=NOW, random=bytes(10)
    )
    assert len(contract.payload) <= MAX_PAYLOAD_BYTES
    signed_characters = (MAX_PAYLOAD_BYTES + 2) // 3 * 4 + 86 + 110
    assert signed_characters <= 3 * 1024


def test_a_match_id_is_a_version_7_uuid_of_its_time():
    match_id = uuid7(NOW, bytes.fromhex("ffffffffffffffffffff"))
    assert match_id == "01a3185c-507b-7fff-bfff-ffffffffffff"
    parsed = UUID(match_id)
    assert parsed.version == 7
    assert parsed.variant == "specified in RFC 4122"
    assert parsed.int >> 80 == NOW
    assert uuid7(NOW, bytes(10)) < match_id < uuid7(NOW + 1, bytes(10))


def test_every_error_has_a_reason_a_code_and_this_services_name():
    classes = errors.LobbyError.__subclasses__()
    assert len({cls.reason for cls in classes}) == len(classes) == 25
    assert all(cls.domain == "lobby.koikoi" and cls.code is not Code.UNKNOWN for cls in classes)
