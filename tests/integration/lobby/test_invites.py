"""Invitations: a secret that opens one room, and nothing else."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as pb

from services.lobby.domain.errors import FieldInvalid
from services.lobby.doorkeeper import PASSWORDS_A_MINUTE
from services.lobby.service import Lobby
from tests.harness import make_caller
from tests.integration.lobby.conftest import Bench, player, somewhere, wish
from tests.integration.lobby.test_rooms import outcome
from tests.integration.lobby.watchers import joined, opened, refused

WRONG = "A" * 22


async def test_an_invitation_opens_an_unlisted_room_without_its_password(start_lobby):
    async with start_lobby(invite_base_url="https://play.example/") as process:
        host = process.newcomer()
        made = await opened(
            process, host, visibility=pb.VISIBILITY_UNLISTED, password="tsuki", with_invite=True, request_id="once"
        )
        secret, code = made.invite.secret, made.room.code
        assert made.invite.url == f"https://play.example/i/{code}.{secret}"
        assert len(secret) == 22
        again = await opened(
            process, host, visibility=pb.VISIBILITY_UNLISTED, password="tsuki", with_invite=True, request_id="once"
        )
        assert again.invite == made.invite
        get = process.stub.GetRoom
        assert (await get(pb.GetRoomRequest(code=code), metadata=host)).invite == made.invite
        guest = process.newcomer()
        seen = await get(pb.GetRoomRequest(code=code, invite_secret=secret), metadata=guest)
        assert (seen.room.code, seen.HasField("invite")) == (code, False)
        assert secret not in str(await get(pb.GetRoomRequest(code=code), metadata=guest))
        assert (await joined(process, guest, code, invite_secret=secret)).contract


async def test_two_invitations_differ_and_a_room_without_one_has_none(bench: Bench):
    rooms = [await bench.lobby.create_room(player(), wish(with_invite=True), somewhere()) for _ in range(2)]
    assert rooms[0].invite_secret != rooms[1].invite_secret
    plain = await bench.lobby.create_room(player(), wish(password="x"), somewhere())
    assert plain.invite_secret == ""
    for secret in (WRONG, rooms[0].invite_secret):
        call = bench.lobby.join_room(player(), somewhere(), plain.code, "", "join", secret=secret)
        assert await outcome(call) == "ROOM_NOT_FOUND"
    assert await outcome(bench.lobby.join_room(player(), somewhere(), plain.code, "", "j")) == "PASSWORD_INVALID"


async def test_a_right_invitation_is_no_guess_and_a_wrong_one_is(bench: Bench):
    room = await bench.lobby.create_room(player(), wish(with_invite=True), somewhere())
    for _ in range(5):
        with pytest.raises(FieldInvalid):
            await bench.lobby.get_room("guesser", "198.51.100.7", room.code, "short")
    for _ in range(5):
        call = bench.lobby.get_room("guesser", "198.51.100.7", room.code, WRONG)
        assert await outcome(call) == "ROOM_NOT_FOUND"  # as for a room that does not exist
    assert await outcome(bench.lobby.get_room("guesser", "198.51.100.7", room.code, WRONG)) == "RATE_LIMITED"
    assert await outcome(bench.lobby.get_room("guesser", "198.51.100.7", room.code)) == "RATE_LIMITED"
    for number in range(20):  # whoever has the secret passes, also behind an address that guessed
        call = bench.lobby.get_room(f"friend {number}", "198.51.100.7", room.code, room.invite_secret)
        assert await outcome(call) == "OK"


async def test_an_invitation_does_not_help_whom_the_host_keeps_out_or_who_comes_late(bench: Bench):
    host, pest = player(), player()
    room = await bench.lobby.create_room(host, wish(with_invite=True), somewhere())
    await bench.hosting.kick_guest(host.account_id, room.code, pest.account_id, "kick")

    async def join(who) -> str:
        return await outcome(bench.lobby.join_room(who, somewhere(), room.code, "", "join", secret=room.invite_secret))

    assert await join(pest) == "ROOM_NOT_FOUND"
    assert await join(player()) == "OK"
    assert await join(player()) == "ROOM_FULL"
    bench.clock.advance(10)
    assert await join(player()) == "ROOM_NOT_FOUND"


async def test_many_accounts_of_one_address_do_not_keep_others_from_their_password(bench: Bench):
    """Of 200 at once from one address 107 filled the queue once, and everybody else was told BUSY."""
    room = await bench.lobby.create_room(player(), wish(password="tsuki"), somewhere())
    crowd = [outcome(bench.lobby.join_room(player(), "203.0.113.7", room.code, "wrong", "join")) for _ in range(200)]
    neighbours = [outcome(bench.lobby.join_room(player(), somewhere(), room.code, "wrong", "join")) for _ in range(20)]
    outcomes = await asyncio.gather(*crowd, *neighbours)
    assert Counter(outcomes[:200]) == {"PASSWORD_WRONG": PASSWORDS_A_MINUTE, "RATE_LIMITED": 200 - PASSWORDS_A_MINUTE}
    assert Counter(outcomes[200:]) == {"PASSWORD_WRONG": 20}


@pytest.mark.parametrize(
    ("limit", "call"),
    [
        (300, lambda lobby: lobby.create_room(player(), wish(), "203.0.113.7")),
        (600, lambda lobby: lobby.list_rooms(player().account_id, "203.0.113.7", 1, "")),
        (300, lambda lobby: lobby.join_room(player(), "203.0.113.7", "999999", "", "x")),
    ],
    ids=["create", "list", "join"],
)
async def test_an_address_has_limits_of_its_own(bench: Bench, limit, call):
    outcomes: Counter[str] = Counter()
    lobby: Lobby = bench.lobby
    for _ in range(limit + 5):
        outcomes[await outcome(call(lobby))] += 1
    assert outcomes["RATE_LIMITED"] >= 5
    assert outcomes["OK"] in (limit, 0)


async def test_the_rules_are_shown_to_anybody_before_a_room_is_opened(process):
    request = pb.PreviewRulesRequest(rules=pb.Rules(preset="house", rounds=12, double_at=0))
    answer = await process.stub.PreviewRules(request)
    assert answer.rules == pb.Rules(preset="house", rounds=12, double_at=0, hanami_tsukimi=True, cup="tane")
    assert answer.rules_text == '{"overrides":{"double_at":null},"preset":"house","rounds":12,"version":1}'
    assert not answer.is_ranked
    assert [(one.field, one.house_value, one.value) for one in answer.differences] == [
        ("rounds", "6", "12"),
        ("double_at", "8", "none"),
    ]
    assert answer.differences[1].text_en == "Scores double from this base on: none (house: 8)"
    assert answer.differences[1].text_ja == "倍になる文数：なし（標準：8）"
    room = (await opened(process, process.bearer(make_caller()), rules=request.rules)).room
    assert (room.rules, room.rules_text, room.is_ranked) == (answer.rules, answer.rules_text, answer.is_ranked)
    plain = await process.stub.PreviewRules(pb.PreviewRulesRequest(rules=pb.Rules(preset="house")))
    assert (plain.is_ranked, len(plain.differences)) == (True, 0)
    bad = process.stub.PreviewRules(pb.PreviewRulesRequest(rules=pb.Rules(preset="poker")))
    assert await refused(bad) == "RULES_INVALID"
