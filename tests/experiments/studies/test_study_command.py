"""Case studies from end to end, on an emulated platform."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from experiments import datasets
from experiments.datasets import DataSet
from experiments.platform.emulated import Emulated
from tests.support.command import killed_at_the_end
from tests.support.emulated import emulated, leftovers, small, unique_name, wait_until

pytestmark = pytest.mark.platform

IONCAST = [sys.executable, "-m", "ioncast"]
PATIENCE_S = 900
DESCRIPTION = """\
name = "{name}"
io_nodes = [0, 2]
compute_nodes = {{count = 2, processes = 2}}
storage = {{servers = 2, replicas = 2, memory = "1g"}}
links = {{compute_nodes = "1gbit", io_nodes = "1gbit", storage = "1gbit", burst = "1mb"}}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """A study of two small applications, two runs each with 0 and with 2 I/O nodes."""
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
    return done


@pytest.fixture(scope="module")
def printed(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(done.stdout)
    return record


@pytest.fixture(scope="module")
def data(printed: dict[str, Any]) -> DataSet:
    return datasets.read(Path(printed["folder"]))


def test_the_logs_hold_the_phases_of_the_report_scaled_down(data: DataSet) -> None:
    [shared] = data.jobs["single-a"]
    [unique] = data.jobs["single-b"]
    assert (shared.file_access, shared.spatiality, shared.n_files) == ("shared", "contiguous", 1)
    assert (unique.file_access, unique.spatiality, unique.n_files) == ("unique", "contiguous", 4)
    # At full size, each of 4 processes writes 128 MiB or 64 MiB.
    assert shared.bytes == 4 * (128 << 20) / 32
    assert unique.bytes == 4 * (64 << 20) / 32
    assert {shared.operation, unique.operation} == {"write"}


def test_the_phases_in_the_logs_are_benchmarked(data: DataSet) -> None:
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


def test_the_provenance_of_the_data_set_is_complete(data: DataSet) -> None:
    known = data.provenance
    assert (known.study, known.scale, known.seeds) == ("single", 1 / 32, (7,))
    assert (known.tasks, known.nodes, known.engine) == (4, 2, "fio")
    assert known.platform["io_nodes"] == [0, 2]
    assert known.machine.cores is not None
    assert known.versions.keys() >= {"ioncast", "Python", "GlusterFS", "fio"}
    assert "--seed 7" in known.command
    [source] = {log.source for log in known.logs}
    if shutil.which("darshan-config") and find_spec("mpi4py"):
        assert source == "Darshan's runtime"
    else:
        assert source == "libdarshan-util's writer, with the true counters of the run"


def test_the_number_of_runs_is_printed_first(done: subprocess.CompletedProcess[str]) -> None:
    assert (
        "ioncast: 16 runs: benchmarks: 2, applications: 2, numbers of I/O nodes: 2, repetitions: 2"
    ) in done.stderr.splitlines()


def test_errors_and_choices_are_those_of_the_reruns(printed: dict[str, Any]) -> None:
    means: dict[str, dict[int, float]] = defaultdict(dict)
    runs: dict[tuple[str, int], list[float]] = defaultdict(list)
    table = Path(printed["folder"]) / "applications.csv"
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            runs[row["name"], int(row["io_nodes"])].append(float(row["bandwidth_mib_s"]))
    for (name, n), values in runs.items():
        means[name][n] = fmean(values)
    regrets = []
    assert {one["application"] for one in printed["applications"]} == {"single-a", "single-b"}
    for application in printed["applications"]:
        name, best = application["application"], application["best"]
        measured = means[name]
        assert best["measured"] == max(measured, key=measured.__getitem__)
        predicted = {
            point["io_nodes"]: point["predicted_mib_s"]["mean"] for point in application["curve"]
        }
        assert best["predicted"] == max(predicted, key=predicted.__getitem__)
        regrets.append(1 - measured[best["predicted"]] / max(measured.values()))
        errors = [abs(predicted[n] - rerun) / rerun for n in predicted for rerun in runs[name, n]]
        found = application["prediction"]["runs"]
        assert (found["count"], found["mean"]) == (4, pytest.approx(fmean(errors)))
    assert printed["all"]["prediction"]["regret"] == pytest.approx(fmean(regrets))


def test_the_report_is_in_the_same_folder(data: DataSet) -> None:
    page = (data.folder / "report.html").read_text(encoding="utf-8")
    assert "<h1>Case study I: one phase of I/O</h1>" in page
    for place in ("Table 2", "Table 3", "Figure 2", "Figure 3"):
        assert f"(RR-9366: {place})" in page


def test_the_published_tables_recompute(data: DataSet) -> None:
    subprocess.run([*IONCAST, "experiment", "check", str(data.folder)], check=True)


def test_a_folder_with_files_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    done = subprocess.run(
        [*IONCAST, "experiment", "hacc", "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"ioncast: {tmp_path}: it exists already; name another folder with --output\n"
    )


def test_a_platform_that_is_not_up_is_an_error_of_one_line(tmp_path: Path) -> None:
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


def test_a_scale_that_the_storage_cannot_hold_is_rejected_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [*IONCAST, "experiment", "periodic", "--scale", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "ioncast: platform testbed: periodic-a at scale 1 needs 32g of storage, which has 4g and"
        " keeps 64m free; the largest scale that fits is 0.123\n"
    )
    assert not list(tmp_path.iterdir())


def test_an_empty_folder_is_not_called_incomplete(tmp_path: Path) -> None:
    with emulated(small(unique_name())) as platform:
        done = subprocess.run(
            [
                *[*IONCAST, "experiment", "single", "--platform", platform.name],
                *["--engine", "fio", "--output", str(tmp_path)],
            ],
            env={**os.environ, "PATH": str(Path(sys.executable).parent)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "not found on this machine: fio" in done.stderr
    assert "incomplete" not in done.stderr


@contextmanager
def started(platform: str, folder: Path, *, repetitions: int) -> Iterator[subprocess.Popen[str]]:
    """Start a study that takes longer than the test needs to stop it."""
    with killed_at_the_end(
        [
            *[*IONCAST, "experiment", "hacc", "--platform", platform],
            *["--engine", "fio", "--output", str(folder), "--repetitions", str(repetitions)],
        ],
        stderr=subprocess.PIPE,
        text=True,
    ) as study:
        yield study


def stop(study: subprocess.Popen[str], label: str) -> None:
    """Stop a study in the step that prints the label."""
    assert study.stderr is not None
    assert any(line.startswith(label) for line in study.stderr)
    study.send_signal(signal.SIGTERM)
    said = study.stderr.read()
    assert study.wait(PATIENCE_S) == 130, said
    assert "results is incomplete: continue with `ioncast experiment resume " in said


def hold_second_rerun(platform: Emulated) -> None:
    """Let the ranks of every run after the first rerun wait; one run comes before the reruns."""
    begun = platform.folder / "begun"
    begins = 2 * platform.description.tasks
    others = f'echo >> {begun}; [ "$(wc -l < {begun})" -le {begins} ] || sleep 600'
    rank = platform.folder / "rank"
    rank.write_text(rank.read_text().replace("set -eu\n", f"set -eu\n{others}\n"))


def test_a_study_that_is_stopped_takes_its_platform_with_it(tmp_path: Path) -> None:
    name = unique_name()
    description = tmp_path / "platform.toml"
    description.write_text(DESCRIPTION.format(name=name), encoding="utf-8")
    with started(str(description), tmp_path / "results", repetitions=1000) as study:
        stop(study, "runs: ")
    assert leftovers(name) == []


def test_a_study_that_is_stopped_leaves_a_platform_that_was_up_as_it_was(tmp_path: Path) -> None:
    with emulated(small(unique_name())) as platform:
        before = leftovers(platform.name)
        hold_second_rerun(platform)
        folder = tmp_path / "results"
        with started(platform.name, folder, repetitions=1) as study:
            stop(study, "runs: ")
        assert sorted(leftovers(platform.name)) == sorted(before)
        assert list(platform.node_directory(0, 0).iterdir()) == []


def test_a_study_that_was_killed_continues_on_its_platform(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    with emulated(small(unique_name(), io_nodes=(0, 2))) as platform:
        rank = platform.folder / "rank"
        before = rank.read_text()
        hold_second_rerun(platform)
        with started(platform.name, folder, repetitions=1) as study:
            wait_until(lambda: list(folder.glob("reruns/*")))
            study.kill()
        [kept] = folder.glob("reruns/*")
        result = kept.read_text()
        rank.write_text(before)
        done = subprocess.run(
            [*IONCAST, "experiment", "resume", str(folder)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert kept.read_text() == result
    data = datasets.read(folder)
    assert sorted(run.io_nodes for run in data.applications["hacc-io"]) == [0, 2]
    assert len(data.benchmarks) == 2 * 2
    assert (folder / "report.html").exists()


def test_only_the_folder_of_a_study_can_continue(tmp_path: Path) -> None:
    for damage, said in (
        (None, "not the folder of a study; start one, for instance with `ioncast experiment hacc`"),
        ("{", "study.json: it is damaged: "),
        ('{"study": 3}', "study.json: it is damaged at key `study`: "),
    ):
        if damage is not None:
            (tmp_path / "study.json").write_text(damage, encoding="utf-8")
        done = subprocess.run(
            [*IONCAST, "experiment", "resume", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
