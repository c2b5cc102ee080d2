"""Figures about the running service, in the form that Prometheus collects."""

from __future__ import annotations

import os
from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from labelkin._version import __version__
from labelkin.messages import WriteReport
from labelkin.serve.catalogue import Catalogue
from labelkin.serve.gate import Gate

# Where the counters of several worker processes meet; set before prometheus_client is imported.
SHARED_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


class Metrics:
    """Counters of requests, documents and writes; the state of collections and of the queue."""

    def __init__(self, catalogue: Catalogue, gate: Gate) -> None:
        registry = CollectorRegistry()
        self.requests = Counter(
            "labelkin_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=registry,
        )
        self.seconds = Histogram(
            "labelkin_request_seconds",
            "Seconds from the first to the last byte of a request's answer.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self.documents = Counter(
            "labelkin_suggested_documents",
            "Documents that headings were suggested for.",
            ("collection", "method"),
            registry=registry,
        )
        self.writes = Counter(
            "labelkin_written_documents",
            "Documents added, replaced, corrected or removed.",
            ("collection", "kind"),
            registry=registry,
        )
        self.refused = Counter(
            "labelkin_refused_requests",
            "Requests refused because of a limit.",
            ("limit",),
            registry=registry,
        )
        self.active = Gauge(
            "labelkin_active_requests",
            "Requests that are not answered yet.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._state = _State(catalogue, gate)
        self._registry = registry

    def wrote(self, collection: str, report: WriteReport) -> None:
        """Count what a write has changed."""
        for kind in ("added", "replaced", "corrected", "removed"):
            self.writes.labels(collection, kind).inc(getattr(report, kind))

    def exposition(self) -> bytes:
        """All figures as text; with several workers the sums over them."""
        registry = self._registry
        if SHARED_VARIABLE in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        state = CollectorRegistry()
        state.register(self._state)
        ProcessCollector(registry=state)
        return generate_latest(registry) + generate_latest(state)


class _State:
    """Figures that are looked up when they are asked for, those of this process."""

    def __init__(self, catalogue: Catalogue, gate: Gate) -> None:
        self._catalogue = catalogue
        self._gate = gate

    def collect(self) -> Iterator[Metric]:
        """The state of the collections and of the queue."""
        yield _gauge("labelkin_ready", "Whether all models are loaded.", self._catalogue.is_loaded)
        yield _gauge("labelkin_running_requests", "Requests computed now.", self._gate.running)
        yield _gauge("labelkin_waiting_requests", "Requests that wait.", self._gate.waiting)
        info = GaugeMetricFamily("labelkin_info", "The version.", labels=("version",))
        info.add_metric((__version__,), 1)
        yield info
        documents = GaugeMetricFamily(
            "labelkin_collection_documents", "Documents stored.", labels=("collection",)
        )
        generation = GaugeMetricFamily(
            "labelkin_collection_generation", "The state that is served.", labels=("collection",)
        )
        if self._catalogue.is_loaded:
            for collection in self._catalogue:
                snapshot = collection.snapshot
                documents.add_metric((collection.name,), snapshot.count())
                generation.add_metric((collection.name,), snapshot.generation().number)
        yield documents
        yield generation

    def describe(self) -> list[Metric]:
        """Nothing: collecting at registration would look everything up."""
        return []


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(name, about, value=float(value))
