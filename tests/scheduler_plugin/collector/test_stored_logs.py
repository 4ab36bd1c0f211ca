"""Logs that a store knows, wherever they are, for the import of past jobs."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Record, write_log
from ioncast_base.errors import InputError
from scheduler_plugin.collector.stored_logs import StoredLogs
from tests.scheduler_plugin.collector import test_import_history
from tests.scheduler_plugin.collector.test_import_history import Past, io_nodes
from tests.scheduler_plugin.collector.test_watching import _START_S
from tests.support.command import run_ioncast

past, served = test_import_history.past, test_import_history.served
_HOUR_S = 3600


def log(path: Path, job: int, started_s: float, rank: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    start = (int(started_s), 0)
    counters = {"POSIX_WRITES": 1, "POSIX_BYTES_WRITTEN": 1 << 20}
    times = {"POSIX_F_WRITE_END_TIMESTAMP": 1.0, "POSIX_F_WRITE_TIME": 1.0 + rank}
    records = [Record("POSIX", "/data/file", 0, counters, times)]
    end = (int(started_s) + 9, 0)
    return write_log(path, nprocs=1, records=records, jobid=job, start=start, end=end)


def ingest(logs: Path, store: Path, system: str) -> None:
    done = run_ioncast("ingest", logs, "--store", store, "--system", system)
    assert done.returncode == 0, done.stderr


def test_logs_belong_to_the_runs_of_their_job_by_their_starts(tmp_path: Path) -> None:
    """The names of the files and their folders say nothing."""
    logs, store, start_s = tmp_path / "archive", tmp_path / "store", 1_700_000_000.0
    first = [log(logs / "a" / f"{n}.darshan", 7, start_s + n, n) for n in range(2)]
    second = log(logs / "b" / "x.darshan", 7, start_s + _HOUR_S)
    log(logs / "b" / "y.darshan", 8, start_s)
    ingest(logs, store, "here")
    with tarfile.open(tmp_path / "old.tar", "w") as tar:
        tar.add(log(tmp_path / "z.darshan", 9, start_s), "z.darshan")
    ingest(tmp_path / "old.tar", store, "here")
    known = StoredLogs(store, "here")
    assert (known.number, known.in_tar_files) == (4, 1)
    border = {"before_s": start_s + _HOUR_S}
    assert known.logs_of(7, start_s, start_s + 60, **border).paths == tuple(first)
    again = known.logs_of(7, start_s + _HOUR_S, start_s + _HOUR_S + 60, after_s=start_s + 60)
    assert again.paths == (second,)
    assert known.logs_of(9, start_s, start_s + 60).paths == ()
    assert StoredLogs(store, "elsewhere").number == 0
    with pytest.raises(InputError, match="not a store"):
        StoredLogs(tmp_path, "here")


@pytest.mark.serving
def test_past_jobs_are_imported_with_the_logs_of_a_store(
    past: Past,
    tmp_path: Path,
) -> None:
    archive, store = tmp_path / "archive", tmp_path / "store"
    for job in (42, 43, 44):
        log(archive / f"{job}.darshan", job, _START_S + 5 + job)
    ingest(archive, store, past.system)
    past.logs = StoredLogs(store, past.system)
    assert past.import_()
    assert set(io_nodes(past)) == {"42", "43", "44"}
