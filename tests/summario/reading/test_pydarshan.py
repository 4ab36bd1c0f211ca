"""Logs from reports of PyDarshan have the phases of the logs that ioncast decodes itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.applications.darshan_writer import Heatmap, Record, write_log
from ioncast_base.errors import DamagedLogError, InputError
from summario.phases.extract import extract
from summario.phases.values import Extraction
from summario.reading.log import RECORD_MODULES, read_log
from summario.reading.pydarshan import MissingPyDarshanError, import_pydarshan, log_of_report
from tests.support.pydarshan import without_pydarshan

PROJECT = Path(__file__).resolve().parents[3]
FIXTURES = PROJECT / "tests" / "summario" / "fixtures"
LOGS = sorted(
    [
        *FIXTURES.glob("*.darshan"),
        *FIXTURES.glob("programs/*.darshan"),
        *PROJECT.glob("experiments/data/*/logs/*.darshan"),
    ]
)
WITH_DXT = FIXTURES / "reopen-same-5x-dxt.darshan"
# PyDarshan needs seconds for each thousand records.
LARGE_BYTES = 400_000

Report = Callable[..., Any]


@pytest.fixture(scope="module")
def report_of() -> Report:
    report: Report = import_pydarshan("this test").DarshanReport
    return report


def both(report_of: Report, path: Path) -> tuple[Extraction, Extraction]:
    """The phases by PyDarshan and by ioncast; without what its library cannot read, new DXT."""
    with report_of(str(path), read_all=False) as report:
        found = extract(log_of_report(report))
    own = extract(read_log(path))
    unread = {text for text in found.warnings if text.startswith("PyDarshan gives no records")}
    if unread:
        found = replace(found, warnings=tuple(w for w in found.warnings if w not in unread))
        own = replace(own, nodes=found.nodes)
    return found, own


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_phases_and_warnings_are_those_of_the_log(report_of: Report, path: Path) -> None:
    found, own = both(report_of, path)
    assert found == own


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["darshan-logs", "live", "runs", "testbed"])
def test_phases_of_shared_logs_are_the_same_but_for_old_big_endian_times(
    report_of: Report, shared_data: Path, folder: str
) -> None:
    paths = sorted((shared_data / folder).rglob("*.darshan"))
    compared = 0
    for path in paths:
        if path.stat().st_size > LARGE_BYTES:
            continue
        found, expected = both(report_of, path)
        if read_log(path).header.byte_order == ">":
            # libdarshan-util leaves POSIX_F_META_TIME of records older than version 4 unswapped.
            found, expected = (
                replace(
                    each,
                    phases=tuple(replace(phase, metadata_seconds=0.0) for phase in each.phases),
                )
                for each in (found, expected)
            )
        assert found == expected, path
        compared += 1
    assert compared >= 9


@pytest.mark.parametrize("options", [{}, {"dtype": "pandas"}, {"read_all": False}])
@pytest.mark.parametrize("path", [WITH_DXT, FIXTURES / "mpi4py-partial-mpiio.darshan"])
def test_a_report_may_have_arrays_or_frames_or_have_read_nothing_yet(
    report_of: Report, path: Path, options: dict[str, Any]
) -> None:
    report = report_of(str(path), **options)
    expected = read_log(path)
    for _ in range(2):
        found = log_of_report(report)
        assert set(found.job.mounts()) == set(expected.job.mounts())
        jobs = [replace(log.job, mount_table="") for log in (found, expected)]
        assert (jobs[0], found.names) == (jobs[1], expected.names)
        assert extract(found) == extract(expected)
        for module in RECORD_MODULES:
            if module in expected.records:
                assert np.array_equal(found.records[module].words, expected.records[module].words)


def test_a_report_with_dictionaries_is_an_error_that_says_what_to_use(report_of: Report) -> None:
    report = report_of(str(WITH_DXT), dtype="dict")
    with pytest.raises(InputError, match=r'read with dtype="dict"; use dtype="numpy"'):
        log_of_report(report)


def test_a_closed_report_is_used_if_it_read_everything(report_of: Report) -> None:
    with report_of(str(WITH_DXT)) as read:
        pass
    assert extract(log_of_report(read)) == extract(read_log(WITH_DXT))
    with report_of(str(WITH_DXT), read_all=False) as unread:
        pass
    with pytest.raises(InputError, match="closed, and its POSIX data were not read"):
        log_of_report(unread)


def test_a_report_without_a_log_is_an_error(report_of: Report) -> None:
    with pytest.raises(InputError, match="not of one log"):
        log_of_report(report_of())


def test_files_that_a_reports_filter_left_out_have_no_phases(
    report_of: Report, tmp_path: Path
) -> None:
    def used(path: str) -> Record:
        times = {"POSIX_F_WRITE_START_TIMESTAMP": 1.0, "POSIX_F_WRITE_END_TIMESTAMP": 1.5}
        counters = {"POSIX_WRITES": 2, "POSIX_BYTES_WRITTEN": 8, "POSIX_CONSEC_WRITES": 1}
        return Record("POSIX", path, 0, counters, {**times, "POSIX_F_WRITE_TIME": 0.5})

    path = write_log(tmp_path / "two.darshan", nprocs=1, records=[used("/a"), used("/b")])
    [phase] = extract(log_of_report(report_of(str(path)))).phases
    assert (phase.n_files, phase.bytes) == (2, 16)
    [phase] = extract(log_of_report(report_of(str(path), filter_patterns=["^/a$"]))).phases
    assert (phase.n_files, phase.bytes) == (1, 8)
    for dtype in ("numpy", "pandas"):
        report = report_of(str(path), dtype=dtype, filter_patterns=["/"])
        nothing = extract(log_of_report(report))
        assert nothing.phases == ()
        assert nothing.warnings[0].startswith("PyDarshan gives no records of the POSIX data; read")


def test_heat_maps_that_pydarshan_rejects_are_a_warning(report_of: Report, tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "uneven.darshan",
        nprocs=2,
        heatmaps=[Heatmap("POSIX", rank, 0.5 + rank, [8, 8], [0, 0]) for rank in (0, 1)],
    )
    log = log_of_report(report_of(str(path), read_all=False))
    [warning] = log.warnings
    assert warning.startswith("PyDarshan cannot read the HEATMAP data, so they are not used: ")


def test_a_job_record_behind_zeros_is_not_a_job_for_pydarshan(
    report_of: Report, shared_data: Path
) -> None:
    path = next((shared_data / "io500-traces").glob("ior-easy_api_POSIX*4MB*"))
    with pytest.raises(DamagedLogError, match="PyDarshan finds 0 processes"):
        log_of_report(report_of(str(path), read_all=False))


def test_without_pydarshan_the_error_says_what_to_do() -> None:
    with without_pydarshan(), pytest.raises(MissingPyDarshanError) as caught:
        import_pydarshan("this report")
    assert str(caught.value) == (
        "this report needs PyDarshan, which is not installed; use Python 3.12 or older and install"
        " ioncast's extra `darshan`"
    )


def test_the_command_loads_pydarshan_only_when_it_is_asked_for() -> None:
    program = (
        "import sys, summario.commands, summario.reading.pydarshan;"
        "print({'darshan', 'pandas', 'cffi'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, cwd=PROJECT, text=True
    )
    assert done.stdout == "set()\n"
