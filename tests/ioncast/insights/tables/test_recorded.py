"""Tables that are made again from records compare as the tables that the records came from."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ioncast.insights.comparison.comparing import ComparedTable, ComparedValue, compare
from ioncast.insights.comparison.in_words import largest_differences
from ioncast.insights.comparison.shown import shown_rows
from ioncast.insights.tables.characterising import Characterisation, to_record
from ioncast.insights.tables.recorded import from_records
from tests.ioncast.insights.tables.reading import characterisation

# Genuine runs of IOR.
LOGS = Path(__file__).resolve().parents[3] / "predictor/verification/fixtures/again"
NAMES = ("mpiio-coll-block", "mpiio-strided", "fsync-each-fpp", "posix-read")


def again(found: Characterisation) -> dict[str, Any]:
    """The record after it was stored as JSON."""
    record: dict[str, Any] = json.loads(json.dumps(to_record(found)))
    return record


def cells_of(tables: tuple[ComparedTable, ...]) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """The words of a comparison about each characteristic; sizes may be in another order."""
    return {
        (table.name, *next(cell.row.key for cell in cells if cell.row)): tuple(
            (of_cell(cell), cell.differs) for cell in cells
        )
        for table in tables
        for cells in table.rows
    }


def of_cell(cell: ComparedValue) -> tuple[Any, ...] | None:
    if cell.row is None:
        return None
    share = None if cell.row.share is None else pytest.approx(cell.row.share)
    return (cell.row.value, cell.row.unit, share, cell.row.of, cell.row.note, cell.ratio)


@pytest.mark.parametrize(("first", "second"), [*combinations(NAMES, 2)])
def test_a_comparison_of_records_says_the_same(first: str, second: str) -> None:
    runs = [characterisation(LOGS / f"{name}.darshan") for name in (first, second)]
    expected = compare(runs)
    found = compare(from_records([again(run) for run in runs]))
    assert cells_of(found) == cells_of(expected)
    assert largest_differences(found, 1) == largest_differences(expected, 1)


def test_characteristics_that_tell_nothing_are_not_shown() -> None:
    runs = [characterisation(LOGS / f"{name}.darshan") for name in ("posix-read", "mpiio-strided")]
    tables = compare(from_records([again(run) for run in runs]))
    [layers] = (table for table in tables if table.name == "layers")
    shown = [(row["layer"], row["characteristic"]) for row in shown_rows(layers, ("a", "b"))]
    assert shown[0] == ("POSIX", "writes")
    # The runs do not read with MPI-IO, so only POSIX has a row for it.
    assert "MPI-IO" in [layer for layer, _ in shown]
    assert [name for _, name in shown].count("bytes read") == 1


def test_tables_that_only_one_record_has_are_compared_with_nothing() -> None:
    run = characterisation(LOGS / "posix-read.darshan")
    without = {**again(run), "tables": []}
    tables = compare(from_records([again(run), without]))
    assert [table.name for table in tables] == [table["name"] for table in again(run)["tables"]]
    assert all(cells[1].row is None for table in tables for cells in table.rows)
