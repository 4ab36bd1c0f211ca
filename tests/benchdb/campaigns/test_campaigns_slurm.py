"""A campaign whose runs are jobs of a real Slurm, with licences as I/O nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchdb.measurements.exports import export_rows
from benchdb.store.database import open_database, transaction
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


def test_the_runs_are_jobs_that_get_their_io_nodes_as_licences(
    tmp_path: Path, cluster: dict[str, str]
) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "jobs.toml").write_text(CAMPAIGN)
    (tmp_path / "cluster.toml").write_text(PLATFORM.format(root=tmp_path))

    def ioncast(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ioncast", "campaign", *arguments],
            cwd=tmp_path,
            env={**cluster, "IONCAST_DB": str(tmp_path / "bench.sqlite")},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )

    done = ioncast(
        *("run", "jobs.toml", "--platform", "cluster.toml", "--dir", "folder", "--engine", "fio")
    )
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
    status = json.loads(ioncast("status", "folder", "--format", "json").stdout)
    assert (status["done"], status["left"]) == (4, 2)
