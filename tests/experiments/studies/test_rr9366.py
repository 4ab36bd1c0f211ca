"""The numbers that were copied from Inria RR-9366 agree with each other."""

from __future__ import annotations

import pytest

from experiments.studies.rr9366 import (
    APPLICATIONS,
    HACC_IO,
    PERIODIC_A,
    PERIODIC_B,
    SINGLE_A,
    SINGLE_B,
    TABLE_9_MIB_S,
    ReportedApplication,
    reported,
)

every_application = pytest.mark.parametrize(
    "application", APPLICATIONS, ids=lambda application: application.name
)
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("application", "total_bytes", "request_bytes"),
    [
        (SINGLE_A, 16 * GIB, 2 * MIB),
        (SINGLE_B, 32 * GIB, 4 * MIB),
        (PERIODIC_A, 24 * GIB, 512 * KIB),
        (PERIODIC_B, 24 * GIB, 4 * KIB),
    ],
)
def test_the_phases_move_the_bytes_that_the_text_states(
    application: ReportedApplication, total_bytes: int, request_bytes: int
) -> None:
    phase = application.phase
    assert phase.bytes * application.n_phases == total_bytes
    assert phase.bytes == phase.requests * request_bytes


def test_hacc_io_writes_38_bytes_for_each_particle_and_a_header_of_24_mib() -> None:
    assert HACC_IO.phase.bytes == 64 * (38 * 100_000 + 24 * MIB)
    assert HACC_IO.phase.requests == 64 * (9 + 1)


@every_application
def test_the_time_of_a_shared_file_was_divided_by_its_processes(
    application: ReportedApplication,
) -> None:
    # Darshan's times have microseconds here. Those of shared files were divided by the processes.
    divisor = application.processes if application.phase.files == "shared" else 1
    microseconds = application.phase.time * divisor * 1e6
    assert microseconds == pytest.approx(round(microseconds), abs=0.1)


@every_application
def test_io_takes_no_longer_than_its_phase(application: ReportedApplication) -> None:
    phase = application.phase
    assert 0 < phase.time <= phase.end - phase.start


@every_application
def test_errors_are_in_order(application: ReportedApplication) -> None:
    for errors in application.errors:
        assert errors.minimum <= errors.median <= errors.maximum
        assert errors.minimum <= errors.mean <= errors.maximum


def test_each_figure_is_of_one_application() -> None:
    assert [one.figure for one in APPLICATIONS] == [2, 3, 4, 5, 6]


def test_table_9_has_five_runs_of_application_and_benchmark() -> None:
    assert {name: len(runs) for name, runs in TABLE_9_MIB_S.items()} == {
        "HACC-IO": 5,
        "benchmark": 5,
    }


def test_applications_of_studies_are_found_by_their_names() -> None:
    assert reported("hacc-io") is HACC_IO
    assert reported("multiphase") is None
