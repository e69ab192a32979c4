"""Traces, from a caller's header to the bytes that a collector gets: what is told, and above all what is not."""

import asyncio
import io
import json
import re
import socket
import threading
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status

from services.kit import log, trace
from services.kit.errors import Code, ServiceError
from services.kit.grpc_server import start_server
from services.kit.health import Health
from services.kit.metrics import Metrics
from services.kit.postgres import open_pool
from services.kit.redis import load_script, open_client
from services.kit.settings import LOOPBACK, SettingsError
from tests.harness.collector import Collector, Span, collecting

TRACE_ID, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE_ID}-{PARENT}-01", f"00-{TRACE_ID}-{PARENT}-00"
SECRET = "wrong-horse-battery"


class Full(ServiceError):
    code = Code.RESOURCE_EXHAUSTED
    reason = "FULL"


class Things:
    """Asks both stores, in every way that services do; plants the secret wherever it could be picked up."""

    def __init__(self, client, pool) -> None:
        self.client, self.pool = client, pool
        self.script = load_script(client, "return redis.call('GET', KEYS[1])")
        self.late: list[asyncio.Task] = []

    async def ask(self, request, _context):
        await self.client.set(f"key-{SECRET}", SECRET)
        await self.script([f"key-{SECRET}"])
        async with self.client.pipeline(transaction=True) as pipeline:
            await pipeline.get(f"key-{SECRET}").delete(f"key-{SECRET}").execute()
        await self.client.pipeline(transaction=False).get("x").get("y").execute()
        async with self.pool.acquire() as connection, connection.transaction():
            await connection.fetchrow("SELECT $1::text", SECRET)
            await connection.execute(f"  select '{SECRET}'")
            await connection.fetch("/* hint */ SELECT 1")
            await connection.executemany("SELECT $1::text", [(SECRET,)])
        return str(await self.pool.fetchval("VALUES (1)")).encode()

    async def fail_in_store(self, _request, _context):
        await self.pool.fetchval(f"SELECT {SECRET.replace('-', '_')}")

    async def refuse(self, _request, _context):
        raise Full(f"No room for {SECRET}.", metadata={"what": SECRET})

    async def crash(self, _request, _context):
        raise ValueError(SECRET)

    async def leave_task(self, _request, _context):
        async def work() -> None:
            await asyncio.sleep(0.05)
            await self.client.get("late")
            log.get().info("things.late")

        self.late.append(asyncio.create_task(work()))
        return b""

    async def fan_out(self, _request, _context):
        await asyncio.gather(*(self.client.get(str(number)) for number in range(5)))
        return b""

    async def watch(self, _request, _context):
        await self.client.get("snapshot")
        for _ in range(3):
            yield b"x"
            await self.client.get("later")

    async def watch_nothing(self, _request, _context):
        await asyncio.sleep(0.6)
        await self.client.get("much later")
        yield b"x"

    async def talk(self, requests, _context):
        async for request in requests:
            await self.client.get("word")
            yield request

    async def join(self, requests, _context):
        with trace.current().opening("test.Things/join"):
            await self.client.get("join")
            if await anext(requests) == b"refuse":
                raise Full("No.")
        async for request in requests:
            await self.client.get("word")
            yield request

    async def name(self, _request, _context):
        return trace.current().header().encode()

    def register(self, server: grpc.aio.Server) -> None:
        kinds = {
            grpc.unary_unary_rpc_method_handler: (
                self.ask, self.fail_in_store, self.refuse, self.crash, self.leave_task, self.fan_out, self.name,
            ),
            grpc.unary_stream_rpc_method_handler: (self.watch, self.watch_nothing),
            grpc.stream_stream_rpc_method_handler: (self.talk, self.join),
        }  # fmt: skip
        handlers = {behavior.__name__: make(behavior) for make, behaviors in kinds.items() for behavior in behaviors}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Things", handlers),))


@contextmanager
def tracing(ratio: str = "1", *, delay_s: float = 0.0):
    """Export to a collector; what was sent is complete once the block is left."""
    with collecting(delay_s) as collector, exporting(collector.endpoint, ratio):
        yield collector


def exporting(endpoint: str, ratio: str = "1"):
    return trace.exporting("things", {"KOIKOI_TRACE_ENDPOINT": endpoint, "KOIKOI_TRACE_RATIO": ratio})


