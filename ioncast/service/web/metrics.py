"""Counts requests and decisions over all workers, for Prometheus."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, wraps
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, ParamSpec

from flask import Flask, Response, request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    registry,
)
from prometheus_client.core import GaugeMetricFamily, Metric

from ioncast.service.context import Service
from ioncast.service.decide.counts import BUCKETS_S, DecisionCounts
from ioncast.service.decide.spool import spool_folder, waiting_bytes
from ioncast.service.monitoring.slow_io_nodes import SLOW_IO_NODES
from ioncast.service.running.shared_counts import SharedCounts
from ioncast.service.running.summed_counts import DECISIONS, SECONDS, UNRECORDED, OfDecider, Sum

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_P = ParamSpec("_P")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LOG = logging.getLogger("ioncast.service")
_STARTED = "ioncast.started"
# The labels of all endpoints and statuses that had no room of their own.
_OTHERS = ("others", 0)

_SECONDS = Histogram(*SECONDS, ["endpoint", "status"], buckets=BUCKETS_S)
_DECISIONS = Counter(*DECISIONS, ["source"])


class _Counts:
    """The counts of this process: shared with others in files, or its own."""

    shared: SharedCounts | None = None
    of_deciders: Sequence[DecisionCounts] = ()
    has_failed = False
    making = Lock()


def count_in(shared: SharedCounts, of_deciders: Sequence[DecisionCounts]) -> None:
    """Count together with other workers, if there is room; each worker calls this once."""
    _Counts.shared, _Counts.of_deciders = shared, of_deciders
    if not shared.is_open:
        return
    try:
        _histogram(*_OTHERS)
        _unrecorded()
    except Exception:
        # gunicorn ends the whole service if a worker fails at its start.
        _LOG.exception("a worker counts nothing")
        shared.enter(None)


def _harmless(count: Callable[_P, None]) -> Callable[_P, None]:
    """Make a function that counts: its failures are logged and reach no answer."""

    @wraps(count)
    def counted(*args: _P.args, **kwargs: _P.kwargs) -> None:
        if _Counts.shared is not None and not _Counts.shared.is_open:
            return
        try:
            count(*args, **kwargs)
        except Exception:
            if not _Counts.has_failed:
                _Counts.has_failed = True
                _LOG.exception("counting failed; later failures are not logged")

    return counted


# Looking a series up by its labels takes longer than counting.
_histogram = cache(_SECONDS.labels)
_decisions = cache(_DECISIONS.labels)


@cache
def _unrecorded() -> Counter:
    """Make the counter when it is first needed: it takes its place in the files at once."""
    return Counter(*UNRECORDED)


@cache
def _seconds(endpoint: str, status: int) -> Histogram:
    shared = _Counts.shared
    with _Counts.making:
        has_room = shared is None or shared.takes_another_series()
        return _histogram(endpoint, status) if has_room else _histogram(*_OTHERS)


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


@_harmless
def answered(endpoint: str, status: int, began_s: float) -> None:
    """Count and time a request; `began_s` is a time of `time.perf_counter`."""
    _seconds(endpoint, status).observe(time.perf_counter() - began_s)


@_harmless
def decided(source: str) -> None:
    """Count a decision by its source."""
    _decisions(source).inc()


@_harmless
def could_not_record() -> None:
    """Count a decision that was answered but could not be stored."""
    _unrecorded().inc()


def exposition(service: Service) -> bytes:
    """Write all numbers in Prometheus' text format."""
    if _Counts.shared is None:
        _unrecorded()
        counted = generate_latest()
    else:
        everywhere = CollectorRegistry()
        everywhere.register(Sum(_Counts.shared.registry(), *map(OfDecider, _Counts.of_deciders)))
        counted = generate_latest(everywhere)
    own = CollectorRegistry()
    own.register(_State(service))
    return counted + generate_latest(own)


class _State(registry.Collector):
    """The state of the service at the time of the request."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
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
