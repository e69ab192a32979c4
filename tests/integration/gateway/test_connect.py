"""The Connect protocol over real sockets: what a client or a stranger with curl may send."""

import asyncio
import base64
import json
import time

import pytest
from google.rpc import error_details_pb2
from koikoi.auth.v1 import auth_service_pb2 as auth
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi.ranking.v1 import ranking_service_pb2 as ranking

from services.gateway.methods import public_methods
from services.kit.errors import Code, ServiceError
from tests.integration.gateway.conftest import bench_with

BEGIN = "/koikoi.auth.v1.AuthService/BeginSignIn"
BOARD = "/koikoi.ranking.v1.RankingService/GetLeaderboard"
CREATE = "/koikoi.lobby.v1.LobbyService/CreateRoom"


class RoomFull(ServiceError):
    code, reason, domain = Code.FAILED_PRECONDITION, "ROOM_FULL", "lobby.koikoi"


class Limited(ServiceError):
    code, reason, domain = Code.RESOURCE_EXHAUSTED, "RATE_LIMITED", "auth.koikoi"


def answering(message):
    async def answer(_call):
        return message.SerializeToString()

    return answer


def failing(error):
    async def answer(_call):
        raise error

    return answer


@pytest.mark.parametrize(("codec", "message"), [("json", b"{}"), ("proto", b"")])
async def test_every_public_method_is_reachable_in_both_codecs(bench, codec, message):
    for path, method in sorted(public_methods().items()):
        kind = f"application/connect+{codec}" if method.is_streaming else f"application/{codec}"
        envelope = bytes([0, 0, 0, 0, len(message)]) + message
        answer = await bench.post(path, envelope if method.is_streaming else message, Content_Type=kind)
        assert answer.status == 200, path
        assert answer.headers["Content-Type"].startswith(kind)
        assert answer.body == (b"\2\0\0\0\2{}" if method.is_streaming else message)
    assert [call.path for call in bench.script.calls] == sorted(public_methods())


@pytest.mark.parametrize(
    "path",
    [
        "/koikoi.match.v1.MatchService/Relay",
        "/koikoi.auth.v1.AuthService/Nothing",
        "/koikoi.auth.v1.AuthService/beginsignin",
        "/AuthService/BeginSignIn",
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/koikoi.auth.v1.AuthService/BeginSignIn/",
        "/koikoi.auth.v1.AuthService",
        "/metrics",
        "/.well-known/../koikoi.auth.v1.AuthService/x",
        "/%2e%2e/etc",
        "/a/b/c/d",
    ],
)
@pytest.mark.parametrize("verb", ["POST", "GET"])
async def test_nothing_else_is(bench, path, verb):
    answer = await bench.send(verb, path, data=b"{}", headers={"Content-Type": "application/json"})
    assert answer.status == 404
    assert answer.code == "unimplemented"
    assert not bench.script.calls


async def test_json_goes_in_and_comes_out(bench):
    page = ranking.GetLeaderboardResponse(
        entries=[ranking.LeaderboardEntry(rank=1, account_id="a", display_name="花", rating=1612, matches=3)],
        next_page_token="t",
    )
    bench.script.answers[BOARD] = answering(page)
    answer = await bench.post(BOARD, {"pageSize": 5}, Content_Type="application/json; charset=utf-8")
    assert answer.json == {
        "entries": [{"rank": 1, "accountId": "a", "displayName": "花", "rating": 1612.0, "matches": 3}],
        "nextPageToken": "t",
    }
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Server"] == "koikoi"
    (call,) = bench.script.calls
    assert ranking.GetLeaderboardRequest.FromString(call.content).page_size == 5


async def test_binary_goes_through_byte_for_byte(bench):
    session = auth.BeginSignInResponse(challenge=bytes(range(32)), nonce="n")
    bench.script.answers[BEGIN] = answering(session)
    body = auth.BeginSignInRequest(device_key=bytes(32)).SerializeToString() + b"\xa0\x06\x01"
    answer = await bench.post(BEGIN, body, Content_Type="application/proto", Connect_Protocol_Version="1")
    assert (answer.status, answer.body) == (200, session.SerializeToString())
    assert bench.script.calls[0].content == body


