"""The phases that Inria RR-9366 found (its Tables 2, 5 and 7), from logs with its counters."""

from pathlib import Path

import pytest

from summario.phases.extract import extract_phases
from summario.phases.tables import to_record
from summario.reading.log import read_log
from tests.support.rr9366 import APPLICATIONS, HACC_IO, Application, write

COLUMNS = (
    "type",
    "rank",
    "bytes",
    "api",
    "requests",
    "spatiality",
    "files",
    "n_files",
    "mode_processes",
)


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda application: application.name)
def test_the_phases_are_the_reports(application: Application, tmp_path: Path) -> None:
    phases = extract_phases(read_log(write(application, tmp_path / "log.darshan")))
    assert len(phases) == len(application.phases)
    for phase, expected in zip(phases, application.phases, strict=True):
        found = to_record(phase)
        assert {name: found[name] for name in COLUMNS} == {
            name: getattr(expected, name) for name in COLUMNS
        }
        for name in ("start", "end", "time"):
            assert found[name] == pytest.approx(getattr(expected, name), abs=1e-9)


def test_hacc_io_is_nine_arrays_and_a_header_per_process(tmp_path: Path) -> None:
    [phase] = extract_phases(read_log(write(HACC_IO, tmp_path / "log.darshan")))
    assert {(part.request_bytes, part.requests) for part in phase.parts} == {
        (25165824, 64),
        (400000, 7 * 64),
        (800000, 64),
        (200000, 64),
    }
