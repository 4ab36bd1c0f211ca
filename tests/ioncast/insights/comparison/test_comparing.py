"""Tables side by side: which rows belong together, which values differ."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path

import pytest

from ioncast.insights.comparison.aligned_text import to_text
from ioncast.insights.comparison.comparing import ComparedTable, compare
from ioncast.insights.comparison.for_programs import beside_first, stream_json
from tests.ioncast.insights.published_logs import homme
from tests.ioncast.insights.tables.reading import characterisation
from tests.support.records import (
    CounterRecord,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)


def log_of(folder: Path, name: str, *records: CounterRecord, run_seconds: float = 100) -> Path:
    return write_log(folder / f"{name}.darshan", records, nprocs=4, run_seconds=run_seconds)


def compared(*paths: Path, tolerance: float = 0.05) -> dict[str, ComparedTable]:
    found = compare([characterisation(path) for path in paths], tolerance)
    return {table.name: table for table in found}


def keys_of(table: ComparedTable) -> list[tuple[str, str]]:
    return [next(cell.row.key for cell in cells if cell.row) for cells in table.rows]


def test_sizes_of_two_runs_stand_in_one_table(tmp_path: Path) -> None:
    # Table VII of Carns et al. (2009).
    sizes = compared(homme(tmp_path, "collective"), homme(tmp_path, "independent"))["sizes"]
    counts = {
        characteristic: tuple(cell.row and cell.row.value for cell in cells)
        for (_, characteristic), cells in zip(keys_of(sizes), sizes.rows, strict=True)
    }
    assert counts == {
        "requests of 16,777,216 bytes": (128, None),
        "requests of 8,388,608 bytes": (59, None),
        "requests of 4,194,304 bytes": (4, None),
        "requests of 6,078,464 bytes": (1, None),
        "requests of 30,848 bytes": (None, 86_400),
    }


def test_layers_that_only_one_run_has_stay_together(tmp_path: Path) -> None:
    table = compared(
        log_of(tmp_path, "a", posix_record("/f", WRITES=1), stdio_record("/g", WRITES=1)),
        log_of(tmp_path, "b", posix_record("/f", WRITES=1), mpiio_record("/f", INDEP_WRITES=1)),
    )["layers"]
    layers = [layer for layer, _ in keys_of(table)]
    assert list(dict.fromkeys(layers)) == ["POSIX", "MPIIO", "STDIO", ""]
    changes = sum(one != other for one, other in pairwise(layers))
    assert changes == 3


@pytest.mark.parametrize(
    ("seconds", "tolerance", "is_other"),
    [(105, 0.05, False), (106, 0.05, True), (95, 0.05, False), (94, 0.05, True), (101, 0, True)],
)
def test_values_differ_by_more_than_the_tolerance_of_the_larger_one(
    tmp_path: Path, seconds: float, tolerance: float, is_other: bool
) -> None:
    record = posix_record("/f", WRITES=1)
    first, other = (
        log_of(tmp_path, name, record, run_seconds=time)
        for name, time in (("a", 100), ("b", seconds))
    )
    table = compared(first, other, tolerance=tolerance)["layers"]
    cells = table.rows[keys_of(table).index(("", "run time"))]
    assert [cell.differs for cell in cells] == [False, is_other]
    assert [cell.ratio for cell in cells] == [1, pytest.approx(seconds / 100)]


def test_a_layer_without_requests_is_like_a_layer_that_is_missing(tmp_path: Path) -> None:
    table = compared(
        log_of(tmp_path, "a", posix_record("/f", WRITES=1)),
        log_of(tmp_path, "b", posix_record("/f", WRITES=1), stdio_record("/g", OPENS=1)),
    )["layers"]
    cells = table.rows[keys_of(table).index(("STDIO", "writes"))]
    assert cells[0].row is None
    assert not cells[1].differs


def test_a_file_is_compared_with_the_file_of_the_same_path(tmp_path: Path) -> None:
    runs = [
        characterisation(log_of(tmp_path, name, *records), by_file=True)
        for name, records in (
            ("a", [posix_record("/f", WRITES=10, SEEKS=3), posix_record("/old", WRITES=10)]),
            ("b", [posix_record("/f", WRITES=20), posix_record("/new", WRITES=30)]),
        )
    ]
    text = to_text(runs, 0.05)
    [line] = (line for line in text.split("Each file of")[2].splitlines() if "/f " in line)
    assert "≠ 20" in line
    record = "".join(stream_json(beside_first(runs), 0.05))
    assert '["POSIX", "writes", 20, "", 1.0, "requests", "", 2.0, true]' in record
    # Seeks that are gone have a row, although rows of zeros are left out otherwise.
    assert '["POSIX", "seeks", 0, "", null, "calls", "", null, true]' in record
    assert '["POSIX", "writes", 30, "", 1.0, "requests", "", null, null]' in record


def test_jobs_stand_side_by_side(tmp_path: Path) -> None:
    record = posix_record("/f", WRITES=1)
    paths = [
        write_log(tmp_path / "a.darshan", [record], nprocs=4),
        write_log(tmp_path / "b.darshan", [record], nprocs=8, partial=["POSIX"]),
    ]
    text = to_text([characterisation(path) for path in paths], 0.05)
    lines = text.split("\nJob\n")[1].split("\n\n")[0].splitlines()
    [processes] = (line for line in lines if " processes " in line)
    assert processes.split() == ["processes", "4", "≠", "8"]
    [incomplete] = (line for line in lines if "incomplete" in line)
    assert incomplete.split() == ["incomplete", "modules", "≠", "POSIX"]


@pytest.mark.parametrize("run_seconds", [0, 1e9])
def test_times_of_day_that_no_run_has_are_not_known(tmp_path: Path, run_seconds: float) -> None:
    path = log_of(tmp_path, "a", posix_record("/f", WRITES=1), run_seconds=run_seconds)
    found = characterisation(path)
    job = found.job | {"start": 1e18, "end": float(2**62)}
    text = to_text([dataclasses.replace(found, job=job)], 0.05)
    assert text.split("\nJob\n")[1].split("\n\n")[0].count("not known") == 2
