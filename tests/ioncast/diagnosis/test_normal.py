"""The usual bandwidth of runs: medians of other jobs, and the rule of slow runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.diagnosis.diagnosing import History
from ioncast.diagnosis.normal import Runs, normals_of, runs_of
from tests.support.examples import examples

GIB = 1 << 30
COLUMNS = {
    "log": pa.string(),
    "path": pa.string(),
    "system": pa.string(),
    "job_id": pa.int64(),
    "user_id": pa.int64(),
    "program": pa.string(),
    "processes": pa.int64(),
    "compute_nodes": pa.int64(),
    "start_us": pa.int64(),
    "run_seconds": pa.float64(),
    "moved_bytes": pa.int64(),
    "bandwidth_mib_s": pa.float64(),
    "has_requests": pa.bool_(),
    "metadata_seconds": pa.float64(),
    "data_seconds": pa.float64(),
    "stripe_count": pa.int64(),
    "stripe_size": pa.int64(),
    "file_processes": pa.int64(),
    "file_bytes": pa.int64(),
}


def rows(runs: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of the query `variant-runs`; each run is a job of one variant unless it says more."""
    usual = {"system": "here", "user_id": 1, "program": "a", "processes": 8, "moved_bytes": GIB}
    full = [
        {"log": f"{place:064x}", "job_id": place, "start_us": place * 10**12, **usual, **run}
        for place, run in enumerate(runs)
    ]
    return pa.Table.from_pylist(full, schema=pa.schema(list(COLUMNS.items())))


def of_bandwidths(*mib_s: float, **more: Any) -> Runs:
    return runs_of(rows([{"bandwidth_mib_s": each, **more} for each in mib_s]))


def usual(runs: Runs) -> list[float | None]:
    """The usual MiB/s of each run in the order of the logs."""
    order = np.argsort(runs.rows["log"].to_pylist())
    found = np.exp(normals_of(runs).log_mib_s[order])
    return [None if np.isnan(each) else round(float(each), 6) for each in found]


def test_the_usual_bandwidth_is_the_median_of_the_other_jobs() -> None:
    assert usual(of_bandwidths(10, 20, 30, 40, 50, 60)) == [40, 40, 40, 30, 30, 30]


def test_fewer_than_five_other_jobs_are_no_comparison() -> None:
    assert usual(of_bandwidths(10, 20, 30, 40, 50)) == [None] * 5


def test_logs_of_one_job_count_once() -> None:
    runs = [
        {"bandwidth_mib_s": each, "job_id": job}
        for each, job in zip(
            (10, 20, 30, 40, 50, 1000, 1000, 1000), (0, 1, 2, 3, 4, 5, 5, 5), strict=True
        )
    ]
    assert usual(runs_of(rows(runs)))[:5] == [40, 40, 40, 30, 30]
    runs = [{**run, "job_id": min(run["job_id"], 4)} for run in runs]
    assert usual(runs_of(rows(runs))) == [None] * 8


def test_runs_without_a_job_id_are_jobs() -> None:
    assert usual(of_bandwidths(10, 10, 10, 10, 10, 10, job_id=None)) == [10] * 6


def test_only_runs_with_about_as_many_bytes_are_compared() -> None:
    runs = [{"bandwidth_mib_s": 10, "moved_bytes": GIB} for _ in range(6)]
    runs += [{"bandwidth_mib_s": 90, "moved_bytes": 3 * GIB} for _ in range(6)]
    runs += [{"bandwidth_mib_s": 50, "moved_bytes": 2 * GIB}]
    found = usual(runs_of(rows(runs)))
    assert found[:12] == [10] * 6 + [90] * 6
    # It has 12 others, whose median is between both; the geometric mean is that of logarithms.
    assert found[12] == pytest.approx(30)


@pytest.mark.parametrize(
    "other",
    [{"program": "b"}, {"processes": 9}, {"user_id": 2}, {"system": "there"}],
    ids=lambda other: next(iter(other)),
)
def test_another_variant_is_not_compared(other: dict[str, Any]) -> None:
    runs = [{"bandwidth_mib_s": 10.0}] * 6 + [{"bandwidth_mib_s": 90.0, **other}] * 6
    assert usual(runs_of(rows(runs))) == [10] * 6 + [90] * 6


def test_compute_nodes_count_where_all_runs_name_them() -> None:
    runs = [{"bandwidth_mib_s": 10.0, "compute_nodes": 1}] * 6
    runs += [{"bandwidth_mib_s": 90.0, "compute_nodes": 2}] * 6
    assert usual(runs_of(rows(runs))) == [10] * 6 + [90] * 6
    runs[0] = {"bandwidth_mib_s": 10.0}
    assert usual(runs_of(rows(runs)))[0] == 90


@pytest.mark.parametrize(
    ("own", "is_slow"), [(49.0, True), (51.0, False), (1.0, True), (400.0, False)]
)
def test_a_slow_run_takes_twice_the_usual_time(own: float, is_slow: bool) -> None:
    runs = of_bandwidths(own, *(100 + n / 10 for n in range(-10, 11)))
    [place] = np.flatnonzero(runs.rows["log"].to_numpy(zero_copy_only=False) == "0" * 64)
    assert normals_of(runs).is_slow[place] == is_slow


def test_runs_of_a_variant_that_scatters_are_not_slow() -> None:
    """Half of the runs get 20 and half 200: the deviation of logarithms is 1.7."""
    assert not normals_of(of_bandwidths(*[20.0] * 10, *[200.0] * 10, 5.0)).is_slow.any()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [None, float("nan"), float("inf"), -1.0, 0.0, 1e-300, 1e300, 5.0, 50.0]
            ),
            st.sampled_from([None, -1, 0, 1, GIB, 2**62]),
            st.sampled_from([None, 0, 1, -5]),
            st.sampled_from([None, "a", "b"]),
            st.sampled_from([None, 0, -(10**17), 10**15, 10**15 + 10**11]),
        ),
        max_size=40,
    )
)
@settings(max_examples=examples(300))
def test_any_numbers_have_a_verdict(values: list[tuple[Any, ...]]) -> None:
    names = ("bandwidth_mib_s", "moved_bytes", "job_id", "program", "start_us")
    table = rows([dict(zip(names, each, strict=True)) for each in values])
    history = History(table)
    for log in table["log"].to_pylist():
        found = history.diagnose(log)
        assert found.judgement.verdict in ("normal", "unknown")
        assert (found.judgement.verdict == "unknown") == (
            found.facts.usual is None or found.facts.is_slow
        )


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 12)), min_size=1, max_size=40))
@settings(max_examples=examples(200))
def test_the_usual_bandwidth_is_that_of_a_plain_computation(values: list[tuple[int, int]]) -> None:
    """Each value is a number for bytes and bandwidth, and the job."""
    table = rows(
        [
            {"bandwidth_mib_s": float(size % 7 + 1), "moved_bytes": size, "job_id": job}
            for size, job in values
        ]
    )
    expected = []
    for size, job in values:
        by_job: dict[int, list[float]] = {}
        for other, of_other in values:
            if of_other != job and max(size, other) <= 2 * min(size, other):
                by_job.setdefault(of_other, []).append(np.log(other % 7 + 1))
        medians = [float(np.median(each)) for each in by_job.values()]
        expected.append(np.exp(np.median(medians)) if len(medians) >= 5 else None)
    assert usual(runs_of(table)) == [
        each if each is None else pytest.approx(each, abs=1e-5) for each in expected
    ]
