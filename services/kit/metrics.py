"""Prometheus metrics with a fixed, small label set: never an account, a device or any other id."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = CONTENT_TYPE_LATEST
disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series per counter that nobody reads
_LATENCY_S = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The metrics of one process; every name begins `koikoi_<service>_`.

    One registry per object, so that several services can run in one test process.
    """

    def __init__(self, service: str) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.rpcs = self.counter("rpcs_total", "RPCs by method and outcome.", ["method", "outcome"])
        self.rpc_seconds = self.histogram("rpc_seconds", "Time to answer a unary RPC.", ["method"])

    def counter(self, name: str, doc: str, labels: Sequence[str] = ()) -> Counter:
        """Make a counter `koikoi_<service>_<name>`; `name` ends in `_total`."""
        return Counter(f"koikoi_{self.service}_{name}", doc, labels, registry=self.registry)

    def gauge(self, name: str, doc: str, labels: Sequence[str] = ()) -> Gauge:
        """Make a gauge `koikoi_<service>_<name>`."""
        return Gauge(f"koikoi_{self.service}_{name}", doc, labels, registry=self.registry)

    def histogram(
        self, name: str, doc: str, labels: Sequence[str] = (), buckets: Sequence[float] = _LATENCY_S
    ) -> Histogram:
        """Make a histogram `koikoi_<service>_<name>`; times are in seconds."""
        return Histogram(f"koikoi_{self.service}_{name}", doc, labels, buckets=buckets, registry=self.registry)

    def exposition(self) -> bytes:
        """Return everything in the text format that Prometheus scrapes."""
        return generate_latest(self.registry)
