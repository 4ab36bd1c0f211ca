"""The arbiter's own numbers for Prometheus: held jobs, and changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from scheduler_plugin.slurm.jobs import Job

CHANGES = ("released", "changed")


def held_metrics(held: Sequence[Job], changes: Mapping[str, int]) -> Iterator[Metric]:
    """The numbers after a round."""
    yield GaugeMetricFamily("ioncast_arbiter_held_jobs", "Jobs that wait for it.", len(held))
    if held:
        name = "ioncast_arbiter_oldest_hold_timestamp_seconds"
        oldest_s = min(job.submitted_s or 0 for job in held)
        yield GaugeMetricFamily(name, "When the oldest of these jobs was submitted.", oldest_s)
    changed = CounterMetricFamily(
        "ioncast_arbiter_changes", "Jobs that were released or changed.", labels=["kind"]
    )
    for kind in CHANGES:
        changed.add_metric([kind], changes.get(kind, 0))
    yield changed
