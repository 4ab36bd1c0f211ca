"""The counts of the workers and of the processes that only answer schedulers, added up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

from prometheus_client import registry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from ioncast.service.decide.counts import BUCKETS_S, DecisionCounts

# Names and texts of the metrics that both count.
SECONDS = ("ioncast_request_seconds", "Time to answer, by operation and status.")
DECISIONS = ("ioncast_decisions", "Decisions, by source.")
UNRECORDED = (
    "ioncast_unrecorded_decisions",
    "Decisions that were answered but could not be stored.",
)
_LIMITS = (*map(floatToGoString, BUCKETS_S), "+Inf")


class OfDecider(registry.Collector):
    """The counts of a process that only answers schedulers, as prometheus_client has them."""

    def __init__(self, counts: DecisionCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        seconds = HistogramMetricFamily(*SECONDS, labels=["endpoint", "status"])
        for request in self._counts.requests():
            buckets = list(zip(_LIMITS, request.buckets, strict=True))
            seconds.add_metric([request.endpoint, str(request.status)], buckets, request.seconds)
        decided = CounterMetricFamily(*DECISIONS, labels=["source"])
        for source, number in self._counts.decisions().items():
            decided.add_metric([source], number)
        unrecorded = CounterMetricFamily(*UNRECORDED, self._counts.unrecorded())
        yield from (seconds, decided, unrecorded)


class Sum(registry.Collector):
    """The sum of several collectors: samples with the same name and labels are added up."""

    def __init__(self, *parts: registry.Collector) -> None:
        self._parts = parts

    def collect(self) -> Iterator[Metric]:
        """Return the metrics of all parts, each name once."""
        families: dict[str, Metric] = {}
        values: dict[str, dict[tuple[object, ...], Sample]] = defaultdict(dict)
        for family in chain.from_iterable(part.collect() for part in self._parts):
            families.setdefault(family.name, family)
            for sample in family.samples:
                known = values[family.name]
                which = (sample.name, *sorted(sample.labels.items()))
                before = known[which].value if which in known else 0
                known[which] = sample._replace(value=before + sample.value)
        for name, family in families.items():
            family.samples = list(values[name].values())
            yield family
