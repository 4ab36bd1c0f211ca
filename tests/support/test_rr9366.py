from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Record
from tests.support.darshan_reader import read_log
from tests.support.rr9366 import APPLICATIONS, HACC_IO, PAUSE_SECONDS, Application, write

every_application = pytest.mark.parametrize(
    "application", APPLICATIONS, ids=lambda application: application.name
)


@every_application
def test_the_log_has_the_records(application: Application, tmp_path: Path) -> None:
    content = read_log(write(application, tmp_path / "application.darshan"))

    assert content["nprocs"] == application.processes
    assert [_without_zeros(record) for record in content["records"]] == [
        _without_zeros(record) for record in application.records
    ]


@every_application
def test_the_records_of_each_phase_add_up_to_its_row(application: Application) -> None:
    records_of_phases = [
        list(records) for _, records in groupby(application.records, key=_phase_of)
    ]

    assert len(records_of_phases) == len(application.phases)
    for phase, records in zip(application.phases, records_of_phases, strict=True):
        counters = [record.counters for record in records]
        fcounters = [record.fcounters for record in records]
        streams = application.processes if phase.files == "shared" else 1
        assert len(records) == phase.n_files
        assert {record.rank for record in records} == (
            {-1} if phase.files == "shared" else set(range(application.processes))
        )
        assert sum(c["POSIX_WRITES"] for c in counters) == phase.requests
        assert sum(c["POSIX_BYTES_WRITTEN"] for c in counters) == phase.bytes
        assert min(f["POSIX_F_WRITE_START_TIMESTAMP"] for f in fcounters) == phase.start
        assert max(f["POSIX_F_WRITE_END_TIMESTAMP"] for f in fcounters) == phase.end
        assert max(f["POSIX_F_WRITE_TIME"] for f in fcounters) / streams == phase.time


@every_application
def test_the_counters_of_a_record_agree_with_each_other(application: Application) -> None:
    for record in application.records:
        counters, fcounters = record.counters, record.fcounters
        n_requests = counters["POSIX_WRITES"]
        streams = application.processes if record.rank == -1 else 1
        window = (
            fcounters["POSIX_F_WRITE_END_TIMESTAMP"] - fcounters["POSIX_F_WRITE_START_TIMESTAMP"]
        )
        assert _total(counters, "POSIX_SIZE_WRITE_") == n_requests
        assert (
            sum(
                counters.get(f"POSIX_ACCESS{n}_ACCESS", 0)
                * counters.get(f"POSIX_ACCESS{n}_COUNT", 0)
                for n in range(1, 5)
            )
            == counters["POSIX_BYTES_WRITTEN"]
        )
        consecutive = counters.get("POSIX_CONSEC_WRITES", 0)
        assert consecutive <= counters["POSIX_SEQ_WRITES"] < n_requests
        assert 0 < fcounters["POSIX_F_WRITE_TIME"] <= streams * window + 1e-9
        assert (
            0
            < fcounters["POSIX_F_OPEN_START_TIMESTAMP"]
            < fcounters["POSIX_F_WRITE_START_TIMESTAMP"]
        )


@every_application
def test_there_is_a_pause_between_phases(application: Application) -> None:
    phases = application.phases
    for earlier, later in pairwise(phases):
        assert later.start - earlier.end == pytest.approx(PAUSE_SECONDS)


def test_hacc_io_has_the_counters_of_a_real_run(shared_data: Path) -> None:
    real = read_log(shared_data / "runs/logs/hacc-posix-fpp-64x100k.darshan")["records"]

    of_rank = {
        record.rank: _without_zeros(record).counters for record in real if record.module == "POSIX"
    }
    assert {record.rank: record.counters for record in HACC_IO.records} == of_rank


def _phase_of(record: Record) -> str:
    return record.path.split(".")[1]


def _without_zeros(record: Record) -> Record:
    return Record(
        record.module,
        record.path,
        record.rank,
        {name: value for name, value in record.counters.items() if value},
        {name: value for name, value in record.fcounters.items() if value},
    )


def _total(counters: Mapping[str, int], prefix: str) -> int:
    return sum(value for name, value in counters.items() if name.startswith(prefix))
