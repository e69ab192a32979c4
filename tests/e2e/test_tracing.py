"""Traces of the whole system: from a client that records spans of its own to Redis and Postgres; only names in them."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from koikoi.lobby.v1 import lobby_service_pb2 as lobby
from koikoi_sdk.client.errors import ServerError
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import inject
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.harness.collector import Collector, Span, collecting
from tests.harness.stack import running_stack
from tools.bots import play_one_match, signed_in_bot
from tools.stack import Stack

PASSWORD = "correct-horse-battery"
NAME = "Tsurukame"


@pytest.fixture(scope="module")
def traced() -> Iterator[tuple[Stack, Collector]]:
    """A system that sends its traces to us."""
    with collecting() as collector:
        settings = {"KOIKOI_TRACE_ENDPOINT": collector.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        with running_stack(settings) as stack:
            yield stack, collector


@contextmanager
def client_span(collector: Collector, client, name: str) -> Iterator[str]:
    """Record a span of the client's own, as an app with OpenTelemetry does; its calls become part of it."""
    provider = TracerProvider(resource=Resource.create({"service.name": "client"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=collector.endpoint, insecure=True)))
    ours = client.traceparent

    def traceparent() -> str:
        headers: dict[str, str] = {}
        inject(headers)
        return headers["traceparent"]

    client.traceparent = traceparent
    try:
        with provider.get_tracer("app").start_as_current_span(name) as span:
            yield f"{span.get_span_context().trace_id:032x}"
    finally:
        client.traceparent = ours
        provider.shutdown()


def chain(collector: Collector, trace_id: str, store: str, operation: str) -> list[Span]:
    """Wait for a span of a store, and give it with all above it, outermost first."""

    def found() -> list[Span]:
        by_id = {span.span_id: span for span in collector.of(trace_id)}
        for span in by_id.values():
            if (span.attributes.get("db.system.name"), span.name) == (store, operation):
                spans = [span]
                while spans[0].parent_id in by_id:
                    spans.insert(0, by_id[spans[0].parent_id])
                if len(spans) >= 3 and not spans[0].parent_id:
                    return spans
        return []

    collector.wait(lambda: bool(found()))
    return found()


async def test_creating_a_room_is_one_trace_from_the_client_to_redis(traced):
    system, collector = traced
    async with signed_in_bot(system.plan, system.directory / "p" / "tsuru", NAME) as bot:
        with client_span(collector, bot.lobby._client, "create a room") as trace_id:
            room = await bot.lobby.create_room(lobby.Rules(preset="house"), password=PASSWORD)
        await bot.lobby.leave_room(room.code)
    spans = await asyncio.to_thread(chain, collector, trace_id, "redis", "EVALSHA")
    assert [(span.service, span.name) for span in spans] == [
        ("client", "create a room"),
        ("gateway", "koikoi.lobby.v1.LobbyService/CreateRoom"),
        ("lobby", "koikoi.lobby.v1.LobbyService/CreateRoom"),
        ("lobby", "EVALSHA"),
    ]
    assert {span.attributes["rpc.response.status_code"] for span in spans[1:3]} == {"OK"}
    sent = b"".join(collector.requests)
    for planted in (PASSWORD, NAME, room.code, bot.account.account_id, bot.lobby._client.access_token()):
        assert planted
        assert planted.encode() not in sent


@pytest.mark.parametrize("door", ["websocket_url", "grpc_url"])
async def test_a_match_is_traced_where_it_begins_and_where_it_counts(traced, door):
    """Handing the result in reaches Postgres in one trace. Of the match there are the joins, nothing per envelope."""
    system, collector = traced
    before = len(collector.spans)
    rules = lobby.Rules(preset="boardgameland", rounds=3)
    played = await play_one_match(
        system.plan, system.directory / door, getattr(system.plan, door), rules=rules, say=lambda _line: None
    )
    assert played.outcome == "finished"

    def submits() -> list[Span]:
        fresh = collector.spans[before:]
        return [span for span in fresh if span.service == "ranking" and span.name.endswith("/SubmitResult")]

    await asyncio.to_thread(collector.wait, lambda: len(submits()) >= 2)
    await asyncio.sleep(2.0)  # every service sends what it has several times a second
    for submit in submits():
        [gateway] = [span for span in collector.of(submit.trace_id) if span.span_id == submit.parent_id]
        assert (gateway.service, gateway.name) == ("gateway", submit.name)
        queries = [span for span in below(collector, submit) if span.attributes["db.system.name"] == "postgresql"]
        assert {"BEGIN", "SELECT", "COMMIT"} <= {span.name for span in queries}
    relay = [span for span in collector.spans[before:] if span.service == "match"]
    joins = [span for span in relay if span.name.endswith("/Relay")]
    assert len(joins) == 2
    assert all(len(span.parent_id) == 16 for span in joins), "the client's"
    stores = [span for span in relay if span.kind == "CLIENT"]
    assert {span.parent_id for span in stores} <= {span.span_id for span in relay}
    assert 2 <= len(stores) < 30, "a match has some hundred envelopes"


def below(collector: Collector, parent: Span) -> list[Span]:
    return [span for span in collector.of(parent.trace_id) if span.parent_id == parent.span_id]


async def test_a_refusal_can_be_looked_up_by_its_trace(traced):
    system, collector = traced
    async with signed_in_bot(system.plan, system.directory / "p" / "tsuru", NAME) as bot:
        with pytest.raises(ServerError) as caught:
            await bot.lobby.get_room("ZZZZZZ")
    trace_id = caught.value.metadata["trace_id"]
    for service in ("gateway", "lobby"):
        lines = map(json.loads, system.log(service).read_text().splitlines())
        [line] = [line for line in lines if line.get("trace_id") == trace_id]
        assert (line["event"], line["method"], line["outcome"]) == (f"{service}.rpc", "GetRoom", "NOT_FOUND")

    def errors() -> dict[str, dict[str, str]]:
        return {span.service: span.attributes for span in collector.of(trace_id) if span.kind == "SERVER"}

    await asyncio.to_thread(collector.wait, lambda: len(errors()) >= 2)
    assert errors()["lobby"]["error.type"] == caught.value.reason
    assert errors()["gateway"]["rpc.response.status_code"] == "NOT_FOUND"


async def test_services_end_in_order_while_the_collector_is_away(traced):
    """The last of all: the collector takes nothing any more, and a service still ends well within its time."""
    system, collector = traced
    collector.closed.clear()
    collector.delay_s = 60.0
    async with signed_in_bot(system.plan, system.directory / "p" / "tsuru", NAME) as bot:
        await bot.lobby.list_rooms()
    loop = asyncio.get_running_loop()
    started = loop.time()
    await system.stop("lobby")
    assert loop.time() - started < 6
    assert system._children["lobby"].process.returncode == 0
    collector.closed.set()
    await system.start("lobby")
