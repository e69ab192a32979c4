"""One trace from a client's call to the stores: W3C Trace Context in, OpenTelemetry out.

Every call has a trace id: the caller's when its `traceparent` is well-formed, else a new one. Log lines and errors
carry it, and it goes on to the next service. Spans are made only while `exporting`, of a share of the calls that we
alone decide on, where a call comes in. A span tells the method or the kind of store operation, how it ended and when;
never a key, an argument, a value, an address or an id of ours. `tracestate` and `baggage` of callers end here.
"""

import asyncio
import logging
import os
import random
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from services.kit.errors import Code, ServiceError
from services.kit.settings import SettingsError, load

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

__all__ = ["Settings", "Trace", "begin", "current", "exporting", "is_exporting"]

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_ENDPOINT = re.compile(r"https?://[^/@?#\s]+/?")
_OPERATION = re.compile(r"\s*([A-Za-z]{1,20})\b")
_FLUSH_S = 2.0
_QUEUE_SPANS, _BATCH_SPANS = 2048, 256
_OUR_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}


@dataclass(frozen=True)
class Settings:
    """`KOIKOI_TRACE_*`, the same for every service."""

    endpoint: str = field(
        default="",
        metadata={"doc": "Collector that takes OTLP over gRPC: http://HOST:PORT, or https:// for TLS; empty for none."},
    )
    ratio: float = field(default=1.0, metadata={"doc": "Share of the calls of which spans are made.", "max": 1.0})


class _Exporter:
    """Where spans go, while there is such a place: one per process, as there is one log."""

    tracer: "Tracer | None" = None
    ratio: float = 0.0


class Trace:
    """What one call is part of. The tasks it starts share this, and make no more spans once it is closed."""

    __slots__ = ("_is_sampled", "_parent", "_span", "id")

    def __init__(self, trace_id: str, parent: str, is_sampled: bool) -> None:
        self.id, self._parent, self._is_sampled = trace_id, parent, is_sampled
        self._span: Span | None = None

    def open(self, method: str, at_most_s: float | None = None) -> None:
        """Begin the span of the call; that of a stream covers its opening only, and ends after `at_most_s`."""
        if not self._is_sampled or _Exporter.tracer is None:
            return
        span = _start(_Exporter.tracer, method, "SERVER", _remote(self.id, self._parent) if self._parent else None)
        if not span.is_recording():  # OTEL_SDK_DISABLED
            return
        self._span = span
        if at_most_s is not None:
            asyncio.get_running_loop().call_later(at_most_s, self.close)

    def close(self, outcome: str = "OK", reason: str = "") -> None:
        """End the span with the name of a status code; later calls change nothing."""
        if (span := self._span) is None:
            return
        self._span = None
        span.set_attribute("rpc.response.status_code", outcome)
        if outcome != "OK":
            span.set_attribute("error.type", reason or outcome)
        if outcome in _OUR_FAULTS:
            _mark_failed(span)
        span.end()

    def header(self) -> str:
        """Return the `traceparent` of the calls that this one makes."""
        if (span := self._span) is not None:
            return f"00-{self.id}-{span.get_span_context().span_id:016x}-01"
        return f"00-{self.id}-{self._parent or secrets.token_hex(8)}-00"

    @contextmanager
    def opening(self, method: str) -> Iterator[None]:
        """Make one span of what opens a connection; an error that is no refusal counts as INTERNAL."""
        outcome, reason = "INTERNAL", ""
        self.open(method)
        try:
            yield
            outcome = "OK"
        except ServiceError as error:
            outcome, reason = Code(error.code).name, error.reason
            raise
        finally:
            self.close(outcome, reason)

    @contextmanager
    def ask(self, store: str, statement: str) -> Iterator[None]:
        """Make a span of one operation of a store, named by the first word of its statement."""
        if self._span is None or _Exporter.tracer is None:
            yield
            return
        word = _OPERATION.match(statement)
        operation = word[1].upper() if word else "OTHER"
        span = _start(_Exporter.tracer, operation, "CLIENT", self._span)
        span.set_attributes({"db.system.name": store, "db.operation.name": operation})
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            _mark_failed(span)
            raise
        finally:
            span.end()


