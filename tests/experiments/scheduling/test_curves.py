from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.scheduling.curves import BENCHMARKS, shipped_curves
from ioncast.cli import cli
from ioncast.worth.io_curves import stored_curves
from ioncast_base.errors import InputError, UnknownNameError


def imported(location: str, file: Path, system: str = "testbed") -> None:
    options = ["--system", system, "--tasks", "16", "--nodes", "8", "--db", location]
    done = CliRunner().invoke(cli, ["bench", "import", str(file), *options])
    assert done.exit_code == 0, done.output


def test_the_expected_bandwidth_is_bytes_over_the_mean_time() -> None:
    with BENCHMARKS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["name"] == "w-fpp-contig-1m"]
    [curve] = [curve for curve in shipped_curves() if curve.name == "w-fpp-contig-1m"]
    assert list(curve.mib_s) == [0, 1, 2, 4, 8]
    for io_nodes, bandwidth in curve.mib_s.items():
        cell = [row for row in rows if int(row["io_nodes"]) == io_nodes]
        moved = sum(int(row["bytes"]) for row in cell) / 2**20
        time = sum(float(row["time_s"]) for row in cell)
        # The file rounds times to a tenth of a millisecond.
        assert bandwidth == pytest.approx(moved / time, rel=1e-3)


def test_the_shipped_curves_are_those_of_the_testbed() -> None:
    curves = shipped_curves()
    assert len(curves) == 15
    assert {curve.nodes for curve in curves} == {8}
    assert all(curve.forwarded == (1, 2, 4, 8) for curve in curves)


def test_curves_from_the_database_are_the_same(location: str) -> None:
    imported(location, BENCHMARKS)
    stored = stored_curves(location, "testbed")
    ours = sorted(tuple(curve.mib_s.items()) for curve in shipped_curves())
    theirs = sorted(tuple(curve.mib_s.items()) for curve in stored)
    assert [[n for n, _ in cells] for cells in theirs] == [[n for n, _ in cells] for cells in ours]
    for mine, other in zip(ours, theirs, strict=True):
        assert dict(other) == pytest.approx(dict(mine))
    assert {curve.nodes for curve in stored} == {8}
    assert all(curve.name.isdigit() for curve in stored)


def test_an_unknown_system_is_rejected(tmp_path: Path) -> None:
    location = str(tmp_path / "bench.sqlite")
    imported(location, BENCHMARKS)
    with pytest.raises(UnknownNameError):
        stored_curves(location, "mysite")


def test_a_system_without_measurements_with_io_nodes_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "direct.csv"
    file.write_text("io_nodes,bandwidth_mib_s,command\n0,50,ior -w -b 4m -t 1m\n")
    location = str(tmp_path / "bench.sqlite")
    imported(location, file, "mysite")
    with pytest.raises(InputError, match="no measurements with I/O nodes"):
        stored_curves(location, "mysite")
