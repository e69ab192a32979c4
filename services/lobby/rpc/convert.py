"""Between proto messages and the words of the domain."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.lobby.v1 import lobby_service_pb2 as pb
from koikoi_sdk.rules import Rules, format_rules

from services.kit.tokens import Caller
from services.lobby.board import Step
from services.lobby.domain.bulletin import Bulletin
from services.lobby.domain.choices import Choice
from services.lobby.domain.conduct import WINDOW, Conduct
from services.lobby.domain.errors import FieldInvalid
from services.lobby.domain.filters import Filter
from services.lobby.domain.invites import invite_url
from services.lobby.domain.preview import differences
from services.lobby.domain.rooms import Player, Room, Visibility, make_player
from services.lobby.service import Wish
from services.lobby.watching import Closed, Event, Ping, View

_CLOSED = {
    Closed.LEFT: pb.CLOSE_REASON_LEFT,
    Closed.EXPIRED: pb.CLOSE_REASON_EXPIRED,
    Closed.KICKED: pb.CLOSE_REASON_KICKED,
    Closed.FULL: pb.CLOSE_REASON_FULL,
}


def read_player(caller: Caller) -> Player:
    """Read who takes a seat from the access token."""
    return make_player(caller.account_id, caller.device_key, caller.display_name, caller.avatar)


def read_wish(request: pb.CreateRoomRequest) -> Wish:
    """Read what a host asks for."""
    if request.visibility not in (pb.VISIBILITY_PUBLIC, pb.VISIBILITY_UNLISTED):
        raise FieldInvalid("visibility", "VISIBILITY_PUBLIC or VISIBILITY_UNLISTED")
    return Wish(
        visibility=Visibility(request.visibility),
        password=request.password,
        choice=read_choice(request.rules),
        request_id=request.request_id,
        needs_approval=request.needs_approval,
        with_invite=request.with_invite,
        leave_other=request.leave_other,
    )


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
        needs_approval=room.needs_approval,
        is_host_present=room.is_host_present,
        host_completion_percent=room.host_completion,
    )


def write_invite(room: Room, base_url: str) -> pb.Invite | None:
    """Write the invitation to a room, for its host; nothing when there is none."""
    if not room.invite_secret:
        return None
    return pb.Invite(secret=room.invite_secret, url=invite_url(base_url, room))


def write_view(view: View, base_url: str) -> pb.RoomView:
    """Write a room as one of those who watch it sees it."""
    return pb.RoomView(
        room=write_room(view.room),
        contract=view.contract,
        knocks=[_write_player(knock.player) for knock in view.knocks],
        invite=write_invite(view.room, base_url) if view.is_host else None,
    )


def write_bulletin(bulletin: Bulletin) -> pb.Bulletin:
    """Write what the service has to say."""
    return pb.Bulletin(
        notice_en=bulletin.notice_en,
        notice_ja=bulletin.notice_ja,
        min_client_version=bulletin.min_client_version,
        is_closed=bulletin.is_closed,
    )


def write_event(event: Event, base_url: str) -> pb.WatchRoomResponse:
    """Write one message about a room that is watched."""
    if isinstance(event, View):
        return pb.WatchRoomResponse(view=write_view(event, base_url))
    if isinstance(event, Closed):
        return pb.WatchRoomResponse(closed=_CLOSED[event])
    if isinstance(event, Bulletin):
        return pb.WatchRoomResponse(bulletin=write_bulletin(event))
    return pb.WatchRoomResponse(ping=pb.Ping())


def write_step(step: Step | Bulletin | Ping) -> pb.WatchRoomsResponse:
    """Write one message about the list."""
    if isinstance(step, Bulletin):
        return pb.WatchRoomsResponse(bulletin=write_bulletin(step))
    if isinstance(step, Ping):
        return pb.WatchRoomsResponse(ping=pb.Ping())
    if step.is_snapshot:
        return pb.WatchRoomsResponse(snapshot=pb.RoomsSnapshot(rooms=step.added))
    change = pb.RoomsChange(added=step.added, changed=step.changed, removed_codes=step.removed)
    return pb.WatchRoomsResponse(change=change)


def read_filter(request: pb.WatchRoomsRequest) -> Filter:
    """Read which rooms somebody wants to see."""
    return Filter(
        preset=request.preset,
        has_password=request.has_password if request.HasField("has_password") else None,
        is_ranked=request.is_ranked if request.HasField("is_ranked") else None,
    )


def write_preview(rules: Rules) -> pb.PreviewRulesResponse:
    """Write what rules mean, and where they differ from house."""
    return pb.PreviewRulesResponse(
        rules=_write_rules(rules),
        rules_text=format_rules(rules),
        is_ranked=rules.is_ranked,
        differences=[
            pb.RulesDifference(
                field=one.field,
                house_value=one.house_value,
                value=one.value,
                text_en=one.text_en,
                text_ja=one.text_ja,
            )
            for one in differences(rules)
        ],
    )


def write_conduct(conduct: Conduct) -> pb.GetMyConductResponse:
    """Write how an account behaved."""
    until = conduct.cool_down_until
    return pb.GetMyConductResponse(
        completion_percent=conduct.completion_percent,
        completed=conduct.completed,
        charged=conduct.charged,
        disputed=conduct.disputed,
        window=WINDOW,
        cool_down_end_time=write_time(until) if until else None,
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


def read_choice(rules: pb.Rules) -> Choice:
    """Read a choice of rules."""
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
