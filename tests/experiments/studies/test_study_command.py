"""Case studies from end to end, on an emulated platform."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments import datasets
from experiments.datasets import DataSet
from tests.support.emulated import emulated, leftovers, need_platform, small, unique_name

IONCAST = [sys.executable, "-m", "ioncast"]
PATIENCE_S = 300
DESCRIPTION = """\
name = "{name}"
io_nodes = [0, 2]
compute_nodes = {{count = 2, processes = 2}}
storage = {{servers = 2, replicas = 2, memory = "1g"}}
links = {{compute_nodes = "1gbit", io_nodes = "1gbit", storage = "1gbit", burst = "1mb"}}
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a study of two small applications prints; without and with two I/O nodes, twice."""
    folder = tmp_path_factory.mktemp("study") / "single"
    with emulated(small(unique_name(), io_nodes=(0, 2))) as platform:
        done = subprocess.run(
            [
                *[*IONCAST, "experiment", "single", "--platform", platform.name],
                *["--engine", "fio", "--scale", "0.03125", "--repetitions", "2", "--seed", "7"],
                *["--output", str(folder), "--format", "json"],
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    record: dict[str, Any] = json.loads(done.stdout)
    return record


@pytest.fixture(scope="module")
def data(printed: dict[str, Any]) -> DataSet:
    return datasets.read(Path(printed["folder"]))


def test_the_logs_hold_the_phases_of_the_report_but_smaller(data: DataSet) -> None:
    [shared] = data.jobs["single-a"]
    [unique] = data.jobs["single-b"]
    assert (shared.file_access, shared.spatiality, shared.n_files) == ("shared", "contiguous", 1)
    assert (unique.file_access, unique.spatiality, unique.n_files) == ("unique", "contiguous", 4)
    # 128 MiB and 64 MiB by each of 4 processes.
    assert shared.bytes == 4 * (128 << 20) / 32
    assert unique.bytes == 4 * (64 << 20) / 32
    assert {shared.operation, unique.operation} == {"write"}


def test_what_is_in_the_logs_is_benchmarked(data: DataSet) -> None:
    lines = {run.measurement.config.command_line(launcher=True) for run in data.benchmarks}
    assert lines == {
        "mpiexec -n 4 ior -a POSIX -w -b 4m -t 2m",
        "mpiexec -n 4 ior -a POSIX -w -F -b 2m -t 2m",
    }
    cells = [(run.name, run.measurement.io_nodes) for run in data.benchmarks]
    assert len(cells) == 2 * len(set(cells)) == 8


def test_every_application_runs_with_each_number_of_i_o_nodes(data: DataSet) -> None:
    for runs in data.applications.values():
        assert sorted(run.io_nodes for run in runs) == [0, 0, 2, 2]
        assert all(run.bandwidth_mib_s > 0 for run in runs)


def test_the_data_set_says_where_it_is_from(data: DataSet) -> None:
    known = data.provenance
    assert (known.study, known.scale, known.seeds) == ("single", 1 / 32, (7,))
    assert (known.tasks, known.nodes, known.engine) == (4, 2, "fio")
    assert known.platform["io_nodes"] == [0, 2]
    assert known.machine.cores is not None
    assert known.versions.keys() >= {"ioncast", "Python", "GlusterFS", "fio"}
    assert "--seed 7" in known.command
    assert all("Darshan's runtime" in log.source or "writer" in log.source for log in known.logs)


def test_errors_and_choices_are_printed(printed: dict[str, Any]) -> None:
    assert len(printed["applications"]) == 2
    for application in printed["applications"]:
        assert application["prediction"]["runs"]["count"] == 4
        assert application["best"].keys() == {"predicted", "within_tolerance", "measured"}
    assert printed["all"]["prediction"]["regret"] >= 0


def test_the_report_stands_beside_the_measurements(data: DataSet) -> None:
    page = (data.folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>Case study I: one phase of I/O</h1>" in page
    for place in ("Table 2", "Table 3", "Figure 2", "Figure 3"):
        assert f"(RR-9366: {place})" in page


def test_the_published_tables_recompute(data: DataSet) -> None:
    subprocess.run([*IONCAST, "experiment", "check", str(data.folder)], check=True)


def test_results_are_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = subprocess.run(
        [*IONCAST, "experiment", "hacc", "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"ioncast: {tmp_path}: there is something already; name another with --output\n"
    )


def test_a_platform_that_is_not_up_is_told_in_a_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [*IONCAST, "experiment", "hacc", "--platform", "nosuch"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("ioncast: no platform called nosuch is up; ")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_study_that_is_stopped_takes_its_platform_with_it(tmp_path: Path) -> None:
    need_platform()
    name = unique_name()
    description = tmp_path / "platform.toml"
    description.write_text(DESCRIPTION.format(name=name), encoding="utf-8")
    with subprocess.Popen(
        [
            *[*IONCAST, "experiment", "hacc", "--platform", str(description)],
            *["--engine", "fio", "--output", str(tmp_path / "results")],
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as study:
        assert study.stderr is not None
        assert any(line.startswith("benchmarks") for line in study.stderr)
        study.send_signal(signal.SIGTERM)
        said = study.stderr.read()
        assert study.wait(PATIENCE_S) == 130, said
    assert "results is incomplete: remove it" in said
    assert leftovers(name) == []
