"""Bodies in JSON and binary: what is taken, what is refused, and where the fault is said to lie."""

import pytest
from koikoi.auth.v1 import auth_service_pb2 as auth
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi.ranking.v1 import ranking_service_pb2 as ranking

from services.gateway.codec import JSON, PROTO, read_message, write_message
from services.gateway.errors import RequestInvalid


def read(text, message_type):
    body = text if isinstance(text, bytes) else text.encode()
    return message_type.FromString(read_message(JSON, body, message_type))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", lobby.CreateRoomRequest()),
        (' {"password": null} ', lobby.CreateRoomRequest()),
        (
            '{"requestId": "a", "visibility": "VISIBILITY_PUBLIC"}',
            lobby.CreateRoomRequest(request_id="a", visibility=1),
        ),
        ('{"request_id": "花", "visibility": 2}', lobby.CreateRoomRequest(request_id="花", visibility=2)),
        ('{"rules": {"doubleAt": 0}}', lobby.CreateRoomRequest(rules=lobby.Rules(double_at=0))),
        ('{"rules": null}', lobby.CreateRoomRequest()),
    ],
)
def test_json_is_read_by_either_name(text, message):
    assert read(text, lobby.CreateRoomRequest) == message


@pytest.mark.parametrize("text", ["+/8=", "-_8=", "-_8", "+/8"])
def test_bytes_are_base64_of_either_alphabet(text):
    assert read(f'{{"deviceKey": "{text}"}}', auth.BeginSignInRequest).device_key == b"\xfb\xff"


def test_lists_are_read():
    message = read('{"signatures": ["AA==", "AQ=="], "statement": ""}', ranking.SubmitResultRequest)
    assert list(message.signatures) == [b"\0", b"\1"]


@pytest.mark.parametrize(
    ("text", "message_type", "field"),
    [
        ("", lobby.CreateRoomRequest, "body"),
        ("null", lobby.CreateRoomRequest, "body"),
        ("[]", lobby.CreateRoomRequest, "body"),
        ('"x"', lobby.CreateRoomRequest, "body"),
        ("{", lobby.CreateRoomRequest, "body"),
        (b"\xff\xfe", lobby.CreateRoomRequest, "body"),
        (b'{"password":"\xff"}', lobby.CreateRoomRequest, "body"),
        ("[" * 60_000, lobby.CreateRoomRequest, "body"),
        ('{"rules":' * 7_000, lobby.CreateRoomRequest, "body"),
        ('{"rules":{"rounds":' + "9" * 5000 + "}}", lobby.CreateRoomRequest, "body"),
        ('{"password":"a","password":"b"}', lobby.CreateRoomRequest, "body"),
        ('{"requestId":"a","request_id":"b"}', lobby.CreateRoomRequest, "request_id"),
        ('{"pageSize": NaN}', ranking.GetLeaderboardRequest, "body"),
        ('{"pasword": "a"}', lobby.CreateRoomRequest, "pasword"),
        ('{"": 1}', lobby.CreateRoomRequest, '""'),
        ('{"rules": {"prest": 1}}', lobby.CreateRoomRequest, "rules.prest"),
        ('{"rules": []}', lobby.CreateRoomRequest, "rules"),
        ('{"rules": 5}', lobby.CreateRoomRequest, "rules"),
        ('{"rules": {"preset": 5}}', lobby.CreateRoomRequest, "rules.preset"),
        ('{"rules": {"hanamiTsukimi": "yes"}}', lobby.CreateRoomRequest, "rules.hanami_tsukimi"),
        ('{"rules": {"rounds": -1}}', lobby.CreateRoomRequest, "rules.rounds"),
        ('{"rules": {"rounds": 1.5}}', lobby.CreateRoomRequest, "rules.rounds"),
        ('{"rules": {"rounds": 1e999}}', lobby.CreateRoomRequest, "rules.rounds"),
        ('{"rules": {"rounds": {}}}', lobby.CreateRoomRequest, "rules.rounds"),
        ('{"rules": {"rounds": 4294967296}}', lobby.CreateRoomRequest, "rules.rounds"),
        ('{"password": {"a": 1}}', lobby.CreateRoomRequest, "password"),
        ('{"password": ["a"]}', lobby.CreateRoomRequest, "password"),
        ('{"password": "\\ud800"}', lobby.CreateRoomRequest, "password"),
        ('{"visibility": "SECRET"}', lobby.CreateRoomRequest, "visibility"),
        ('{"deviceKey": "!!"}', auth.BeginSignInRequest, "device_key"),
        ('{"deviceKey": "A"}', auth.BeginSignInRequest, "device_key"),
        ('{"deviceKey": "+_AA"}', auth.BeginSignInRequest, "device_key"),
        ('{"deviceKey": 5}', auth.BeginSignInRequest, "device_key"),
        ('{"signatures": {"a": 1}}', ranking.SubmitResultRequest, "signatures"),
        ('{"signatures": "AA=="}', ranking.SubmitResultRequest, "signatures"),
        ('{"signatures": ["AA==", 5]}', ranking.SubmitResultRequest, "signatures[1]"),
        ('{"signatures": [null]}', ranking.SubmitResultRequest, "signatures[0]"),
    ],
)
def test_bad_json_is_refused_where_it_is_bad(text, message_type, field):
    with pytest.raises(RequestInvalid) as caught:
        read(text, message_type)
    assert caught.value.field == field
    assert "Traceback" not in caught.value.message
    assert len(caught.value.message) < 400


def test_an_unknown_name_is_not_echoed_at_length_or_with_controls():
    with pytest.raises(RequestInvalid) as caught:
        read('{"' + "\\u0007a" * 500 + '": 1}', lobby.CreateRoomRequest)
    assert caught.value.field == "a" * 32


def test_binary_goes_through_untouched():
    body = auth.BeginSignInRequest(device_key=b"k").SerializeToString() + b"\xa0\x06\x01"  # and an unknown field
    assert read_message(PROTO, body, auth.BeginSignInRequest) == body
    assert read_message(PROTO, b"", auth.BeginSignInRequest) == b""


@pytest.mark.parametrize("body", [b"\x0a", b"\x0a\xff", b"\xff" * 20, b"\x00", b"{}", b"\x0b"])
def test_garbage_is_no_binary_message(body):
    with pytest.raises(RequestInvalid) as caught:
        read_message(PROTO, body, auth.BeginSignInRequest)
    assert caught.value.field == "body"


def test_answers_are_written_in_the_codec_of_the_request():
    answer = ranking.GetRatingResponse(entry=ranking.LeaderboardEntry(account_id="a", display_name="花", rating=1500))
    content = answer.SerializeToString()
    assert write_message(PROTO, content, ranking.GetRatingResponse) == content
    text = write_message(JSON, content, ranking.GetRatingResponse).decode()
    assert text == '{"entry": {"accountId": "a", "displayName": "花", "rating": 1500.0}}'
