from __future__ import annotations

from pathlib import Path

import pytest

from experiments.applications.counters import FileUse, Request, records
from experiments.applications.darshan_writer import Record
from experiments.applications.spec import Application, hacc_io, multiphase, periodic_a, single_a
from tests.support.darshan_reader import read_log

_LOGS = Path(__file__).parents[3] / "experiments" / "data" / "testbed" / "logs"
_MIB = 1024**2


def _uses(application: Application) -> list[FileUse]:
    """The I/O of an application with made-up times: each call takes 1 s, ranks start 1 s apart."""
    return [
        FileUse(
            path=f"/scratch/{step.file_name(rank)}",
            rank=rank,
            api=step.api,
            operation=step.operation,
            opened_s=(rank, rank + 1.0),
            closed_s=(rank + 1.0 + len(accesses), rank + 2.0 + len(accesses)),
            requests=tuple(
                Request(*access, rank + 1.0 + k, rank + 2.0 + k)
                for k, access in enumerate(accesses)
            ),
        )
        for step in application.steps
        for rank in range(application.tasks)
        if (accesses := step.accesses(rank, application.tasks))
    ]


def _request_counters(record: Record) -> dict[str, int]:
    """The counters of requests, without times and without those of opening the file."""
    kinds = ("POSIX_READS", "POSIX_WRITES", "BYTES", "CONSEC", "SEQ_", "SIZE_READ", "SIZE_WRITE")
    counters = {
        name: value
        for name, value in record.counters.items()
        if value and any(kind in name for kind in (*kinds, "MAX_BYTE")) and "RANK" not in name
    }
    # The order of equally frequent sizes does not matter.
    sizes = {
        f"requests of {record.counters[f'POSIX_ACCESS{k}_ACCESS']}": record.counters[
            f"POSIX_ACCESS{k}_COUNT"
        ]
        for k in range(1, 5)
        if record.counters.get(f"POSIX_ACCESS{k}_COUNT")
    }
    return counters | sizes


@pytest.mark.parametrize(
    ("log", "application"),
    [
        ("hacc-io-ionodes0.darshan", hacc_io(16, 8, 1.0)),
        ("multiphase-ionodes0.darshan", multiphase(16, 8, 1 / 32)),
    ],
)
def test_the_counters_are_those_that_darshan_itself_counted(
    log: str, application: Application
) -> None:
    darshan = read_log(_LOGS / log)["records"]
    counted = [_request_counters(record) for record in darshan if record.module == "POSIX"]

    own = [_request_counters(record) for record in records(_uses(application), application.tasks)]

    def key(counters: dict[str, int]) -> list[tuple[str, int]]:
        return sorted(counters.items())

    assert sorted(own, key=key) == sorted(counted, key=key)


@pytest.mark.parametrize(
    ("application", "consecutive", "sequential", "writes"),
    [
        (single_a(32, 4, 1 / 4), 480, 511, 512),
        (periodic_a(24, 24, 1 / 64, phases=1), 0, 95, 96),
    ],
)
def test_shared_files_have_the_signature_of_iors_runs_under_darshan(
    application: Application, consecutive: int, sequential: int, writes: int
) -> None:
    (record,) = records(_uses(application), application.tasks)

    names = ("POSIX_CONSEC_WRITES", "POSIX_SEQ_WRITES", "POSIX_WRITES")
    assert [record.counters[name] for name in names] == [consecutive, sequential, writes]


def test_a_file_of_all_processes_has_one_record_with_the_extremes_of_the_ranks() -> None:
    quick = FileUse("/f", 0, "POSIX", "write", (0.0, 0.5), (2.0, 2.5), (Request(0, 8, 1.0, 1.25),))
    slow = FileUse("/f", 1, "POSIX", "write", (0.25, 0.5), (5.0, 6.0), (Request(8, 16, 1.0, 4.0),))

    (record,) = records([quick, slow], 2)

    assert record.rank == -1
    assert record.counters["POSIX_FASTEST_RANK"] == 0
    assert record.counters["POSIX_FASTEST_RANK_BYTES"] == 8
    assert record.counters["POSIX_SLOWEST_RANK"] == 1
    assert record.counters["POSIX_MAX_WRITE_TIME_SIZE"] == 16
    times = {
        "POSIX_F_OPEN_START_TIMESTAMP": 0.0,
        "POSIX_F_OPEN_END_TIMESTAMP": 0.5,
        "POSIX_F_WRITE_START_TIMESTAMP": 1.0,
        "POSIX_F_WRITE_END_TIMESTAMP": 4.0,
        "POSIX_F_CLOSE_START_TIMESTAMP": 2.0,
        "POSIX_F_CLOSE_END_TIMESTAMP": 6.0,
        "POSIX_F_WRITE_TIME": 3.25,
        "POSIX_F_META_TIME": 2.25,
        "POSIX_F_MAX_WRITE_TIME": 3.0,
        "POSIX_F_FASTEST_RANK_TIME": 1.25,
        "POSIX_F_SLOWEST_RANK_TIME": 4.25,
        "POSIX_F_VARIANCE_RANK_TIME": 2.25,
    }
    assert {name: record.fcounters[name] for name in times} == times


def test_a_file_of_some_processes_has_a_record_for_each() -> None:
    uses = [
        FileUse("/f", rank, "POSIX", "read", (0, 1), (3, 4), (Request(0, 8, 1, 3),))
        for rank in (1, 2)
    ]

    assert [record.rank for record in records(uses, 3)] == [1, 2]


def test_collective_requests_are_counted_by_mpi_io() -> None:
    uses = [
        FileUse("/f", rank, "MPIIO", "write", (0, 1), (3, 4), (Request(rank * _MIB, _MIB, 1, 3),))
        for rank in (0, 1)
    ]

    (record,) = records(uses, 2)

    assert record.module == "MPI-IO"
    assert record.counters["MPIIO_COLL_OPENS"] == 2
    assert record.counters["MPIIO_COLL_WRITES"] == 2
    assert record.counters["MPIIO_BYTES_WRITTEN"] == 2 * _MIB
    assert record.counters["MPIIO_SIZE_WRITE_AGG_100K_1M"] == 2
