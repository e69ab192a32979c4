"""The lines about one's conduct, and the mark at a room."""

from google.protobuf.timestamp_pb2 import Timestamp
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi_sdk.cli.conduct import describe_conduct
from koikoi_sdk.cli.rooms import describe_room

NOW = 1_800_000_000


def conduct(until):
    return lobby.GetMyConductResponse(
        completion_percent=75, completed=2, charged=0, disputed=1, window=30,
        cool_down_end_time=None if until is None else Timestamp(seconds=until),
    )  # fmt: skip


def test_conduct_is_told():
    assert describe_conduct(lobby.GetMyConductResponse(), NOW) == ["対局なし  No match counts yet."]
    [line] = describe_conduct(conduct(None), NOW)
    assert "75%" in line
    assert "2 completed, 0 left or held up, 1 in dispute; the last 30 count" in line
    assert describe_conduct(conduct(NOW - 10), NOW) == [line]
    assert describe_conduct(conduct(NOW + 10), NOW)[1].startswith("Ranked rooms are closed to you until 20")


def test_a_room_tells_its_hosts_completion_rate():
    room = lobby.Room(code="ABCDEF", is_host_present=True)
    assert "completes" not in describe_room(room)
    room.host_completion_percent = 0
    assert "host completes 0%" in describe_room(room)