@asynccontextmanager
async def serving(redis_url: str, postgres_url: str, **options):
    stack = ExitStack()
    client, pool = open_client(redis_url), await open_pool(postgres_url, schema="public")
    things = Things(client, pool)
    names = [name for name in dir(things) if not name.startswith("_")]
    options = {"trusted_proxies": LOOPBACK, "grace_s": 0.1} | options
    server = start_server(
        address="127.0.0.1:0", services=[things.register], health=Health(), metrics=Metrics("things"), verifier=None,
        anonymous=names, **options,
    )  # fmt: skip
    with stack:
        async with server as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:

            async def call(method: str, traceparent: str | None = SAMPLED, **more: str) -> bytes:
                headers = {name.replace("_", "-"): value for name, value in more.items()}
                metadata = [*headers.items(), *([("traceparent", traceparent)] if traceparent else [])]
                return await channel.unary_unary(f"/test.Things/{method}")(SECRET.encode(), metadata=metadata)

            call.channel, call.things = channel, things
            yield call
        await asyncio.gather(*things.late)
        await client.aclose()
        await pool.close()


@pytest.fixture
def urls(redis_url, stores):
    return redis_url, stores.postgres.url("postgres")


@pytest.fixture
def logs():
    stream = io.StringIO()
    log.configure("things", {}, stream)
    return stream


def tree(collector: Collector, trace_id: str = TRACE_ID) -> tuple[Span, list[Span]]:
    """Give the one span of the call and those below it."""
    spans = collector.of(trace_id)
    [root] = [span for span in spans if span.kind == "SERVER"]
    rest = [span for span in spans if span is not root]
    assert {span.parent_id for span in rest} <= {root.span_id}
    assert {span.kind for span in rest} <= {"CLIENT"}
    return root, rest


async def test_a_call_and_what_it_asks_of_the_stores_are_one_trace(urls, logs):
    with tracing() as collector:
        async with serving(*urls) as call:
            await call("ask")
    root, rest = tree(collector)
    assert (root.service, root.name, root.parent_id, root.failed) == ("things", "test.Things/ask", PARENT, False)
    assert root.attributes == {"rpc.response.status_code": "OK"}
    redis = [span.name for span in rest if span.attributes["db.system.name"] == "redis"]
    postgres = [span.name for span in rest if span.attributes["db.system.name"] == "postgresql"]
    assert [name for name in redis if name not in ("EVALSHA", "EVAL")] == ["SET", "MULTI", "PIPELINE"]
    assert "EVALSHA" in redis
    assert postgres[:6] == ["BEGIN", "SELECT", "SELECT", "OTHER", "SELECT", "COMMIT"]
    assert "VALUES" in postgres
    assert all(span.attributes["db.operation.name"] == span.name for span in rest)


async def test_nothing_but_names_and_outcomes_is_told(urls, logs):
    """Not the request, its headers, keys, arguments, SQL, messages of errors, addresses, tracestate or baggage."""
    with tracing() as collector:
        async with serving(*urls) as call:
            headers = {"authorization": f"Bearer {SECRET}", "baggage": f"a={SECRET}", "tracestate": f"a={SECRET}"}
            await call("ask", **headers)
            for method in ("refuse", "crash", "fail_in_store"):
                with pytest.raises(grpc.aio.AioRpcError):
                    await call(method, x_forwarded_for="203.0.113.9", **headers)
    sent = b"".join(collector.requests)
    assert b"test.Things/refuse" in sent
    for planted in (SECRET, SECRET.replace("-", "_"), "203.0.113.9", "127.0.0.1", "key-", "baggage", "snapshot"):
        assert planted.encode() not in sent, planted
    keys = {key for span in collector.spans for key in span.attributes}
    assert keys == {"rpc.response.status_code", "error.type", "db.system.name", "db.operation.name"}


async def test_a_span_tells_how_the_call_ended(urls, logs):
    with tracing() as collector:
        async with serving(*urls) as call:
            for number, method in enumerate(("refuse", "crash", "fail_in_store")):
                with pytest.raises(grpc.aio.AioRpcError):
                    await call(method, f"00-{number:031x}f-{PARENT}-01")
    roots = {span.name.partition("/")[2]: span for span in collector.spans if span.kind == "SERVER"}
    assert (roots["refuse"].attributes["error.type"], roots["refuse"].failed) == ("FULL", False)
    assert (roots["crash"].attributes["rpc.response.status_code"], roots["crash"].failed) == ("INTERNAL", True)
    [query] = [span for span in collector.spans if span.failed and span.kind == "CLIENT"]
    assert (query.name, query.attributes["error.type"]) == ("SELECT", "UndefinedColumnError")


