"""Counts in files that other processes read, and their sum."""

from __future__ import annotations

import os
import time
from pathlib import Path

from prometheus_client import CollectorRegistry, Histogram

from ioncast.service.decide.counts import (
    ASK,
    BUCKETS_S,
    DecisionCounts,
    counts_files,
    counts_in,
    new_memory,
)


def test_the_next_process_goes_on_counting() -> None:
    memory = new_memory()
    for _ in range(2):
        counts = DecisionCounts(memory)
        counts.decided("history")
        counts.could_not_record()
        counts.answered(ASK, 200, time.perf_counter())
    read = DecisionCounts(memory)
    assert (read.decisions(), read.unrecorded()) == ({"history": 2}, 2)
    [requests] = read.requests()
    assert (requests.endpoint, requests.status, requests.buckets[-1]) == (ASK, 200, 2)
    os.close(memory)


def test_requests_are_counted_as_prometheus_counts_them() -> None:
    counts = DecisionCounts(-1)
    peer = CollectorRegistry()
    histogram = Histogram("seconds", "Seconds.", buckets=BUCKETS_S, registry=peer)
    for seconds in (0.0001, 0.0004, 0.003, 0.2, 7.0, 1000.0):
        counts.answered(ASK, 418, time.perf_counter() - seconds)
        histogram.observe(seconds)
    [requests] = counts.requests()
    [family] = histogram.collect()
    expected = [each.value for each in family.samples if each.name.endswith("_bucket")]
    assert (requests.endpoint, requests.status, requests.buckets) == (ASK, 0, expected)


def test_counts_of_several_processes_are_added_up(tmp_path: Path) -> None:
    told = ("history", "history", "model"), ("history", "default")
    for descriptor, sources in zip(counts_files(tmp_path, 2), told, strict=True):
        counts = DecisionCounts(descriptor)
        for source in sources:
            counts.decided(source)
        os.close(descriptor)
    total = DecisionCounts.sum_of(counts_in(tmp_path))
    assert total.decisions() == {"history": 3, "model": 1, "default": 1}


def test_a_file_of_another_version_or_by_somebody_else_is_left_out(tmp_path: Path) -> None:
    [descriptor] = counts_files(tmp_path, 1)
    os.close(descriptor)
    (tmp_path / "decisions-1.counts").write_bytes(b"x" * 100)
    (tmp_path / "decisions-2.counts").mkdir()
    assert len(counts_in(tmp_path)) == 1


def test_no_sum_becomes_smaller_when_processes_start_again(tmp_path: Path) -> None:
    # The next service may have fewer processes.
    for number, sum_of_all in ((2, 2), (1, 3)):
        for descriptor in counts_files(tmp_path, number):
            DecisionCounts(descriptor).decided("model")
            os.close(descriptor)
        total = DecisionCounts.sum_of(counts_in(tmp_path))
        assert total.decisions() == {"model": sum_of_all}


def test_a_file_of_another_version_begins_at_zero(tmp_path: Path) -> None:
    (tmp_path / "decisions-0.counts").write_bytes(b"x" * 100)
    [descriptor] = counts_files(tmp_path, 1)
    assert DecisionCounts(descriptor).decisions() == {}
    os.close(descriptor)
