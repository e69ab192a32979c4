"""Server streams over the Connect protocol: frames, flow control, ends, limits."""

import asyncio
import gzip
import json
import struct
import time

import pytest

from services.kit.errors import Code, ServiceError
from tests.integration.gateway.conftest import bench_with
from tests.integration.gateway.echo import COUNT, LOOK, Request, Response

JSON, PROTO = "application/connect+json", "application/connect+proto"
BOARD = "/koikoi.ranking.v1.RankingService/GetLeaderboard"


class Closed(ServiceError):
    code, reason, domain = Code.NOT_FOUND, "ROOM_NOT_FOUND", "lobby.koikoi"


def envelope(content: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(content)) + content


def frames_of(body: bytes) -> list[tuple[int, bytes]]:
    found = []
    while body:
        flags, size = struct.unpack_from(">BI", body)
        assert len(body) >= 5 + size, "a frame is cut off"
        found.append((flags, body[5 : 5 + size]))
        body = body[5 + size :]
    return found


def counting(numbers, text=""):
    async def stream(_call):
        for number in range(numbers):
            yield Response(number=number, text=text).SerializeToString()

    return stream


async def forever(_call):
    yield Response(number=1).SerializeToString()
    await asyncio.sleep(3600)


NOTHING = envelope(b"{}")


async def call(bench, body=NOTHING, path=COUNT, content_type=JSON, **headers):
    answer = await bench.post(path, body, Content_Type=content_type, **headers)
    return answer, frames_of(answer.body) if answer.status == 200 else []


async def refused(bench, *args, **kwargs):
    answer, frames = await call(bench, *args, **kwargs)
    assert answer.status == 200
    ((flags, end),) = frames
    assert flags == 2
    error = json.loads(end)["error"]
    return error["code"], error["details"][0]["debug"]["reason"], json.loads(end)


class Open:
    """A stream that is read by hand."""

    def __init__(self, bench, **headers):
        self.bench, self.headers = bench, headers

    async def __aenter__(self):
        port = self.bench.app.ports["http"]
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
        body = envelope(b"{}")
        lines = [f"POST {COUNT} HTTP/1.1", "Host: x", f"Content-Type: {JSON}", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in self.headers.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 5)
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def frame(self):
        """Read one frame, which the gateway writes as one chunk."""
        size = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), 10), 16)
        chunk = await asyncio.wait_for(self.reader.readexactly(size + 2), 10)
        ((flags, content),) = frames_of(chunk[:-2])
        return flags, content