async def test_who_calls_is_passed_on_and_nothing_else(bench):
    await bench.post(CREATE, Authorization="Bearer abc.def", X_Forwarded_For="6.6.6.6", Cookie="a=b", X_Secret="s")
    (call,) = bench.script.calls
    assert call.metadata["authorization"] == "Bearer abc.def"
    assert call.metadata["x-forwarded-for"] == "127.0.0.1"  # what the client claims of itself does not count
    assert call.address == "127.0.0.1"
    assert not {"cookie", "x-secret"} & call.metadata.keys()


async def test_the_address_counts_that_a_trusted_proxy_saw():
    async with bench_with(trusted_proxies="127.0.0.0/8") as bench:
        await bench.post(CREATE, X_Forwarded_For="6.6.6.6, 203.0.113.5")
        await bench.post(CREATE, X_Forwarded_For="nonsense")
        assert [call.address for call in bench.script.calls] == ["203.0.113.5", "127.0.0.1"]


async def test_a_token_no_header_can_carry_is_refused(bench):
    for line in (b"Authorization: Bearer \xc3\xa9", b"Authorization: a\r\nAuthorization: b"):
        head = f"POST {BEGIN} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        answer = await bench.raw(head.encode() + line + b"\r\nConnection: close\r\n\r\n{}", leaves=False)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert b"invalid_argument" in answer
    assert not bench.script.calls


async def test_a_refusal_keeps_code_message_and_details(bench):
    bench.script.answers[CREATE] = failing(RoomFull("The room is full.", metadata={"a": "b"}, field="code"))
    answer = await bench.post(CREATE)
    assert (answer.status, answer.code, answer.json["message"]) == (400, "failed_precondition", "The room is full.")
    assert answer.detail("ErrorInfo") == {
        "reason": "ROOM_FULL",
        "domain": "lobby.koikoi",
        "metadata": {"a": "b", "field": "code"},
    }
    assert answer.detail("BadRequest")["fieldViolations"][0]["field"] == "code"
    raw = next(detail["value"] for detail in answer.json["details"] if detail["type"] == "google.rpc.ErrorInfo")
    assert error_details_pb2.ErrorInfo.FromString(base64.b64decode(raw + "==")).reason == "ROOM_FULL"


async def test_an_error_is_json_for_binary_calls_too(bench):
    bench.script.answers[BEGIN] = failing(Limited("Slowly.", retry_after_s=12.3))
    answer = await bench.post(BEGIN, b"", Content_Type="application/proto")
    assert (answer.status, answer.code) == (429, "resource_exhausted")
    assert answer.detail("RetryInfo") == {"retryDelay": "12.300s"}
    assert answer.headers["Retry-After"] == "13"


async def test_a_crash_behind_the_gateway_is_told_without_a_trace(bench):
    bench.script.answers[BEGIN] = failing(RuntimeError("secret detail"))
    answer = await bench.post(BEGIN)
    assert (answer.status, answer.code) == (500, "internal")
    assert b"secret" not in answer.body


async def test_an_answer_that_is_no_message_is_told_without_a_trace(bench):
    async def garbage(_call):
        return b"\xff\xff"

    bench.script.answers[BEGIN] = garbage
    answer = await bench.post(BEGIN)
    assert (answer.status, answer.code) == (500, "internal")
    assert answer.detail("ErrorInfo")["reason"] == "BACKEND_FAILED"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[]", "body"),
        (b"\xff\xfe\x00", "body"),
        (b'{"nope": 1}', "nope"),
        (b'{"": 1}', '""'),
        (b'{"rules": {"preset": 1}}', "rules.preset"),
        (b'{"visibility": "HIDDEN"}', "visibility"),
    ],
)
async def test_bad_json_names_the_field(bench, body, field):
    answer = await bench.post(CREATE, body)
    assert (answer.status, answer.code) == (400, "invalid_argument")
    assert answer.detail("BadRequest")["fieldViolations"][0]["field"] == field
    assert not bench.script.calls


