"""Slow I/O nodes: a planted one is named by few jobs, and chance names none."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from experiments.shipped import TESTBED
from ioncast.diagnosis.slow_io_nodes import NamedOutcome, slow_io_nodes

NODES = [f"io{number}" for number in range(8)]
# Programs whose runs with two I/O nodes were measured again and again on the emulated platform.
PROGRAMS = ("hacc-io", "multiphase", "periodic", "w-fpp-contig-1m")


@cache
def measured() -> dict[str, list[float]]:
    """The bandwidths in MiB/s that each program got with two I/O nodes."""
    found = defaultdict(list)
    for file in ("applications.csv", "benchmarks.csv"):
        with (TESTBED / file).open(encoding="utf-8") as rows:
            for row in csv.DictReader(rows):
                if row["name"] in PROGRAMS and row["io_nodes"] == "2":
                    found[row["name"]].append(float(row["bandwidth_mib_s"]))
    assert [len(found[name]) >= 5 for name in PROGRAMS] == [True] * len(PROGRAMS)
    return dict(found)


def series(
    random: np.random.Generator, jobs: int, *, slow: str = "", times: float = 4.0
) -> list[NamedOutcome]:
    """Jobs that each use two of eight I/O nodes at random, and wait for the slower one."""
    found = []
    for number in range(jobs):
        program = PROGRAMS[number % len(PROGRAMS)]
        names = tuple(random.choice(NODES, 2, replace=False).tolist())
        mib_s = float(random.choice(measured()[program])) / (times if slow in names else 1)
        found.append(
            NamedOutcome(
                id=number,
                system="here",
                job_id=str(number),
                variant=program,
                processes=16,
                nodes=8,
                io_nodes=2,
                moved_bytes=64 << 20,
                bandwidth_mib_s=mib_s,
                names=names,
            )
        )
    return found


@pytest.mark.parametrize("first", [0, 1000, 2000])
def test_one_of_eight_at_a_quarter_is_named_within_40_jobs(first: int) -> None:
    named = 0
    for seed in range(first, first + 10):
        random = np.random.default_rng(seed)
        found = slow_io_nodes(series(random, 40, slow="io5"))
        assert {each.name for each in found} <= {"io5"}
        named += len(found)
    assert named >= 9


def test_in_ten_series_of_100_jobs_without_a_slow_one_at_most_one_is_named() -> None:
    found = [
        each
        for seed in range(10)
        for each in slow_io_nodes(series(np.random.default_rng(seed), 100))
    ]
    assert len(found) <= 1


def test_the_ratio_and_the_jobs_are_those_that_were_planted() -> None:
    jobs = series(np.random.default_rng(7), 200, slow="io2", times=3.0)
    [found] = slow_io_nodes(jobs)
    on_it = sum("io2" in each.names for each in jobs)
    assert (found.system, found.name) == ("here", "io2")
    assert (found.jobs, found.elsewhere) == (on_it, 200 - on_it)
    assert found.ratio == pytest.approx(3, rel=0.2)
    assert found.p < 1e-6


def test_two_slow_io_nodes_are_named() -> None:
    jobs = series(np.random.default_rng(8), 200, slow="io2")
    slower = [
        replace(each, bandwidth_mib_s=each.bandwidth_mib_s / 3) if "io6" in each.names else each
        for each in jobs
    ]
    assert {each.name for each in slow_io_nodes(slower)} == {"io2", "io6"}


def test_programs_that_are_slow_everywhere_make_no_io_node_slow() -> None:
    """A program with a hundredth of the bandwidth always gets the same I/O nodes."""
    jobs = [
        replace(each, bandwidth_mib_s=each.bandwidth_mib_s / 100, names=("io0", "io1"))
        if each.variant == "periodic"
        else each
        for each in series(np.random.default_rng(9), 200)
    ]
    assert slow_io_nodes(jobs) == []


def test_more_bytes_and_other_numbers_of_io_nodes_are_not_compared() -> None:
    """Jobs with one I/O node get half, and always io0; large ones get twice as much elsewhere."""
    jobs = []
    for each in series(np.random.default_rng(10), 300):
        if each.id % 3 == 0:
            half = each.bandwidth_mib_s / 2
            jobs.append(replace(each, io_nodes=1, names=("io0",), bandwidth_mib_s=half))
        elif each.id % 3 == 1 and "io0" not in each.names:
            twice = 2 * each.bandwidth_mib_s
            jobs.append(replace(each, moved_bytes=1 << 30, bandwidth_mib_s=twice))
        else:
            jobs.append(each)
    assert slow_io_nodes(jobs) == []


def test_systems_are_judged_alone() -> None:
    here = series(np.random.default_rng(11), 60, slow="io1")
    there = [
        replace(each, id=each.id + 1000, system="there")
        for each in series(np.random.default_rng(12), 60)
    ]
    assert {(each.system, each.name) for each in slow_io_nodes([*there, *here])} == {
        ("here", "io1")
    }


def test_without_a_usual_bandwidth_nothing_is_named() -> None:
    assert slow_io_nodes([]) == []
    jobs = series(np.random.default_rng(13), 60, slow="io1")
    alone = [replace(each, variant=str(each.id)) for each in jobs]
    assert slow_io_nodes(alone) == []