async def until(condition, seconds=5.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def test_json_frames_and_an_end(bench):
    bench.script.streams[COUNT] = counting(3, "花")
    answer, frames = await call(bench, envelope(b'{"number": 7}'))
    assert answer.headers["Content-Type"] == JSON
    assert answer.headers["Cache-Control"] == "no-store, no-transform"
    assert [flags for flags, _ in frames] == [0, 0, 0, 2]
    assert [json.loads(content) for _, content in frames] == [
        {"text": "花"}, {"number": 1, "text": "花"}, {"number": 2, "text": "花"}, {},
    ]  # fmt: skip
    assert Request.FromString(bench.script.calls[0].content).number == 7


async def test_binary_frames_and_an_end_in_json(bench):
    bench.script.streams[COUNT] = counting(2)
    answer, frames = await call(bench, envelope(Request(number=9).SerializeToString()), content_type=PROTO)
    assert answer.headers["Content-Type"] == PROTO
    assert [Response.FromString(content).number for _, content in frames[:-1]] == [0, 1]
    assert frames[-1] == (2, b"{}")


async def test_who_calls_is_passed_on(bench):
    await call(bench, Authorization="Bearer abc", X_Forwarded_For="6.6.6.6", Cookie="a=b", Koikoi_Client_Version="1.2")
    (one,) = bench.script.calls
    assert (one.metadata["authorization"], one.address) == ("Bearer abc", "127.0.0.1")
    assert one.metadata["koikoi-client-version"] == "1.2"
    assert "cookie" not in one.metadata


async def test_messages_arrive_while_the_stream_is_open(bench):
    bench.script.streams[COUNT] = forever
    async with Open(bench) as stream:
        assert stream.head.startswith(b"HTTP/1.1 200 ")
        assert json.loads((await stream.frame())[1]) == {"number": 1}


async def test_the_head_arrives_before_the_first_message(bench):
    async def quiet(_call):
        await asyncio.sleep(3600)
        yield b""

    bench.script.streams[COUNT] = quiet
    async with Open(bench) as stream:
        assert stream.head.startswith(b"HTTP/1.1 200 ")


async def test_an_error_ends_the_stream_with_all_details(bench):
    async def stream(_call):
        yield Response(number=1).SerializeToString()
        raise Closed("It is gone.", metadata={"a": "b"}, retry_after_s=2.5)

    bench.script.streams[COUNT] = stream
    answer, frames = await call(bench)
    assert answer.status == 200
    end = json.loads(frames[-1][1])
    assert (end["error"]["code"], end["error"]["message"]) == ("not_found", "It is gone.")
    assert end["error"]["details"][0]["debug"]["reason"] == "ROOM_NOT_FOUND"
    assert end["metadata"] == {"retry-after": ["3"]}


async def test_a_crash_behind_the_gateway_is_told_without_a_trace(bench):
    async def stream(_call):
        yield Response(number=1).SerializeToString()
        raise RuntimeError("secret detail")

    bench.script.streams[COUNT] = stream
    answer, frames = await call(bench)
    assert json.loads(frames[-1][1])["error"]["code"] == "internal"
    assert b"secret" not in answer.body


async def test_a_message_that_is_none_ends_the_stream(bench):
    async def stream(_call):
        yield b"\xff\xff"

    bench.script.streams[COUNT] = stream
    assert (await refused(bench))[:2] == ("internal", "BACKEND_FAILED")


async def test_a_dead_backend_is_unavailable(bench):
    await bench.stop("match")
    code, reason, end = await refused(bench)
    assert (code, reason, end["metadata"]) == ("unavailable", "BACKEND_UNAVAILABLE", {"retry-after": ["1"]})


async def test_a_backend_that_dies_ends_the_stream(bench):
    bench.script.streams[COUNT] = forever
    async with Open(bench) as stream:
        await stream.frame()
        await bench.stop("match")
        flags, end = await stream.frame()
    assert flags == 2
    assert json.loads(end)["error"]["code"] in ("unavailable", "canceled")


@pytest.mark.parametrize(
    ("body", "headers", "code", "reason"),
    [
        (b"", {}, "invalid_argument", "REQUEST_INVALID"),
        (b"{}", {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}")[:-1], {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}") + b"x", {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}") * 2, {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}", 2), {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}", 128), {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(gzip.compress(b"{}", mtime=0), 1), {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}", 1), {"Connect_Content_Encoding": "gzip"}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}"), {"Connect_Content_Encoding": "br"}, "unimplemented", "ENCODING_UNSUPPORTED"),
        (envelope(b"{"), {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b'{"nope": 1}'), {}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}"), {"Connect_Protocol_Version": "2"}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b"{}"), {"Connect_Timeout_Ms": "x"}, "invalid_argument", "REQUEST_INVALID"),
        (envelope(b" " * (64 * 1024 + 1)), {}, "resource_exhausted", "BODY_TOO_LARGE"),
        (
            envelope(gzip.compress(b" " * 20_000_000, mtime=0), 1),
            {"Connect_Content_Encoding": "gzip"},
            "resource_exhausted",
            "BODY_TOO_LARGE",
        ),
    ],
)
async def test_a_bad_request_is_an_end_with_a_reason(bench, body, headers, code, reason):
    assert (await refused(bench, body, **headers))[:2] == (code, reason)
    assert not bench.script.calls


async def test_the_largest_message_passes(bench):
    _, frames = await call(bench, envelope(b"{}".ljust(64 * 1024)))
    assert frames == [(2, b"{}")]


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/proto", "application/grpc-web", "text/plain"]
)
async def test_a_stream_is_called_as_a_stream(bench, content_type):
    answer = await bench.post(COUNT, b"{}", Content_Type=content_type)
    assert answer.status == 415
    assert answer.headers["Accept-Post"] == "application/connect+json, application/connect+proto"


