"""Between proto messages and the words of the domain."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.lobby.v1 import lobby_service_pb2 as pb
from koikoi_sdk.rules import Rules, format_rules

from services.kit.tokens import Caller
from services.lobby.domain.choices import Choice
from services.lobby.domain.errors import FieldInvalid
from services.lobby.domain.rooms import Player, Room, Visibility, make_player
from services.lobby.service import Wish


def read_player(caller: Caller) -> Player:
    """Read who takes a seat from the access token."""
    return make_player(caller.account_id, caller.device_key, caller.display_name, caller.avatar)


def read_wish(request: pb.CreateRoomRequest) -> Wish:
    """Read what a host asks for."""
    if request.visibility not in (pb.VISIBILITY_PUBLIC, pb.VISIBILITY_UNLISTED):
        raise FieldInvalid("visibility", "VISIBILITY_PUBLIC or VISIBILITY_UNLISTED")
    return Wish(Visibility(request.visibility), request.password, _read_choice(request.rules), request.request_id)


def write_room(room: Room) -> pb.Room:
    """Write a room as its visitors see it."""
    return pb.Room(
        code=room.code,
        visibility=pb.VISIBILITY_PUBLIC if room.visibility is Visibility.PUBLIC else pb.VISIBILITY_UNLISTED,
        has_password=room.has_password,
        rules=_write_rules(room.rules),
        rules_text=format_rules(room.rules),
        is_ranked=room.rules.is_ranked,
        host=_write_player(room.host),
        guest=None if room.guest is None else _write_player(room.guest),
        state=pb.ROOM_STATE_OPEN if room.contract is None else pb.ROOM_STATE_READY,
        create_time=write_time(room.create_time),
    )


def write_match(room: Room, jws: str) -> pb.MyMatch:
    """Write one of a player's matches."""
    assert room.contract is not None
    return pb.MyMatch(
        match_id=room.contract.match_id,
        code=room.code,
        contract=jws,
        expire_time=write_time(room.contract.expire_time),
    )


def write_time(milliseconds: int) -> Timestamp:
    """Write milliseconds since 1970."""
    return Timestamp(seconds=milliseconds // 1000, nanos=milliseconds % 1000 * 1_000_000)


def _read_choice(rules: pb.Rules) -> Choice:
    return Choice(
        preset=rules.preset,
        rounds=rules.rounds,
        double_at=rules.double_at if rules.HasField("double_at") else None,
        hanami_tsukimi=rules.hanami_tsukimi if rules.HasField("hanami_tsukimi") else None,
        cup=rules.cup if rules.HasField("cup") else None,
    )


def _write_rules(rules: Rules) -> pb.Rules:
    """Write rules complete: every switch has the value that is played."""
    return pb.Rules(
        preset=rules.preset,
        rounds=rules.rounds,
        double_at=rules.variant.double_at or 0,
        hanami_tsukimi=rules.variant.hanami_tsukimi,
        cup="both" if rules.variant.cup_is_kasu else "tane",
    )


def _write_player(player: Player) -> pb.Player:
    return pb.Player(account_id=player.account_id, display_name=player.display_name, avatar=player.avatar)
