"""`ioncast experiment check`: its output for right and for wrong tables."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner, Result

from experiments.commands import experiment
from ioncast_base.errors import IoncastError

pytestmark = pytest.mark.slow

TESTBED = Path(__file__).resolve().parents[2] / "experiments" / "data" / "testbed"
KEPT = ("r-shared-contig-1m", "w-fpp-contig-1m", "w-shared-strided-64k")


def check(*args: str | Path) -> Result:
    return CliRunner().invoke(experiment, ["check", *map(str, args)])


def keep(path: Path, names: tuple[str, ...]) -> None:
    """Keep only the runs of these names in a table."""
    header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.split(",")[1] in names]
    path.write_text("".join([header, *kept]), encoding="utf-8")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with the testbed's multi-phase application, its three patterns, and tables."""
    folder = tmp_path_factory.mktemp("published") / "small"
    shutil.copytree(TESTBED, folder, ignore=shutil.ignore_patterns("tables"))
    keep(folder / "benchmarks.csv", KEPT)
    keep(folder / "applications.csv", ("multiphase",))
    record = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    record["logs"] = [log for log in record["logs"] if log["application"] == "multiphase"]
    (folder / "provenance.json").write_text(json.dumps(record), encoding="utf-8")
    result = check(folder, "--write")
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    """A copy of the data set, for changes."""
    return Path(shutil.copytree(published, tmp_path / "small"))


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def cell(folder: Path, table: str, column: str, **where: str) -> str:
    with (folder / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        [found] = [row[column] for row in csv.DictReader(file) if where.items() <= row.items()]
    return found


def test_the_shipped_tables_recompute_and_are_good_enough() -> None:
    result = check("--format", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["comparison"]["differences"] for one in found] == [[]] * len(found)
    rows = [row for one in found for row in one["choices"] if row["application"] != "all"]
    assert len(rows) == 12
    assert fmean(float(row["error_of_means"]) for row in rows) <= 0.08
    assert fmean(float(row["regret_of_decision"]) for row in rows) <= 0.05


def test_errors_and_regret_are_printed(folder: Path) -> None:
    result = check(folder)
    assert result.exit_code == 0, result.output
    title, header, _, application, all_, verdict = result.stdout.splitlines()
    assert title.startswith(f"{folder}: 11 tables, ")
    assert {"error_of_means", "regret", "regret_of_decision"} <= set(header.split())
    assert (application.split()[0], all_.split()[0]) == ("multiphase", "all")
    assert verdict == "every published table recomputes"


def test_wrong_cells_and_missing_tables_are_named(folder: Path) -> None:
    mean = cell(folder, "means", "mean_mib_s", name="w-fpp-contig-1m", io_nodes="4")
    change(folder / "tables" / "means.csv", mean, "99.0000")
    estimate = cell(folder, "predictions", "predicted_mib_s", io_nodes="4")
    rounded = f"{float(estimate) + 0.01:.2f}"
    change(folder / "tables" / "predictions.csv", f",{estimate},", f",{rounded},")
    (folder / "tables" / "phases.csv").unlink()
    result = check(folder)
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-3:] == [
        "phases.csv: published: none, recomputed: a table",
        "means.csv: benchmark, w-fpp-contig-1m, 4, mean_mib_s: published: 99.0000,"
        f" recomputed: {mean}",
        "1 cell that a model estimates is off by one in the last digit",
    ]


def test_a_measurement_that_was_changed_shows_in_the_tables(folder: Path) -> None:
    with (folder / "benchmarks.csv").open(encoding="utf-8", newline="") as file:
        first = next(row for row in csv.DictReader(file) if row["name"] == "w-fpp-contig-1m")
    line = f",{first['bandwidth_mib_s']},{first['started']},"
    change(folder / "benchmarks.csv", line, f",1.5,{first['started']},")
    result = check(folder)
    assert result.exit_code == 1
    assert (
        f"means.csv: benchmark, w-fpp-contig-1m, {first['io_nodes']}, mean_mib_s" in result.stdout
    )
    assert "predictions.csv: multiphase" in result.stdout


def test_one_wrong_set_of_several_makes_the_exit_code_1(published: Path, folder: Path) -> None:
    (folder / "tables" / "old.csv").write_text("a\n1\n", encoding="utf-8")
    result = check(folder, published, "--format", "json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)
    assert [one["table"] for one in first["comparison"]["differences"]] == ["old"]
    assert second["comparison"]["differences"] == []


def test_a_folder_that_is_not_a_data_set_is_an_error(tmp_path: Path) -> None:
    result = check(tmp_path)
    assert isinstance(result.exception, IoncastError)
    assert str(result.exception).startswith(f"{tmp_path / 'provenance.json'}: cannot be read")