async def test_bad_binary_is_refused(bench):
    answer = await bench.post(CREATE, b"\xff\xff\xff", Content_Type="application/proto")
    assert (answer.status, answer.code) == (400, "invalid_argument")


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "application/grpc",
        "application/grpc-web",
        "application/connect+json",
        "application/json; charset=latin1",
        "application/x-protobuf",
        "multipart/form-data; boundary=x",
        "application/proto; x=y",
    ],
)
async def test_another_content_type_is_415_with_what_is_spoken(bench, content_type):
    answer = await bench.post(BEGIN, b"{}", Content_Type=content_type)
    assert answer.status == 415
    assert answer.headers["Accept-Post"] == "application/json, application/proto"
    assert not bench.script.calls


@pytest.mark.parametrize("verb", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_methods_are_called_by_post(bench, verb):
    answer = await bench.send(verb, BEGIN)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("headers", "code", "field"),
    [
        ({"Connect_Protocol_Version": "2"}, "invalid_argument", "connect-protocol-version"),
        ({"Connect_Protocol_Version": ""}, "invalid_argument", "connect-protocol-version"),
        ({"Connect_Timeout_Ms": "soon"}, "invalid_argument", "connect-timeout-ms"),
        ({"Connect_Timeout_Ms": "-1"}, "invalid_argument", "connect-timeout-ms"),
        ({"Connect_Timeout_Ms": "1.5"}, "invalid_argument", "connect-timeout-ms"),
        ({"Connect_Timeout_Ms": "12345678901"}, "invalid_argument", "connect-timeout-ms"),
        ({"Connect_Timeout_Ms": "٣"}, "invalid_argument", "connect-timeout-ms"),
        ({"Content_Encoding": "gzip, br"}, "unimplemented", "content-encoding"),
        ({"Content_Encoding": "br"}, "unimplemented", "content-encoding"),
    ],
)
async def test_headers_of_the_protocol_are_checked(bench, headers, code, field):
    answer = await bench.post(BEGIN, b"{}", **headers)
    assert answer.code == code
    assert answer.detail("BadRequest")["fieldViolations"][0]["field"] == field
    assert not bench.script.calls


@pytest.mark.parametrize("size", [64 * 1024 + 1, 10_000_000])
async def test_too_large_a_body_is_refused_unread(bench, size):
    """Only the head is sent: the answer comes although the body never does."""
    head = f"POST {BEGIN} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.app.ports["http"])
    writer.write(head.encode())
    answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), 5)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 429 ")


async def test_too_large_a_body_in_chunks_is_refused(bench):
    async def chunks():
        for _ in range(80):
            yield b" " * 1024

    answer = await bench.send("POST", BEGIN, data=chunks(), headers={"Content-Type": "application/json"})
    assert (answer.status, answer.code) == (429, "resource_exhausted")
    assert answer.detail("ErrorInfo")["reason"] == "BODY_TOO_LARGE"
    assert answer.detail("ErrorInfo")["metadata"]["limit"] == "65536"
    assert not bench.script.calls


async def test_the_largest_body_passes(bench):
    body = b"{}".ljust(64 * 1024)
    assert (await bench.post(BEGIN, body)).status == 200


async def test_the_callers_time_is_the_backends_time(bench):
    await bench.post(BEGIN, b"{}", Connect_Timeout_Ms="2500")
    await bench.post(BEGIN, b"{}", Connect_Timeout_Ms="9999999999")
    await bench.post(BEGIN, b"{}")
    short, long, default = [call.time_remaining for call in bench.script.calls]
    assert 1.5 < short < 3
    assert 10 < long < 16
    assert 10 < default < 16


async def slow(_call):
    await asyncio.sleep(30)
    return b""


@pytest.mark.parametrize("timeout_ms", ["0", "1", "200"])
async def test_a_call_that_takes_too_long_ends(bench, timeout_ms):
    bench.script.answers[BEGIN] = slow
    started = time.monotonic()
    answer = await bench.post(BEGIN, b"{}", Connect_Timeout_Ms=timeout_ms)
    assert time.monotonic() - started < 3
    assert (answer.status, answer.code) == (504, "deadline_exceeded")


