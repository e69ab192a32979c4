"""Traces at the door: whose id it is, where it goes, and what of a stream is told."""

import re

import pytest

from services.kit import trace
from tests.harness.collector import collecting
from tests.integration.gateway.echo import COUNT, LOOK, Response

BOARD = "/koikoi.ranking.v1.RankingService/GetLeaderboard"
TRACE_ID, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADER = f"00-{TRACE_ID}-{PARENT}-01"
ONE = b"\0\0\0\0\2{}"


async def counting(_call):
    for number in range(3):
        yield Response(number=number).SerializeToString()


async def stream(bench, **headers):
    return await bench.post(COUNT, ONE, Content_Type="application/connect+json", **headers)


async def test_the_callers_trace_goes_on_to_the_service_and_back(bench):
    answer = await bench.post(BOARD, Traceparent=HEADER, Tracestate="a=1", Baggage="user=hanako")
    assert answer.headers["Trace-Id"] == TRACE_ID
    [call] = bench.script.calls
    assert call.metadata["traceparent"] == f"00-{TRACE_ID}-{PARENT}-00", "recorded or not is not the caller's to say"
    assert not {"tracestate", "baggage"} & set(call.metadata)
    assert (await stream(bench, Traceparent=HEADER)).headers["Trace-Id"] == TRACE_ID
    assert bench.script.calls[1].metadata["traceparent"].startswith(f"00-{TRACE_ID}-")


@pytest.mark.parametrize(
    "header", ["", "nonsense", "00-" + "0" * 32 + f"-{PARENT}-01", HEADER + "x", HEADER + ", " + HEADER]
)
async def test_without_one_that_is_any_there_is_a_new_one(bench, header):
    ids = {(await bench.post(BOARD, Traceparent=header)).headers["Trace-Id"] for _ in range(3)}
    assert len(ids) == 3
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in ids)
    assert [call.metadata["traceparent"].split("-")[1] in ids for call in bench.script.calls] == [True] * 3
    assert TRACE_ID not in ids


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [(BOARD, b"{", 400), ("/nowhere", b"", 404), ("/koikoi.match.v1.MatchService/Relay", b"{}", 404)],
)
async def test_a_refusal_names_the_trace_twice(bench, path, body, status):
    answer = await bench.post(path, body, Traceparent=HEADER)
    assert answer.status == status
    assert answer.headers["Trace-Id"] == TRACE_ID
    [metadata] = [detail["debug"]["metadata"] for detail in answer.json["details"] if "reason" in detail["debug"]]
    assert metadata["trace_id"] == TRACE_ID


async def test_one_connection_is_not_one_trace(bench):
    """A stream is answered by the connection's own task; what comes after it must not take over its trace."""
    head = "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n"
    first = head.format(COUNT, "application/connect+json", len(ONE), f"Traceparent: {HEADER}\r\n").encode() + ONE
    second = head.format(BOARD, "application/json", 1, "Connection: close\r\n").encode() + b"{"
    text = (await bench.raw(first + second, leaves=False)).decode(errors="replace")
    one, other = re.findall(r"Trace-Id: (\w+)", text)
    assert one == TRACE_ID
    assert other != TRACE_ID
    assert f'"trace_id": "{other}"' in text


async def test_what_may_be_kept_for_others_names_no_trace(bench):
    answer = await bench.send("GET", f"{LOOK}?connect=v1&encoding=json&message=%7B%7D")
    assert answer.status == 200
    assert answer.headers["Cache-Control"].startswith("public")
    assert "Trace-Id" not in answer.headers


async def test_spans_of_the_gateway_are_short_and_only_of_methods_that_exist(bench):
    bench.script.streams[COUNT] = counting
    with collecting() as collector, trace.exporting("gateway", {"KOIKOI_TRACE_ENDPOINT": collector.endpoint}):
        await bench.post(BOARD, Traceparent=HEADER)
        await stream(bench, Traceparent=HEADER)
        await bench.post("/koikoi.lobby.v1.LobbyService/Nothing", Traceparent=HEADER)
        await bench.post("/nowhere", Traceparent=HEADER)
        await bench.send("GET", "/healthz", headers={"Traceparent": HEADER})
        await bench.post(BOARD, b"{", Traceparent=HEADER)
    spans = collector.of(TRACE_ID)
    door = [span for span in spans if span.parent_id == PARENT]
    assert [(span.name, span.attributes["rpc.response.status_code"]) for span in door] == [
        (BOARD[1:], "OK"),
        (COUNT[1:], "OK"),
        (BOARD[1:], "INVALID_ARGUMENT"),
    ]
    behind = [span for span in spans if span.parent_id in {one.span_id for one in door}]
    assert [span.name for span in behind] == [BOARD[1:], COUNT[1:]], "the services', which are in this process, too"
    assert len(spans) == len(door) + len(behind)
