"""A collector of OpenTelemetry: receives OTLP over gRPC in threads of its own, and keeps what came."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as otlp
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as otlp_grpc

__all__ = ["Collector", "Span", "collecting"]

KINDS = {2: "SERVER", 3: "CLIENT"}


@dataclass(frozen=True)
class Span:
    """What arrived of one span; ids in hex."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    failed: bool
    attributes: dict[str, str]
    seconds: float


@dataclass
class Collector(otlp_grpc.TraceServiceServicer):
    """Keeps spans, and the bytes they came in; `delay_s` makes it slow."""

    endpoint: str = ""
    delay_s: float = 0.0
    requests: list[bytes] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.closed = threading.Event()

    def Export(self, request: Any, _context: Any) -> Any:
        self.closed.wait(self.delay_s)
        self.requests.append(request.SerializeToString())
        for part in request.resource_spans:
            service = {one.key: one.value.string_value for one in part.resource.attributes}["service.name"]
            self.spans += [_read(service, span) for scope in part.scope_spans for span in scope.spans]
        return otlp.ExportTraceServiceResponse()

    def of(self, trace_id: str) -> list[Span]:
        return [span for span in self.spans if span.trace_id == trace_id]

    def wait(self, found: Callable[[], bool], limit_s: float = 15.0) -> None:
        """Block until something arrived."""
        end = time.monotonic() + limit_s
        while not found():
            assert time.monotonic() < end, self.spans
            time.sleep(0.02)


def _read(service: str, span: Any) -> Span:
    return Span(
        service,
        span.name,
        KINDS.get(span.kind, str(span.kind)),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.status.code == 2,
        {one.key: one.value.string_value for one in span.attributes},
        (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )


@contextmanager
def collecting(delay_s: float = 0.0) -> Iterator[Collector]:
    """Run a collector on a free port."""
    server = grpc.server(ThreadPoolExecutor(4))
    collector = Collector(delay_s=delay_s)
    otlp_grpc.add_TraceServiceServicer_to_server(collector, server)
    collector.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield collector
    finally:
        collector.closed.set()
        server.stop(0.5).wait()
