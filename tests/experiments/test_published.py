"""Published tables compared with new ones: equal cells, rounding, and differences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.published import Difference, PrintedTable, compare, publish
from ioncast_base.errors import InputError

EXACT = PrintedTable(
    "means",
    (
        {"name": "write", "io_nodes": "0", "mean": "12.50"},
        {"name": "write", "io_nodes": "4", "mean": "50.25"},
    ),
    keys=("name", "io_nodes"),
)
ESTIMATED = replace(EXACT, name="predictions", estimated=True)


def with_mean(table: PrintedTable, text: str) -> PrintedTable:
    first, second = table.rows
    return replace(table, rows=(first, {**second, "mean": text}))


def test_tables_that_were_just_published_have_no_difference(tmp_path: Path) -> None:
    publish(tmp_path, [EXACT, ESTIMATED])
    found = compare(tmp_path, [EXACT, ESTIMATED])
    assert (found.cells, found.rounded, found.differences) == (12, 0, ())


def test_a_published_table_is_csv(tmp_path: Path) -> None:
    publish(tmp_path, [EXACT])
    assert (tmp_path / "tables" / "means.csv").read_bytes() == (
        b"name,io_nodes,mean\nwrite,0,12.50\nwrite,4,50.25\n"
    )


def test_publishing_removes_other_tables(tmp_path: Path) -> None:
    publish(tmp_path, [EXACT, ESTIMATED])
    publish(tmp_path, [EXACT])
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["means.csv"]


def test_a_cell_that_differs_is_named_by_table_row_and_column(tmp_path: Path) -> None:
    publish(tmp_path, [EXACT])
    found = compare(tmp_path, [with_mean(EXACT, "50.26")])
    assert found.differences == (Difference("means", "write, 4", "mean", "50.25", "50.26"),)


@pytest.mark.parametrize("mean", ["50.24", "50.26"])
def test_an_estimate_may_be_off_by_one_in_the_last_digit(tmp_path: Path, mean: str) -> None:
    publish(tmp_path, [ESTIMATED])
    found = compare(tmp_path, [with_mean(ESTIMATED, mean)])
    assert (found.rounded, found.differences) == (1, ())


@pytest.mark.parametrize("mean", ["50.23", "50.27", "50.3", "50", "", "nan", "measured"])
def test_an_estimate_may_not_be_off_by_more(tmp_path: Path, mean: str) -> None:
    publish(tmp_path, [ESTIMATED])
    found = compare(tmp_path, [with_mean(ESTIMATED, mean)])
    assert found.rounded == 0
    assert [one.recomputed for one in found.differences] == [mean]


def test_numbers_of_io_nodes_are_never_rounding(tmp_path: Path) -> None:
    publish(tmp_path, [with_mean(ESTIMATED, "4")])
    assert len(compare(tmp_path, [with_mean(ESTIMATED, "5")]).differences) == 1


def test_missing_and_additional_tables_and_rows_are_differences(tmp_path: Path) -> None:
    shorter = replace(EXACT, rows=EXACT.rows[:1])
    publish(tmp_path, [EXACT])
    assert compare(tmp_path, []).differences == (Difference("means", "", "", "a table", "none"),)
    assert compare(tmp_path, [shorter]).differences == (
        Difference("means", "write, 4", "", "a row", "none"),
    )
    publish(tmp_path, [shorter])
    assert compare(tmp_path, [EXACT, ESTIMATED]).differences == (
        Difference("means", "write, 4", "", "none", "a row"),
        Difference("predictions", "", "", "none", "a table"),
    )


def test_other_columns_are_one_difference(tmp_path: Path) -> None:
    publish(tmp_path, [EXACT])
    renamed = replace(EXACT, rows=tuple({**row, "runs": "6"} for row in EXACT.rows))
    assert compare(tmp_path, [renamed]).differences == (
        Difference("means", "header", "", "name, io_nodes, mean", "name, io_nodes, mean, runs"),
    )


@pytest.mark.parametrize("row", ['"write', "write,0", "write,0,12.50,13"])
def test_a_published_table_that_is_not_csv_is_an_error(tmp_path: Path, row: str) -> None:
    publish(tmp_path, [EXACT])
    path = tmp_path / "tables" / "means.csv"
    path.write_text(f"name,io_nodes,mean\n{row}", encoding="utf-8")
    with pytest.raises(InputError, match=r"means\.csv:2: this is not a CSV file"):
        compare(tmp_path, [EXACT])
