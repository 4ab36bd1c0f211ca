"""A campaign whose runs are jobs of a real Slurm, with licences as I/O nodes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchdb.measurements.exports import export_rows
from benchdb.store.database import open_database, transaction
from tests.support.emulated import wait_until
from tests.support.slurm import slurm

pytestmark = [pytest.mark.slurm, pytest.mark.fio]

CAMPAIGN = """
name = "jobs"
description = "One pattern, as jobs."
repetitions = 2
seed = 7

[[grid]]
api = "POSIX"
operation = "write"
layout = "contiguous"
file_access = "unique"
transfer_size = "64k"
bytes_per_process = "1m"
"""

PLATFORM = """
system = "cluster"
io_nodes = [0, 4, 9]
nodes = 1
processes_per_node = 2
test_directory = "{root}/scratch"
free_space_limit = "1m"
launch = ""

[slurm]
poll_seconds = 1
directives = [
    "--nodes={{nodes}}",
    "--ntasks={{tasks}}",
    "--licenses=ionode:{{io_nodes}}",
    "--time=2",
]
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[dict[str, str]]:
    with slurm(tmp_path / "slurm") as environment:
        yield environment


class Cluster:
    """A real Slurm, with a campaign and a platform in a folder."""

    def __init__(self, root: Path, environment: dict[str, str]) -> None:
        self.root, self.environment = root, environment
        (root / "scratch").mkdir()
        (root / "jobs.toml").write_text(CAMPAIGN)
        (root / "cluster.toml").write_text(PLATFORM.format(root=root))

    @property
    def variables(self) -> dict[str, str]:
        return {**self.environment, "IONCAST_DB": str(self.root / "bench.sqlite")}

    def ioncast(
        self, *arguments: str, within: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*within, sys.executable, "-m", "ioncast", "campaign", *arguments],
            cwd=self.root,
            env=self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    def run(self, *more: str, within: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        place = ("--platform", "cluster.toml", "--dir", "folder")
        return self.ioncast("run", "jobs.toml", *place, *more, within=within)


@pytest.fixture
def site(tmp_path: Path, cluster: dict[str, str]) -> Cluster:
    return Cluster(tmp_path, cluster)


def test_jobs_that_fail_with_the_same_error_stop_the_campaign(site: Cluster) -> None:
    file = site.root / "cluster.toml"
    switch = '\n[io_nodes_switch]\nbefore = "echo no forwarding daemon; exit 3"\n'
    file.write_text(file.read_text().replace("[0, 4, 9]", "[0, 1, 2, 3, 4]") + switch)
    done = site.run("--engine", "fio")
    assert done.returncode == 2
    cause = done.stderr.splitlines()[-1]
    assert "3 runs in a row failed with the same error" in cause
    assert "no forwarding daemon" in cause
    status = json.loads(site.ioncast("status", "folder", "--format", "json").stdout)
    assert status["state"] == "failed"
    assert status["done"] == 0
    # Another job may start before ioncast sees that the third one failed.
    assert 3 <= status["failed"] < status["runs"]


def test_srun_in_an_allocation_that_is_too_small_is_found_before_the_first_run(
    site: Cluster,
) -> None:
    file = site.root / "cluster.toml"
    text, _, _ = file.read_text().partition("[slurm]")
    file.write_text(
        text.replace('launch = ""', 'launch = "srun -n {tasks}"').replace("[0, 4, 9]", "[0]")
        + '[programs]\nior = "true"\n'
    )
    small = site.run("--engine", "ior", within=("salloc", "--quiet", "--ntasks=1"))
    assert small.returncode == 2
    [problem] = [line for line in small.stderr.splitlines() if line.startswith("ioncast: ")]
    assert problem.startswith("ioncast: srun -n 2: cannot start 2 processes: srun: error: ")
    assert "More processors requested than permitted" in problem
    assert not (site.root / "folder").exists()
    # The processes start in a larger one. `true` leaves no measurements, so the runs fail.
    large = site.run("--engine", "ior", within=("salloc", "--quiet", "--ntasks=2"))
    assert large.returncode == 1
    assert "failed 2 times: the benchmark left no output" in large.stdout


def test_the_runs_are_jobs_that_get_their_io_nodes_as_licences(
    site: Cluster, tmp_path: Path, cluster: dict[str, str]
) -> None:
    done = site.run("--engine", "fio")
    # The cluster has eight licences: Slurm rejects a job that asks for nine, so it never runs.
    assert done.returncode == 1, done.stderr
    assert "4 of 6 runs done" in done.stdout
    assert "2 runs did not finish" in done.stdout
    assert "Invalid license specification" in done.stdout
    engine = open_database(tmp_path / "bench.sqlite", create=False)
    with transaction(engine) as connection:
        stored = Counter(row["io_nodes"] for row in export_rows(connection))
    engine.dispose()
    assert stored == {0: 2, 4: 2}
    jobs = subprocess.run(
        ["scontrol", "show", "jobs", "--oneliner"],
        env=cluster,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert jobs.count("Licenses=ionode:4") == 2
    assert jobs.count("JobState=COMPLETED") == 4
    status = json.loads(site.ioncast("status", "folder", "--format", "json").stdout)
    assert (status["done"], status["left"]) == (4, 2)


def test_one_job_of_an_adaptive_campaign_waits_while_another_one_runs(site: Cluster) -> None:
    file, queue = site.root / "cluster.toml", site.root / "queue"
    look = f'squeue --noheader --format="%T %r" >> {queue}; echo >> {queue}'
    switch = f"\n[io_nodes_switch]\nbefore = 'sleep 2; {look}'\n"
    file.write_text(file.read_text().replace("[0, 4, 9]", "[0, 4]") + switch)
    place = ("--platform", "cluster.toml", "--dir", "folder", "--engine", "fio")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ioncast", "campaign", "run", "jobs.toml", *place),
            *("--adaptive", "--regret", "0.000001"),
        ],
        cwd=site.root,
        env=site.variables,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    wait_until(lambda: queue.exists() and "PENDING Dependency" in queue.read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    left = subprocess.run(
        ["squeue", "--noheader", "--states=PENDING,RUNNING"],
        env=site.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert left.stdout == ""
    done = site.ioncast("resume", "folder")
    assert done.returncode == 0, done.stderr
    assert "every cell had all of its repetitions" in done.stdout
    status = json.loads(site.ioncast("status", "folder", "--format", "json").stdout)
    assert (status["done"], status["left"]) == (4, 0)
    looks = queue.read_text().split("\n\n")
    assert all(look.count("RUNNING") <= 1 for look in looks)