async def test_an_opened_stream_is_not_traced_any_further(urls, logs):
    with tracing() as collector:
        async with serving(*urls) as call:
            metadata = [("traceparent", SAMPLED)]
            watch = call.channel.unary_stream("/test.Things/watch")(b"", metadata=metadata)
            assert [answer async for answer in watch] == [b"x"] * 3
            talk = call.channel.stream_stream("/test.Things/talk")(iter([b"a", b"b"]), metadata=metadata)
            assert [answer async for answer in talk] == [b"a", b"b"]
    root, rest = tree(collector)
    assert root.name == "test.Things/watch", "a dialogue has no span but those it makes"
    assert [span.name for span in rest] == ["GET"]


async def test_a_stream_that_says_nothing_has_a_short_span_all_the_same(urls, logs):
    with tracing() as collector:
        async with serving(*urls, deadline_s=0.2) as call:
            watch = call.channel.unary_stream("/test.Things/watch_nothing")(b"", metadata=[("traceparent", SAMPLED)])
            assert [answer async for answer in watch] == [b"x"]
    root, rest = tree(collector)
    assert (root.attributes["rpc.response.status_code"], rest) == ("OK", [])
    assert 0.15 < root.seconds < 0.5


async def test_a_dialogue_can_have_its_joining_traced(urls, logs):
    with tracing() as collector:
        async with serving(*urls) as call:
            join = call.channel.stream_stream("/test.Things/join")
            metadata = [("traceparent", SAMPLED)]
            assert [answer async for answer in join(iter([b"in", b"a"]), metadata=metadata)] == [b"a"]
            with pytest.raises(grpc.aio.AioRpcError):
                other = f"00-{'1' * 32}-{PARENT}-01"
                [answer async for answer in join(iter([b"refuse"]), metadata=[("traceparent", other)])]
    root, rest = tree(collector)
    assert (root.attributes["rpc.response.status_code"], [span.name for span in rest]) == ("OK", ["GET"])
    root, rest = tree(collector, "1" * 32)
    assert root.attributes == {"rpc.response.status_code": "RESOURCE_EXHAUSTED", "error.type": "FULL"}


async def test_what_outlives_a_call_makes_no_spans_in_its_trace(urls, logs):
    with tracing() as collector:
        async with serving(*urls) as call:
            await call("leave_task")
    _, rest = tree(collector)
    assert rest == []
    [line] = [line for line in map(json.loads, logs.getvalue().splitlines()) if line["event"] == "things.late"]
    assert line["trace_id"] == TRACE_ID, "its log lines are still to be found"


async def test_questions_at_once_are_siblings(urls, logs):
    with tracing() as collector:
        async with serving(*urls) as call:
            await asyncio.gather(*(call("fan_out", f"00-{number:032x}-{PARENT}-01") for number in range(1, 9)))
    for number in range(1, 9):
        assert [span.name for span in tree(collector, f"{number:032x}")[1]] == ["GET"] * 5


@pytest.mark.parametrize(
    "header",
    [
        None, "", "nonsense", SAMPLED.upper(), SAMPLED + "-more", SAMPLED[:-1], f"ff-{TRACE_ID}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE_ID}-{'0' * 16}-01", f"00-{TRACE_ID}x-{PARENT}-01", f" {SAMPLED}",
        f"00-{TRACE_ID}-{PARENT}-0g", "00-" + "a" * 5000,
    ],
)  # fmt: skip
async def test_a_header_that_is_none_begins_a_new_trace(urls, logs, header):
    with tracing() as collector:
        async with serving(*urls) as call:
            name = (await call("name", header)).decode()
    [root] = collector.spans
    assert root.parent_id == ""
    assert root.trace_id not in (TRACE_ID, "0" * 32)
    assert name == f"00-{root.trace_id}-{root.span_id}-01"
    [line] = map(json.loads, logs.getvalue().splitlines())
    assert line["trace_id"] == root.trace_id


async def test_a_later_version_of_the_header_is_understood(urls, logs):
    async with serving(*urls) as call:
        assert (await call("name", f"cc-{TRACE_ID}-{PARENT}-01-what-comes-later")).decode() == UNSAMPLED


@pytest.mark.parametrize(("proxies", "ratio", "expected"), [(LOOPBACK, "0", 20), ((), "0", 0), ((), "1", 20)])
async def test_only_our_own_services_decide_what_is_recorded(urls, logs, proxies, ratio, expected):
    with tracing(ratio) as collector:
        async with serving(*urls, trusted_proxies=proxies) as call:
            for _ in range(20):
                assert (await call("name", SAMPLED)).decode().startswith(f"00-{TRACE_ID}-")
    assert len(collector.spans) == expected


