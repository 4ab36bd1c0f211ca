"""What the service counts, for Prometheus; over all workers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    registry,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector

from predictor.service.context import Service
from predictor.service.spool import spool_folder, waiting_bytes

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# Where workers of one service leave their counts (see `serve_command`).
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STARTED = "ioncast.started"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 60)

_SECONDS = Histogram(
    "ioncast_request_seconds",
    "Time to answer, by operation and status.",
    ["endpoint", "status"],
    buckets=_BUCKETS,
)
_DECISIONS = Counter("ioncast_decisions", "Decisions, by what they rest on.", ["source"])
UNRECORDED = Counter(
    "ioncast_unrecorded_decisions", "Decisions that could be answered and not be kept."
)

# Finding a child by its labels takes longer than counting.
_seconds = cache(_SECONDS.labels)
decisions = cache(_DECISIONS.labels)


def register(app: Flask) -> None:
    """Count and time the requests of an application."""
    answer = app.wsgi_app

    def start(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        environ[_STARTED] = time.perf_counter()
        return answer(environ, respond)

    def stop(response: Response) -> Response:
        answered(request.endpoint or "none", response.status_code, request.environ[_STARTED])
        return response

    app.wsgi_app = start  # type: ignore[assignment, method-assign]
    app.after_request(stop)


def answered(endpoint: str, status: int, began_s: float) -> None:
    """Count and time a request that began at a time of `time.perf_counter`."""
    _seconds(endpoint, status).observe(time.perf_counter() - began_s)


def exposition(service: Service) -> bytes:
    """All numbers in Prometheus' text format."""
    if os.environ.get(FOLDER_VARIABLE):
        found = CollectorRegistry()
        MultiProcessCollector(found)  # type: ignore[no-untyped-call]
        texts = [generate_latest(found)]
    else:
        texts = [generate_latest()]
    own = CollectorRegistry()
    own.register(_State(service))
    return b"".join([*texts, generate_latest(own)])


class _State(registry.Collector):
    """What is true of the whole service when it is asked."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        prepared = self._service.prepared
        yield GaugeMetricFamily(
            "ioncast_prepared_entries", "Keys with a prepared answer.", len(prepared.entries)
        )
        waiting = waiting_bytes(spool_folder(self._service.settings.state))
        yield GaugeMetricFamily(
            "ioncast_spool_bytes", "Size of the files with decisions for the database.", waiting
        )
        beat = prepared.heartbeat
        if beat is not None:
            yield GaugeMetricFamily(
                "ioncast_keeper_timestamp_seconds", "When the keeper was last seen.", beat.at_s
            )
            yield GaugeMetricFamily(
                "ioncast_database_up", "Whether the keeper can use the database.", beat.database_ok
            )