@pytest.mark.parametrize("path", [LOOK, BOARD])
async def test_and_nothing_else_is(bench, path):
    answer, _ = await call(bench, path=path)
    assert answer.status == 415
    assert answer.headers["Accept-Post"] == "application/json, application/proto"


@pytest.mark.parametrize("name", ["Talk", "Hidden", "count"])
async def test_other_streams_do_not_exist(bench, name):
    answer, _ = await call(bench, path=COUNT.replace("Count", name))
    assert (answer.status, answer.code) == (404, "unimplemented")


async def test_a_stream_is_not_got(bench):
    answer = await bench.send("GET", COUNT + "?encoding=json&message={}")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_gzip_both_ways(bench):
    bench.script.streams[COUNT] = counting(2, "x" * 5000)
    body = envelope(gzip.compress(b'{"number": 3}'), 1)
    answer, frames = await call(bench, body, Connect_Content_Encoding="gzip", Connect_Accept_Encoding="br, gzip")
    assert answer.headers["Connect-Content-Encoding"] == "gzip"
    assert Request.FromString(bench.script.calls[0].content).number == 3
    assert [flags for flags, _ in frames] == [1, 1, 2]
    assert json.loads(gzip.decompress(frames[1][1]))["number"] == 1
    assert len(answer.body) < 500


async def test_short_messages_and_those_nobody_asked_to_pack_stay_plain(bench):
    bench.script.streams[COUNT] = counting(1, "x" * 100)
    _, frames = await call(bench, Connect_Accept_Encoding="gzip")
    assert [flags for flags, _ in frames] == [0, 2]
    bench.script.streams[COUNT] = counting(1, "x" * 5000)
    answer, frames = await call(bench)
    assert [flags for flags, _ in frames] == [0, 2]
    assert answer.headers["Connect-Content-Encoding"] == "identity"


async def test_a_slow_reader_holds_buffers_and_no_queue():
    sent = 0

    async def flood(_call):
        nonlocal sent
        for sent in range(2000):
            yield Response(number=sent, text="x" * 100_000).SerializeToString()

    async with bench_with() as bench:
        bench.script.streams[COUNT] = flood
        async with Open(bench) as stream:
            await until(lambda: sent > 0)
            before = -1
            while before != sent:
                before = sent
                await asyncio.sleep(0.5)
            assert sent < 200, "it read ahead without its reader"  # 20 MB: what the kernel's buffers may hold
            for number in range(400):
                assert json.loads((await stream.frame())[1]).get("number", 0) == number
        await bench.wait_for_streams(0)


async def test_a_reader_that_takes_nothing_is_closed():
    ended = asyncio.Event()

    async def flood(_call):
        try:
            while True:
                yield Response(text="x" * 500_000).SerializeToString()
        finally:
            ended.set()

    async with bench_with(stall_limit_s="0.3") as bench:
        bench.script.streams[COUNT] = flood
        async with Open(bench):
            await asyncio.wait_for(ended.wait(), 10)
            await bench.wait_for_streams(0)
        assert 'outcome="SLOW_CONSUMER"' in await bench.metrics()


async def test_a_caller_that_leaves_ends_the_call_behind(bench):
    ended = asyncio.Event()

    async def stream(_call):
        try:
            yield Response(number=1).SerializeToString()
            await asyncio.sleep(3600)
        finally:
            ended.set()

    bench.script.streams[COUNT] = stream
    async with Open(bench) as one:
        await one.frame()
        await bench.wait_for_streams(1)
    await asyncio.wait_for(ended.wait(), 5)
    await bench.wait_for_streams(0)
    assert 'koikoi_gateway_rpcs_total{method="Count",outcome="CANCELLED"} 1.0' in await bench.metrics()
    assert "rpc_seconds_count{" not in await bench.metrics(), "how long a stream lived is no time to answer"


async def test_a_unary_call_goes_on_when_its_caller_leaves(bench):
    started, goes_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(_call):
        started.set()
        await goes_on.wait()
        done.set()
        return b""

    bench.script.answers[BOARD] = answer
    task = asyncio.create_task(bench.post(BOARD))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0.1)
    goes_on.set()
    await asyncio.wait_for(done.wait(), 5)