_NONE = Trace("", "", is_sampled=False)
_current: ContextVar[Trace] = ContextVar("trace", default=_NONE)


def begin(traceparent: str | None, *, trusts_caller: bool = False) -> Trace:
    """Make the call in progress part of the caller's trace, or of a new one when it names none.

    The caller's word on whether spans are made counts only when `trusts_caller`: it is one of our own services.
    """
    trace_id, parent, flags = secrets.token_hex(16), "", "00"
    if (match := _TRACEPARENT.fullmatch(traceparent or "")) and not (match[0].startswith("00") and match[4]):
        trace_id, parent, flags = match[1], match[2], match[3]
    if parent and trusts_caller:
        is_sampled = bool(int(flags, 16) & 1)
    else:
        is_sampled = random.random() < _Exporter.ratio  # noqa: S311 - not by the id, which a caller may choose
    _current.set(trace := Trace(trace_id, parent, is_sampled))
    return trace


def current() -> Trace:
    """Return what the call in progress is part of; outside of calls, one without an id."""
    return _current.get()


def is_exporting() -> bool:
    """Say whether spans are made at all; stores that are opened meanwhile tell of their operations."""
    return _Exporter.tracer is not None


@contextmanager
def exporting(service: str, environ: Mapping[str, str] = os.environ) -> Iterator[None]:
    """Make spans and send them to the collector that the settings name, if they name one.

    Spans wait in a bounded queue, and the oldest are dropped, so a collector that is slow or away costs nobody
    anything. Leaving sends what is left for at most 2 s. Blocks, so leave it outside of the event loop.

    Raises:
        SettingsError: A setting is bad.
    """
    settings = load(Settings, "KOIKOI_TRACE", environ)
    if not settings.endpoint:
        yield
        return
    if not _ENDPOINT.fullmatch(settings.endpoint):
        raise SettingsError("KOIKOI_TRACE_ENDPOINT must be http://HOST:PORT or https://HOST:PORT.")
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    class Ids(RandomIdGenerator):
        def generate_trace_id(self) -> int:  # of a trace that begins here
            return int(current().id, 16)

    logging.getLogger("opentelemetry.exporter").setLevel(logging.ERROR)  # each try that fails is a warning
    names = {"service.name": service, "service.namespace": "koikoi", "service.instance.id": secrets.token_hex(8)}
    resource = Resource.create(names)
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False, id_generator=Ids())
    exporter = OTLPSpanExporter(endpoint=settings.endpoint, insecure=settings.endpoint.startswith("http://"))
    provider.add_span_processor(
        BatchSpanProcessor(exporter, max_queue_size=_QUEUE_SPANS, max_export_batch_size=_BATCH_SPANS)
    )
    _Exporter.tracer, _Exporter.ratio = provider.get_tracer("koikoi"), settings.ratio
    try:
        yield
    finally:
        _Exporter.tracer, _Exporter.ratio = None, 0.0
        flush = threading.Thread(target=provider.shutdown, daemon=True)  # its own limit is 30 s
        flush.start()
        flush.join(_FLUSH_S)
        if flush.is_alive():
            exporter.shutdown()


def _start(tracer: "Tracer", name: str, kind: str, parent: "Span | None") -> "Span":
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind, set_span_in_context

    context = Context() if parent is None else set_span_in_context(parent, Context())
    return tracer.start_span(name, context, SpanKind[kind])


def _remote(trace_id: str, span_id: str) -> "Span":
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

    sampled = TraceFlags(TraceFlags.SAMPLED)
    return NonRecordingSpan(SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=sampled))


def _mark_failed(span: "Span") -> None:
    from opentelemetry.trace import StatusCode

    span.set_status(StatusCode.ERROR)
