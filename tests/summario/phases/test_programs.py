"""Logs of programs that do exactly what fixtures/programs/README.md says."""

from pathlib import Path

import pytest

from summario.phases.extract import extract_phases
from summario.phases.tables import from_record, to_record
from summario.phases.values import Phase
from summario.reading.log import read_log

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "programs"
KIB = 1 << 10


def phases_of(name: str) -> list[Phase]:
    return extract_phases(read_log(PROGRAMS / f"{name}.darshan"))


def described(phase: Phase) -> tuple[object, ...]:
    kind = (phase.operation, phase.api, phase.spatiality, phase.file_access)
    [part] = phase.parts
    return (*kind, phase.n_files, phase.processes, part.requests, part.bytes // part.requests)


@pytest.mark.parametrize("name", ["bursts", "bursts-dxt"])
def test_three_bursts_to_three_files_are_three_phases(name: str) -> None:
    phases = phases_of(name)
    burst = ("write", "POSIX", "contiguous", "unique", 1, 1, 32, 256 * KIB)
    assert [described(phase) for phase in phases] == [burst] * 3
    starts = [phase.start_seconds for phase in phases]
    assert [round(start - starts[0]) for start in starts] == [0, 2, 4]


def test_bursts_of_four_processes_are_phases_with_a_file_each() -> None:
    burst = ("write", "POSIX", "contiguous", "unique", 4, 4, 64, 256 * KIB)
    assert [described(phase) for phase in phases_of("mpi-bursts")] == [burst] * 3


def test_writes_in_order_and_reads_without_order_are_two_phases() -> None:
    written, read = phases_of("write-then-read-dxt")
    assert described(written) == ("write", "POSIX", "contiguous", "unique", 1, 1, 16, 64 * KIB)
    assert described(read) == ("read", "POSIX", "random", "unique", 1, 1, 8, 4 * KIB)
    assert read.start_seconds - written.end_seconds == pytest.approx(1, abs=0.1)


def test_each_layer_and_order_of_a_parallel_program_is_a_phase_of_its_own() -> None:
    # The read of the second file through POSIX is hidden by its MPI-IO records.
    assert [described(phase) for phase in phases_of("mpi-mix-dxt")] == [
        ("write", "POSIX", "sequential", "shared", 1, 4, 32, 64 * KIB),
        ("write", "MPIIO", "unknown", "shared", 1, 4, 16, 128 * KIB),
        ("write", "MPIIO", "collective", "shared", 1, 4, 16, 128 * KIB),
    ]


def test_stdio_is_in_order() -> None:
    assert [described(phase) for phase in phases_of("stdio")] == [
        ("write", "STDIO", "contiguous", "unique", 1, 1, 1000, 64),
        ("read", "STDIO", "contiguous", "unique", 1, 1, 8, 8000),
    ]


def test_many_small_files_are_one_phase() -> None:
    [phase] = phases_of("300-files")
    assert described(phase) == ("write", "POSIX", "contiguous", "unique", 300, 1, 300, 4 * KIB)


@pytest.mark.parametrize("name", ["copies", "mapped", "metadata"])
def test_programs_without_reads_and_writes_have_no_phases(name: str) -> None:
    assert phases_of(name) == []


def test_a_record_that_is_read_in_two_orders_has_no_known_order() -> None:
    [read] = phases_of("two-orders")
    assert described(read) == ("read", "POSIX", "random", "unique", 1, 1, 400, 4 * KIB)
    assert read.order is None
    assert from_record(to_record(read)) == read
