"""Counts in shared memory, and their sum with those of the workers."""

from __future__ import annotations

import os
import time

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from ioncast.service.decide.counts import BUCKETS_S, DecisionCounts, new_memory
from ioncast.service.decide.replying import ASK
from ioncast.service.running.summed_counts import DECISIONS, SECONDS, OfDecider, Sum


def samples(text: bytes) -> dict[str, float]:
    return {
        f"{sample.name} {' '.join(sorted(sample.labels.values()))}".strip(): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


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
    memory = new_memory()
    counts = DecisionCounts(memory)
    peer = CollectorRegistry()
    histogram = Histogram(*SECONDS, ["endpoint", "status"], buckets=BUCKETS_S, registry=peer)
    for seconds in (0.0001, 0.0004, 0.003, 0.2, 7.0, 1000.0):
        counts.answered(ASK, 418, time.perf_counter() - seconds)
        histogram.labels(ASK, 0).observe(seconds)
    ours = CollectorRegistry()
    ours.register(OfDecider(counts))
    told, expected = samples(generate_latest(ours)), samples(generate_latest(peer))
    counted = {name for name in expected if "_bucket" in name or "_count" in name}
    assert counted
    assert {name: told[name] for name in counted} == {name: expected[name] for name in counted}
    os.close(memory)


def test_the_sum_has_each_name_once() -> None:
    memory = new_memory()
    counts = DecisionCounts(memory)
    for source in ("history", "history", "model"):
        counts.decided(source)
    workers = CollectorRegistry()
    counter = Counter(*DECISIONS, ["source"], registry=workers)
    counter.labels("history").inc(3)
    counter.labels("default").inc(1)
    everywhere = CollectorRegistry()
    everywhere.register(Sum(workers, OfDecider(counts)))
    text = generate_latest(everywhere)
    assert text.count(b"# TYPE ioncast_decisions_total ") == 1
    found = samples(text)
    assert found["ioncast_decisions_total history"] == 5
    assert found["ioncast_decisions_total default"] == 1
    assert found["ioncast_decisions_total model"] == 1
    os.close(memory)
