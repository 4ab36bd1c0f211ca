"""`ioncast slurm import-history` on a real slurmdbd, with a real service."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from scheduler_plugin.collector.state import copied_state
from tests.scheduler_plugin.collector.test_watch_slurm import (
    _DECISION,
    _LOG_OF_RUN,
    Home,
    Site,
    _outcomes_of,
    _runs_of,
)
from tests.support.command import killed_at_the_end
from tests.support.serving import Served, wait_for
from tests.support.slurm import WATCH_USER, Cluster, as_user, cluster

pytestmark = [pytest.mark.slurm, pytest.mark.serving]

_BENCHMARKS = (
    Path(__file__).resolve().parents[3] / "experiments" / "data" / "testbed" / "benchmarks.csv"
)


class Past(Site):
    """A site with measurements, whose watch waits a second for logs."""

    def __init__(self, slurm: Cluster, folder: Path, home: Home) -> None:
        super().__init__(slurm, folder, home)
        self.question = f"/v1/decisions?system={self.system}&user=root&name=hacc&nodes=1"
        self.config.write_text(self.config.read_text().replace("wait_s = 86400", "wait_s = 1"))
        size = ("--system", self.system, "--tasks", "16", "--nodes", "8")
        command = ["bench", "import", str(_BENCHMARKS), *size, "--db", home.database]
        subprocess.run([sys.executable, "-m", "ioncast", *command], check=True, capture_output=True)

    def import_(self, *options: str) -> list[str]:
        """The command, for all jobs since yesterday."""
        since = (date.today() - timedelta(1)).isoformat()
        given = ("--config", str(self.config), "--since", since)
        ioncast = [sys.executable, "-m", "ioncast", "slurm", "import-history", *given]
        return [*as_user(WATCH_USER), *ioncast, *options]

    def imported(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.import_(*options), capture_output=True, text=True, errors="replace", check=False
        )

    def wait_for_accounting(self, jobs: int) -> None:
        """Wait until slurmdbd knows the ends of as many runs, which are seconds ago."""
        query = ("sacct", "-a", "-X", "-n", "-P", "--duplicates", "-S", "now-1days", "-o", "End")

        def are_known() -> bool:
            ends = self.slurm.run(*query).stdout.split()
            newest = max((each for each in ends if each[0].isdigit()), default="")
            clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() - 3))
            return len(ends) == jobs and "Unknown" not in ends and newest < clock

        self.slurm.wait(are_known, "accounts of all jobs")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    folder = tmp_path / "service"
    folder.mkdir()
    return Home(folder)


@pytest.fixture
def past(tmp_path: Path, home: Home) -> Iterator[Past]:
    with cluster(tmp_path / "slurm", nodes=2, rest=True, accounting=True) as slurm:
        yield Past(slurm, tmp_path, home)


def _outcomes(past: Past, served: Served, jobs: list[int]) -> list[list[int]]:
    """Numbers of I/O nodes of the outcomes of each job."""
    return [[io_nodes for _, io_nodes, _ in _outcomes_of(past, served, job)] for job in jobs]


def test_after_the_import_the_next_job_gets_a_decision(past: Past, home: Home) -> None:
    """Jobs of the past ran before there was a service; the import is killed and goes on."""
    slurm = past.slurm
    both = past.logs_by_run("hacc-io-ionodes4-dxt", "periodic-ionodes4")
    twice = past.submit(_LOG_OF_RUN, "-Lionode:2", "--requeue", logs=both)
    slurm.wait_for(twice, "COMPLETED")
    past.put_back(twice)
    slurm.wait_for(twice, "COMPLETED")
    known = past.submit("hacc-io-ionodes4.darshan", "-Lionode:4", "--job-name=hacc")
    unknown = past.submit("multiphase-ionodes0.darshan", b"--job-name=\xff")
    marked = past.submit("multiphase-ionodes4.darshan", "-Lionode:1", "--hold")
    slurm.run("scontrol", "update", f"JobId={marked}", f"AdminComment=ioncast:{_DECISION}")
    slurm.run("scontrol", "release", str(marked))
    without = past.submit("nothing*")
    jobs = [twice, known, unknown, marked, without]
    for job in jobs:
        slurm.wait_for(job, "COMPLETED")
    past.wait_for_accounting(6)

    with home.served() as served:
        assert served.ask(past.question).json["source"] == "default"
        tried = past.imported("--dry-run")
        assert tried.returncode == 0, tried.stderr
        assert tried.stdout.count("would send outcome ") == 4
        assert tried.stdout.count("would send trace ") == 1
        assert not any(_runs_of(past, served, job) for job in jobs)

        with killed_at_the_end(past.import_(), stderr=subprocess.DEVNULL) as first:
            wait_for(lambda: any(_runs_of(past, served, job) for job in jobs), "run")
            first.kill()
        assert first.returncode == -signal.SIGKILL
        # A job that ended meanwhile belongs to the watch.
        done = past.imported()
        assert done.returncode == 0, done.stderr
        assert "6 jobs done, 1 without a log; " in done.stderr
        assert "0 rejected, 0 waiting" in done.stderr
        assert _outcomes(past, served, jobs) == [[2, 2], [4], [], [1], []]
        assert [len(_runs_of(past, served, job)) for job in jobs] == [2, 1, 1, 1, 0]
        assert _outcomes_of(past, served, marked)[0][2] == _DECISION

        # The watch sends jobs of slurmctld again, and the service recognises them.
        watched = past.once()
        assert watched.returncode == 0, watched.stderr
        again = past.imported()
        assert "0 traces and 0 outcomes sent, 0 rejected, 0 waiting" in again.stderr
        assert _outcomes(past, served, jobs) == [[2, 2], [4], [], [1], []]
        assert [len(_runs_of(past, served, job)) for job in jobs] == [2, 1, 1, 1, 0]
        wait_for(lambda: served.ask(past.question).json["source"] == "history", "prepared answer")


def test_a_failure_is_one_line_and_an_exit_code(past: Past, home: Home) -> None:
    future = past.imported("--until", "2001-01-01")
    assert future.returncode == 2
    assert "no job can have ended between --since and --until" in future.stderr
    assert past.imported("--since", "1969-07-20").returncode == 2
    away = past.imported()
    assert away.returncode == 1
    stops, summary = away.stderr.splitlines()
    assert stops.startswith("ioncast: the import stops: ")
    assert "the service cannot be reached" in stops
    assert summary.startswith("ioncast: 0 jobs done, ")
    with home.served():
        past.slurm.stop("slurmrestd")
        (past.folder / "jwt").write_text("not.a.token")
        past.slurm.start("slurmrestd")
        refused = past.imported()
    assert refused.returncode == 1
    assert "the import stops: " in refused.stderr
    assert "not.a.token" not in refused.stderr
    with copied_state(str(past.folder / "state" / "watch-import.sqlite")) as state:
        assert state.count_ended(0, 2**40) == 0