@pytest.mark.parametrize("timeout_ms", ["0", "1", "300"])
async def test_the_callers_time_is_over(bench, timeout_ms):
    bench.script.streams[COUNT] = forever
    started = time.monotonic()
    _, frames = await call(bench, Connect_Timeout_Ms=timeout_ms)
    assert time.monotonic() - started < 3
    assert json.loads(frames[-1][1])["error"]["code"] == "deadline_exceeded"


async def test_a_stream_has_no_limit_of_its_own(bench):
    async def stream(one):
        yield Response(number=int(one.time_remaining is None)).SerializeToString()

    bench.script.streams[COUNT] = stream
    _, frames = await call(bench)
    assert json.loads(frames[0][1]) == {"number": 1}


async def test_it_outlives_the_limit_of_calls():
    async def stream(_call):
        await asyncio.sleep(0.6)
        yield Response(number=5).SerializeToString()

    async with bench_with(call_limit_s="0.2") as bench:
        bench.script.streams[COUNT] = stream
        _, frames = await call(bench)
        assert json.loads(frames[0][1]) == {"number": 5}


async def test_a_request_that_never_ends_ends():
    async with bench_with(call_limit_s="0.3") as bench:
        head = f"POST {COUNT} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: 50\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.app.ports["http"])
        writer.write(head.encode() + b"\0")
        answer = await asyncio.wait_for(reader.readuntil(b"CALL_TIMED_OUT"), 5)
        writer.close()
        assert b"deadline_exceeded" in answer
        await bench.wait_for_streams(0)


async def test_streams_are_bounded_per_address():
    async with bench_with(most_streams_per_address="2", trusted_proxies="127.0.0.1") as bench:
        bench.script.streams[COUNT] = forever
        async with Open(bench, X_Forwarded_For="2001:db8::1"), Open(bench, X_Forwarded_For="2001:db8::2"):
            code, reason, end = await refused(bench, X_Forwarded_For="2001:db8::3")
            assert (code, reason, end["metadata"]) == (
                "resource_exhausted", "TOO_MANY_STREAMS", {"retry-after": ["5"]},
            )  # fmt: skip
            async with Open(bench, X_Forwarded_For="2001:db8:0:1::1") as other:
                assert (await other.frame())[0] == 0
        await bench.wait_for_streams(0)
        async with Open(bench, X_Forwarded_For="2001:db8::3") as again:
            assert (await again.frame())[0] == 0


async def test_streams_are_bounded_in_all():
    async with bench_with(most_streams="2") as bench:
        bench.script.streams[COUNT] = forever
        async with Open(bench), Open(bench):
            assert (await refused(bench))[:2] == ("unavailable", "GATEWAY_FULL")
            assert (await bench.post(BOARD)).status == 200


async def test_more_streams_than_one_connection_carries():
    """A service takes 256 streams of one connection; open ones must not stand in the way of calls."""
    async with bench_with(most_streams_per_address="1000") as bench:
        bench.script.streams[COUNT] = forever
        streams = [Open(bench) for _ in range(300)]
        for one in streams:
            await one.__aenter__()
        assert [(await one.frame())[0] for one in streams] == [0] * 300
        keys = "/koikoi.match.v1.MatchService/GetKeySet"
        answers = await asyncio.gather(*(bench.post(keys) for _ in range(100)))
        assert {answer.status for answer in answers} == {200}
        for one in streams:
            await one.__aexit__()
        await bench.wait_for_streams(0)


async def test_a_drain_ends_streams_with_a_hint_and_lets_none_begin(bench):
    bench.script.streams[COUNT] = forever
    hints = []
    async with Open(bench) as one, Open(bench) as other:
        for stream in (one, other):
            await stream.frame()
        await bench.app.begin_drain()
        for stream in (one, other):
            flags, content = await stream.frame()
            error = json.loads(content)["error"]
            assert (flags, error["code"], error["details"][0]["debug"]["reason"]) == (2, "unavailable", "DRAINING")
            hints.append(error["details"][1]["debug"]["retryDelay"])
    assert len(set(hints)) == 2, "they must not all come back at once"
    assert (await refused(bench))[:2] == ("unavailable", "DRAINING")
