"""Counts requests and decisions, for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from functools import cache
from math import inf
from typing import TYPE_CHECKING

from flask import Flask, Response, request
from prometheus_client import CollectorRegistry, Histogram, generate_latest, registry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from ioncast.service.context import Service, service
from ioncast.service.decide.counts import BUCKETS_S, DecisionCounts, counts_in
from ioncast.service.decide.spool import spool_folder, waiting_bytes
from ioncast.service.monitoring.slow_io_nodes import SLOW_IO_NODES
from ioncast.service.running.binding import counts_folder

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STARTED = "ioncast.started"
_SECONDS = ("ioncast_request_seconds", "Time to answer, by operation and status.")
_LABELS = ("endpoint", "status")
_LIMITS = (*map(floatToGoString, BUCKETS_S), "+Inf")
# Counts of decisions are elsewhere, with those of other processes.
_OF_DECISIONS = "decisions."

_HISTOGRAM = Histogram(*_SECONDS, _LABELS, buckets=BUCKETS_S, registry=None)
# Looking a series up by its labels takes longer than counting.
_seconds = cache(_HISTOGRAM.labels)


def register(app: Flask) -> None:
    """Count and time the requests of an application."""
    answer = app.wsgi_app

    def start(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        environ[_STARTED] = time.perf_counter()
        return answer(environ, respond)

    def stop(response: Response) -> Response:
        endpoint, began_s = request.endpoint or "none", request.environ[_STARTED]
        if endpoint.startswith(_OF_DECISIONS):
            service().counts.answered(endpoint, response.status_code, began_s)
        else:
            _seconds(endpoint, response.status_code).observe(time.perf_counter() - began_s)
        return response

    app.wsgi_app = start  # type: ignore[assignment, method-assign]
    app.after_request(stop)


def exposition(of: Service) -> bytes:
    """Write all numbers in Prometheus' text format."""
    everything = CollectorRegistry()
    everything.register(_Collector(of))
    return generate_latest(everything)


class _Collector(registry.Collector):
    """The requests and decisions of all processes, and the state of the service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        yield from self._requests()
        yield from self._state()

    def _requests(self) -> Iterator[Metric]:
        """The counts of this process, and of those that only answer schedulers."""
        counted = counts_in(counts_folder(self._service.settings))
        total = DecisionCounts.sum_of([self._service.counts, *counted])
        seconds = HistogramMetricFamily(*_SECONDS, labels=_LABELS)
        for each in total.requests():
            buckets = list(zip(_LIMITS, each.buckets, strict=True))
            seconds.add_metric([each.endpoint, str(each.status)], buckets, each.seconds)
        for family in _HISTOGRAM.collect():
            # When a series began would be another metric in this format.
            seconds.samples += [
                sample for sample in family.samples if not sample.name.endswith("_created")
            ]
        yield seconds
        decided = CounterMetricFamily(
            "ioncast_decisions", "Decisions, by source.", labels=["source"]
        )
        for source, number in total.decisions().items():
            decided.add_metric([source], number)
        yield decided
        yield CounterMetricFamily(
            "ioncast_unrecorded_decisions",
            "Decisions that were answered but could not be stored.",
            total.unrecorded(),
        )

    def _state(self) -> Iterator[Metric]:
        prepared = self._service.prepared
        yield GaugeMetricFamily(
            "ioncast_prepared_entries", "Number of keys with an answer.", len(prepared.entries)
        )
        waiting = waiting_bytes(spool_folder(self._service.settings.state))
        yield GaugeMetricFamily(
            "ioncast_spool_bytes", "Bytes of decisions that wait for the database.", waiting
        )
        beat = prepared.heartbeat
        if beat is not None:
            yield GaugeMetricFamily(
                "ioncast_keeper_timestamp_seconds", "When the keeper was last seen.", beat.at_s
            )
            yield GaugeMetricFamily(
                "ioncast_database_up", "Whether the keeper can use the database.", beat.database_ok
            )
            yield GaugeMetricFamily(
                "ioncast_state_writable",
                "Whether the keeper can write to the state folder.",
                beat.state_ok,
            )
        paused = GaugeMetricFamily(
            "ioncast_decisions_paused", "1 for a system without decisions.", labels=["system"]
        )
        for system in prepared.pauses:
            paused.add_metric([system], 1)
        yield paused
        slow = GaugeMetricFamily(
            "ioncast_slow_io_node_ratio",
            "How many times slower jobs are on an I/O node than on others.",
            labels=["system", "io_node"],
        )
        found = prepared.summaries.get(SLOW_IO_NODES)
        for each in found.value if found else []:
            slow.add_metric([each["system"], each["name"]], each["ratio"])
        yield slow
        now_s = time.time()
        expiries = [token.expires_at_s or inf for token in prepared.tokens.values()]
        if (next_s := min((expiry for expiry in expiries if expiry > now_s), default=inf)) < inf:
            yield GaugeMetricFamily(
                "ioncast_token_expiry_timestamp_seconds", "When the next token expires.", next_s
            )
