"""The servers of a planted run in its time: bytes, loads and the periods of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest

from ioncast.diagnosis.server_times import ServerTimes, server_times
from ioncast.warehouse.engine import Ask, asking
from tests.support.busy_store import (
    JOBS,
    RUN_MIB,
    SERVERS,
    SLOW_JOB,
    START_S,
    log_of,
    put_busy_store,
)
from tests.support.command import run_ioncast


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    put_busy_store(folder)
    return folder


@pytest.fixture(scope="module")
def ask(store: Path) -> Iterator[Ask]:
    with asking(store) as asked:
        yield asked


def times_of(ask: Ask, job: int = SLOW_JOB) -> ServerTimes:
    found = server_times(ask, log_of(job))
    assert found is not None
    return found


def values_in(found: ServerTimes, values: np.ndarray, start: float, end: float) -> np.ndarray:
    """Select the bins that are wholly in a time."""
    return values[(found.edges[:-1] >= start) & (found.edges[1:] <= end)]


def test_bytes_are_those_of_all_osts_and_of_the_job(ask: Ask) -> None:
    found = times_of(ask)
    assert found.osts == len(SERVERS)
    # The job moves 10 MiB/s, another one 200, and the rest about 10 at each OST.
    in_run = values_in(found, found.moved_mib_s, 6, 56)
    assert in_run.mean() == pytest.approx(230, rel=0.1)
    assert values_in(found, found.moved_mib_s, -60, 0).mean() < 70
    assert values_in(found, found.own_mib_s, 6, 56) == pytest.approx(10)
    assert (found.own_mib_s * np.diff(found.edges)).sum() == pytest.approx(RUN_MIB, rel=0.01)


def test_the_load_is_that_of_the_busiest_metadata_server(ask: Ask) -> None:
    found = times_of(ask)
    assert values_in(found, found.mds_percent, 10, 55) == pytest.approx(90)
    assert values_in(found, found.mds_percent, -60, -5) == pytest.approx(20)


def test_the_period_is_that_of_the_writes(ask: Ask) -> None:
    [period] = times_of(ask).periods
    assert period.operation == "write"
    assert (period.start_seconds, period.end_seconds) == pytest.approx((1, 61))


def test_bins_without_samples_are_unknown(ask: Ask) -> None:
    def with_gap(query: object, values: object) -> object:
        rows = ask(query, values)  # type: ignore[arg-type]
        if "bytes" not in rows.column_names or "time_end_us" not in rows.column_names:
            return rows
        before_us = round((START_S + 30) * 1e6)
        is_kept = pc.or_(pc.equal(rows["server"], 3), pc.less(rows["time_end_us"], before_us))
        return rows.filter(is_kept)

    found = times_of(with_gap)  # type: ignore[arg-type]
    assert np.isnan(values_in(found, found.moved_mib_s, 31, 80)).all()
    assert not np.isnan(values_in(found, found.moved_mib_s, 0, 25)).any()


def test_a_run_without_samples_has_no_times(ask: Ask) -> None:
    assert server_times(ask, log_of(JOBS[0])) is None
    assert server_times(ask, "e" * 64) is None


@pytest.mark.slow
def test_the_page_draws_them(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run_ioncast("diagnose", str(SLOW_JOB), "--store", store, "--html", page)
    assert done.returncode == 0, done.stderr
    text = page.read_text("utf-8")
    for said in ("CPU load of the busiest metadata server", "all bytes at 2 OSTs of its files"):
        assert said in text
    assert text.count("writes of a file") == 1