async def test_a_body_that_never_ends_ends():
    async with bench_with(call_limit_s="0.3") as bench:
        head = f"POST {BEGIN} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.app.ports["http"])
        writer.write(head.encode() + b"{")
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n"), 5)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 504 ")


async def test_a_dead_backend_is_unavailable_for_its_own_methods_only(bench):
    assert (await bench.post(BEGIN)).status == 200
    await bench.stop("auth")
    answer = await bench.post(BEGIN)
    assert (answer.status, answer.code) == (503, "unavailable")
    assert answer.detail("RetryInfo") == {"retryDelay": "1s"}
    assert answer.detail("ErrorInfo")["reason"] == "BACKEND_UNAVAILABLE"
    assert answer.headers["Retry-After"] == "1"
    assert b"127.0.0.1" not in answer.body
    assert (await bench.post(BOARD)).status == 200
    assert (await bench.send("GET", "/readyz")).status == 200


async def test_a_backend_that_comes_back_is_found_again(bench):
    await bench.stop("auth")
    assert (await bench.post(BEGIN)).status == 503
    await bench.restart("auth")
    async with asyncio.timeout(10):
        while (await bench.post(BEGIN)).status != 200:
            await asyncio.sleep(0.05)


async def test_a_backend_that_dies_in_mid_call_is_unavailable(bench):
    reached = asyncio.Event()

    async def hang(_call):
        reached.set()
        await asyncio.sleep(30)
        return b""

    bench.script.answers[BEGIN] = hang
    call = asyncio.create_task(bench.post(BEGIN))
    await reached.wait()
    await bench.stop("auth")
    answer = await asyncio.wait_for(call, 5)
    assert answer.code in ("unavailable", "canceled")
    assert b"127.0.0.1" not in answer.body


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST " + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /a/b HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000 + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_not_http_does_no_harm(bench, data):
    answer = await bench.raw(data)
    assert answer == b"" or answer.split(b" ")[1][:1] in (b"4", b"5")
    assert b"Traceback" not in answer
    assert (await bench.post(BEGIN)).status == 200


async def test_a_client_that_leaves_in_mid_body_does_no_harm(bench, capsys):
    head = f"POST {BEGIN} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
    await bench.raw(head.encode() + b"{")
    assert not bench.script.calls
    assert "gateway.failed" not in capsys.readouterr().out
    assert (await bench.post(BEGIN)).status == 200


async def test_many_calls_at_once_stay_apart(bench):
    async def echo(call):
        name = lobby.CreateRoomRequest.FromString(call.content).request_id
        await asyncio.sleep(0.01)
        return lobby.CreateRoomResponse(room=lobby.Room(code=name)).SerializeToString()

    bench.script.answers[CREATE] = echo
    answers = await asyncio.gather(*(bench.post(CREATE, {"requestId": f"r{number}"}) for number in range(50)))
    assert [answer.json["room"]["code"] for answer in answers] == [f"r{number}" for number in range(50)]


async def test_calls_are_counted_by_method_and_outcome_and_never_by_path(bench):
    await bench.post(BEGIN)
    await bench.post(BEGIN, b"{")
    await bench.post("/made/up")
    async with bench.session.get(f"http://127.0.0.1:{bench.app.ports['metrics']}/metrics") as response:
        text = await response.text()
    assert 'koikoi_gateway_rpcs_total{method="BeginSignIn",outcome="OK"} 1.0' in text
    assert 'koikoi_gateway_rpcs_total{method="BeginSignIn",outcome="INVALID_ARGUMENT"} 1.0' in text
    assert 'koikoi_gateway_rpcs_total{method="unknown",outcome="UNIMPLEMENTED"} 1.0' in text
    assert "made" not in text


async def test_curl_as_the_readme_shows_it(bench):
    bench.script.answers[BOARD] = answering(ranking.GetLeaderboardResponse(next_page_token="x"))
    port = bench.app.ports["http"]
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "-m", "10", "-H", "Content-Type: application/json", "-d", '{"pageSize": 3}',
        f"http://127.0.0.1:{port}{BOARD}", stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert json.loads(output) == {"nextPageToken": "x"}