async def test_our_own_service_is_believed_when_it_records_nothing(urls, logs):
    with tracing() as collector:
        async with serving(*urls) as call:
            assert (await call("name", UNSAMPLED)).decode() == UNSAMPLED
    assert collector.spans == []


async def test_the_share_is_a_share(urls, logs):
    """Whatever ids a caller chooses: low ones are recorded as seldom as others."""
    with tracing("0.5") as collector:
        async with serving(*urls, trusted_proxies=()) as call:
            for number in range(1, 201):
                await call("name", f"00-{number:032x}-{PARENT}-01")
    assert 60 < len(collector.spans) < 140


async def test_without_a_collector_there_are_ids_all_the_same(urls, logs):
    async with serving(*urls) as call:
        assert type(call.things.client).__name__ == "Redis", "nothing stands in the way"
        assert (await call("name", SAMPLED)).decode() == UNSAMPLED
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call("refuse", SAMPLED)
        await call("ask", None)
    info = ErrorInfo()
    assert rpc_status.from_call(caught.value).details[0].Unpack(info)
    assert info.metadata["trace_id"] == TRACE_ID
    first, second, third = (json.loads(line)["trace_id"] for line in logs.getvalue().splitlines())
    assert first == second == TRACE_ID
    assert re.fullmatch("[0-9a-f]{32}", third)
    assert third != TRACE_ID


async def test_lines_outside_of_calls_name_no_trace(urls, logs):
    log.get().info("things.started")
    assert "trace_id" not in json.loads(logs.getvalue())


@contextmanager
def dead_end(kind: str):
    """An address where nobody listens, or where somebody takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if kind == "silent":
            yield f"http://127.0.0.1:{port}"
            return
    yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("kind", ["absent", "silent", "slow"])
async def test_a_collector_that_is_away_or_slow_costs_no_call_anything(urls, logs, kind):
    """More spans than the queue holds; every call is answered, none later than without, and the end is in time."""
    before = threading.active_count()
    with ExitStack() as stack:
        if kind == "slow":
            endpoint = stack.enter_context(collecting(delay_s=30)).endpoint
        else:
            endpoint = stack.enter_context(dead_end(kind))
        export = exporting(endpoint)
        export.__enter__()
        try:
            async with serving(*urls) as call:
                slowest = 0.0
                for _ in range(15):
                    started = time.perf_counter()
                    await asyncio.gather(*(call("fan_out", None) for _ in range(30)))
                    slowest = max(slowest, time.perf_counter() - started)
                assert slowest < 3.0, "thirty calls at once, on a busy machine"
        finally:
            started = time.perf_counter()
            export.__exit__(None, None, None)
            assert time.perf_counter() - started < 2.5
    assert SECRET not in logs.getvalue()
    assert threading.active_count() <= before + 8


def test_the_queue_is_bounded_and_keeps_the_newest(logs):
    with collecting(delay_s=60) as collector, exporting(collector.endpoint):
        for number in range(4000):
            trace.begin(SAMPLED).open(f"call {number}")
            trace.current().close()
        collector.closed.set()  # it wakes up
    assert 2048 <= len(collector.spans) <= 2048 + 2 * 256, "the queue, and what was on its way"
    assert "call 3999" in {span.name for span in collector.spans}


async def test_what_is_left_is_sent_at_the_end(urls, logs):
    started = time.perf_counter()
    with tracing(delay_s=0.3) as collector:
        async with serving(*urls) as call:
            await call("name")
        assert collector.spans == [], "not before its turn"
    assert len(collector.spans) == 1
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize(
    "environ",
    [
        {"KOIKOI_TRACE_ENDPOINT": "collector:4317"},
        {"KOIKOI_TRACE_ENDPOINT": f"http://user:{SECRET}@collector:4317"},
        {"KOIKOI_TRACE_ENDPOINT": "ftp://collector"},
        {"KOIKOI_TRACE_ENDPOINT": "http://collector/v1/traces"},
        {"KOIKOI_TRACE_RATIO": "1.5"},
        {"KOIKOI_TRACE_RATIO": "-1"},
        {"KOIKOI_TRACE_ENDPIONT": ""},
    ],
)
def test_a_bad_setting_is_one_sentence(environ):
    with pytest.raises(SettingsError, match=r"^KOIKOI_TRACE_") as caught, trace.exporting("things", environ):
        pytest.fail("started")
    assert SECRET not in str(caught.value)


async def test_the_kit_of_opentelemetry_can_be_switched_off(urls, logs, monkeypatch):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with tracing() as collector:
        async with serving(*urls) as call:
            assert (await call("name", SAMPLED)).decode() == UNSAMPLED
    assert collector.spans == []
