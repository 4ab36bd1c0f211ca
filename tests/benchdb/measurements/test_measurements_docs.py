"""docs/measurements.md describes all columns of the database and the export; its examples run."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import BigInteger, Boolean, Column, Engine, Float, Integer, String, Table, Text

import ioncast.service.store.tables  # noqa: F401 - the tables of the service
from benchdb.commands import bench
from benchdb.measurements.exports import EXPORT_COLUMNS
from benchdb.store.database import NEWEST
from benchdb.store.schema import metadata

pytestmark = pytest.mark.both_databases

PROJECT = Path(__file__).resolve().parents[3]
TEXT = (PROJECT / "docs/measurements.md").read_text(encoding="utf-8")
BENCHMARKS = PROJECT / "experiments/data/testbed/benchmarks.csv"


def section(heading: str) -> str:
    level = heading.split(maxsplit=1)[0]
    return re.split(rf"^#{{1,{len(level)}}} ", TEXT.split(f"{heading}\n", 1)[1], flags=re.M)[0]


def rows_of_table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def type_of(column: Column[object]) -> str:
    if isinstance(column.type, Text):
        return "text"
    if isinstance(column.type, String):
        return f"text ({column.type.length})"
    # The order matters, because BigInteger is a subclass of Integer.
    kinds = {Boolean: "flag", BigInteger: "large", Integer: "whole", Float: "float"}
    # A foreign key has the type of the column that it refers to.
    referred = next((key.column for key in column.foreign_keys), column)
    return next(name for kind, name in kinds.items() if isinstance(referred.type, kind))


@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_every_column_is_documented_with_its_type(table: Table) -> None:
    documented = [tuple(row[:3]) for row in rows_of_table(section(f"### `{table.name}`"))]
    assert documented == [
        (f"`{column.name}`", type_of(column), "yes" if column.nullable else "no")
        for column in table.columns
    ]


def test_every_column_of_the_export_is_documented_in_its_order() -> None:
    names = [
        name
        for columns, _ in rows_of_table(section("## Export"))
        for name in re.findall(r"`(\w+)`", columns)
    ]
    assert names == list(EXPORT_COLUMNS)


def test_the_version_is_documented() -> None:
    assert f"The version of the tables is `{NEWEST}`" in TEXT


@pytest.fixture
def filled(database: Engine) -> Engine:
    url = database.url.render_as_string(hide_password=False)
    args = ["import", str(BENCHMARKS), "--system", "testbed", "--db", url]
    assert CliRunner().invoke(bench, args).exit_code == 0
    return database


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_the_example_in_sql_runs_on_both_databases(filled: Engine) -> None:
    [means] = examples("sql")
    with filled.connect() as connection:
        points = connection.exec_driver_sql(means).mappings().all()
        assert sum(row["repetitions"] for row in points) == 440
        # 15 configurations, each with 0, 1, 2, 4 and 8 I/O nodes.
        assert len(points) == 15 * 5


def test_the_example_in_python_runs(
    filled: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = filled.url.render_as_string(hide_password=False)
    path = tmp_path / "measurements.csv"
    result = CliRunner().invoke(bench, ["export", "--output", str(path), "--db", url])
    assert result.exit_code == 0
    monkeypatch.chdir(tmp_path)
    [example] = examples("python")
    printed = io.StringIO()
    names: dict[str, object] = {}
    with redirect_stdout(printed):
        exec(example, names)  # noqa: S102
    table = names["curves"].unstack("io_nodes")  # type: ignore[attr-defined]
    assert table.shape == (15, 5)
    assert not table.isna().any().any()
    assert "testbed" in printed.getvalue()
