"""`ioncast slurm watch` on a real Slurm, with a real service.

It has the rights that docs/slurm.md gives it: a user of its own, any user's token of Slurm, and a
token of the service with the role scheduler.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.store.tokens import add_token
from ioncast_base.times import in_utc
from scheduler_plugin.collector.state import copied_state
from tests.support.command import killed_at_the_end
from tests.support.serving import Served, running, wait_for
from tests.support.slurm import (
    WATCH_USER,
    Cluster,
    as_user,
    cluster,
    give_secret,
    open_to_all,
)

pytestmark = [pytest.mark.slurm, pytest.mark.serving]

_LOGS = Path(__file__).resolve().parents[3] / "experiments" / "data" / "testbed" / "logs"
_DECISION = "04a94459990f44be8a32fd781700b04e"
_ONE_JOB = _LOGS.parents[3] / "tests" / "summario" / "fixtures" / "programs"
# It copies genuine logs to the place where Darshan would write them, under Darshan's names.
_JOB = """\
#!/bin/sh
touch {folder}/began.$SLURM_JOB_ID
while [ ! -e {awaited} ]; do sleep 0.1; done
set -- $(date '+%Y/%-m/%-d %-m-%-d %-H %-M %-S')
day={folder}/logs/$1
mkdir -p $day
second=$(($3 * 3600 + $4 * 60 + $5))
number=0
for source in {sources}; do
    number=$((number + 1))
    log=$day/root_app_id$SLURM_JOB_ID-$$_$2-$second-$number
    cp $source $log.darshan_partial
    mv $log.darshan_partial ${{log}}_1.darshan
done
while [ -e {lasting} ]; do sleep 0.1; done
"""
# In the first run of a job, and after it was put back into the queue.
_LOG_OF_RUN = "${SLURM_RESTART_COUNT:-0}.darshan"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("watch") / "slurm", rest=True) as found:
        yield found


class Home:
    """The folder of a service, with the watch's token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = str(folder / "ioncast.sqlite")
        with opened_database(self.database) as opened, transaction(opened, write=True) as inside:
            self.token = add_token(inside, "watch", "scheduler")
        open_to_all(folder)

    def served(self) -> AbstractContextManager[Served]:
        # One worker: of two, one could know the token later than the other.
        limit = {"IONCAST_REQUESTS_PER_MINUTE": "100000"}
        told = ("--db", self.database, "--workers", "1")
        return running(self.folder, *told, environment=limit)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("service"))


@pytest.fixture(scope="module")
def served(home: Home) -> Iterator[Served]:
    """The service of the tests that do not stop it; each test has its own system."""
    with home.served() as service:
        yield service


class Site:
    """A cluster, a system of a service, and the settings of a watch for both."""

    def __init__(self, slurm: Cluster, folder: Path, home: Home) -> None:
        self.slurm = slurm
        self.folder = folder
        self.system = f"system{next(_numbers)}"
        give_secret(folder / "token", home.token, WATCH_USER)
        give_secret(folder / "jwt", slurm.token(WATCH_USER), WATCH_USER)
        open_to_all(folder)
        (folder / "logs").mkdir()
        (folder / "state").mkdir()
        shutil.chown(folder / "state", WATCH_USER)
        self.config = folder / "slurm.toml"
        self.config.write_text(
            f"""
            system = "{self.system}"
            [slurmrestd]
            address = "unix:{slurm.rest}"
            user = "{WATCH_USER}"
            token_file = "{folder}/jwt"
            timeout_s = 60
            [service]
            address = "unix:{home.folder}/ioncast.sock"
            token_file = "{folder}/token"
            [darshan]
            folder = "{folder}/logs"
            wait_s = 86400
            [watch]
            state = "{folder}/state/watch.sqlite"
            period_s = 0.3
            """
        )

    def submit(
        self,
        source: str,
        *options: str | bytes,
        awaited: Path = Path("/"),
        logs: Path = _LOGS,
        lasting: Path = Path("/never"),
    ) -> int:
        """Submit a job that writes the logs that a pattern names.

        It waits for a file before, and ends when another file does not exist any more.
        """
        told = {"folder": self.folder, "sources": logs / source, "awaited": awaited}
        told["lasting"] = lasting
        return self.slurm.submit(*options, script=_JOB.format(**told))

    def watch(self, *options: str) -> list[str]:
        ioncast = [sys.executable, "-m", "ioncast", "slurm", "watch", "--config", str(self.config)]
        return [*as_user(WATCH_USER), *ioncast, *options]

    def once(self, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.watch("--once", *options), capture_output=True, text=True, check=False
        )

    def logs_by_run(self, *names: str) -> Path:
        """A folder with the log of each run of a job; no two runs write the same log."""
        folder = self.folder / "by-run"
        folder.mkdir()
        for number, name in enumerate(names):
            shutil.copy(_LOGS / f"{name}.darshan", folder / f"{number}.darshan")
        return folder

    def wait_for_logs(self, job: int, count: int) -> None:
        """Wait until a job has written as many logs."""
        logs = self.folder / "logs"
        wait_for(lambda: len(list(logs.rglob(f"*_id{job}-*_1.darshan"))) == count, "log")

    def start_of(self, job: int) -> str:
        """The start of a job as scontrol prints it, in the form of the service."""
        local = datetime.fromisoformat(self.slurm.job(job)["StartTime"])
        return in_utc(local.astimezone(timezone.utc))

    def put_back(self, job: int) -> None:
        """Put a job back into the queue, and wait until it starts again."""
        self.slurm.run("scontrol", "requeue", str(job))
        # Slurm would wait two minutes. slurmd launches no job that it killed in the same second.
        soon = ("scontrol", "update", f"JobId={job}", "StartTime=now+3")
        self.slurm.wait(lambda: self.slurm.run(*soon, check=False).returncode == 0, "new start")
        started = {"RUNNING", "COMPLETED"}
        self.slurm.wait(lambda: self.slurm.job(job)["JobState"] in started, "start")

    def is_followed(self, job: int) -> bool:
        """Whether the watch's state has a run of the job that is running."""
        with copied_state(str(self.folder / "state" / "watch.sqlite")) as state:
            return job in {run.id for run in state.running()}


@pytest.fixture
def site(slurm: Cluster, tmp_path: Path, home: Home, served: Served) -> Site:
    return Site(slurm, tmp_path, home)


@pytest.fixture
def own_home(tmp_path: Path) -> Home:
    """The folder of a service that a test starts itself."""
    folder = tmp_path / "service"
    folder.mkdir()
    return Home(folder)


def _outcomes_of(site: Site, served: Served, job: int) -> list[tuple[str, int, str | None]]:
    """Start, number of I/O nodes and decision of each outcome of a job id."""
    items = served.ask(f"/v1/outcomes?system={site.system}").json["items"]
    return sorted(
        (item["started"], item["io_nodes"], item["decision_id"])
        for item in items
        if item["job_id"] == str(job)
    )


def _outcomes(site: Site, served: Served) -> dict[str, int]:
    items = served.ask(f"/v1/outcomes?system={site.system}").json["items"]
    found = {item["job_id"]: item["io_nodes"] for item in items}
    assert len(found) == len(items)
    return found


def _all_runs(site: Site, served: Served) -> list[dict[str, Any]]:
    applications = served.ask(f"/v1/applications?system={site.system}").json["items"]
    paths = [f"/v1/applications/{each['id']}/runs" for each in applications]
    return [run for path in paths for run in served.ask(path).json["items"]]


def _runs_of(site: Site, served: Served, job: int) -> list[int]:
    """The ids of the stored runs of a job id."""
    return [run["id"] for run in _all_runs(site, served) if run["job_id"] == str(job)]


def _runs(site: Site, served: Served) -> dict[str, int | None]:
    runs = _all_runs(site, served)
    found = {run["job_id"]: run["io_nodes"] for run in runs}
    assert len(found) == len(runs)
    return found


@pytest.mark.promise("watch-killed")
def test_jobs_are_reported_through_restarts_of_slurm_the_service_and_the_watch(
    slurm: Cluster, tmp_path: Path, own_home: Home
) -> None:
    site = Site(slurm, tmp_path, own_home)
    log = (site.folder / "watch.log").open("ab")
    with log, own_home.served() as served, killed_at_the_end(site.watch(), stderr=log) as first:
        direct = site.submit("periodic-ionodes0.darshan", "--hold")
        slurm.run("scontrol", "update", f"JobId={direct}", f"AdminComment=ioncast:{_DECISION}")
        slurm.run("scontrol", "release", str(direct))
        unknown = site.submit("multiphase-ionodes0.darshan")
        wait_for(lambda: len(_runs(site, served)) == 2, "two runs")
        assert _runs(site, served) == {str(direct): 0, str(unknown): None}
        assert _outcomes(site, served) == {str(direct): 0}
        [outcome] = served.ask("/v1/outcomes").json["items"]
        assert outcome["decision_id"] == _DECISION

        go = site.folder / "go"
        meanwhile = site.submit("hacc-io-ionodes4.darshan", "-Lionode:4", awaited=go)
        wait_for((site.folder / f"began.{meanwhile}").exists, "job that runs")
        slurm.stop("slurmctld")
        go.touch()
        logs = site.folder / "logs"
        wait_for(lambda: list(logs.rglob(f"*_id{meanwhile}-*_1.darshan")), "log")
        slurm.start("slurmctld")
        wait_for(lambda: str(meanwhile) in _outcomes(site, served), "outcome")
        assert _outcomes(site, served)[str(meanwhile)] == 4

        array = site.submit("multiphase-ionodes4.darshan", "--array=7", "-Lionode:2")
        task = slurm.job(array)["JobId"]
        wait_for(lambda: task in _outcomes(site, served), "outcome")
        assert _outcomes(site, served)[task] == 2

        first.kill()
        first.wait()
    while_away = site.submit("periodic-ionodes4.darshan", "-Lionode:1")
    slurm.wait_for(while_away, "COMPLETED")
    log = (site.folder / "watch.log").open("ab")
    with log, killed_at_the_end(site.watch(), stderr=log) as second:
        wait_for(lambda: "sending logs fails" in (site.folder / "watch.log").read_text(), "line")
        with own_home.served() as served:
            # The watch asks a service that does not answer once a minute.
            wait_for(lambda: _outcomes(site, served).get(str(while_away)) == 1, "outcome", 300)
            assert len(_runs(site, served)) == 5
            assert len(_outcomes(site, served)) == 4
            second.send_signal(signal.SIGTERM)
            assert second.wait(60) == 0
    lines = (site.folder / "watch.log").read_text().splitlines()
    assert all(line.startswith("ioncast: ") for line in lines), lines
    assert f"ioncast: job {direct} of root: 1 outcome sent, 0 I/O nodes" in lines
    assert f"ioncast: job {unknown} of root: 1 trace sent, I/O nodes unknown" in lines
    assert not [line for line in lines if "slurmdbd" in line]


def test_the_logs_of_a_jobs_processes_are_one_run_and_those_of_its_steps_several(
    site: Site, served: Served
) -> None:
    forked = site.submit("fork-workers-*.darshan", "-Lionode:2", logs=_ONE_JOB)
    both = site.submit("*-workers-*.darshan", "-Lionode:1", logs=_ONE_JOB)
    for job in (forked, both):
        site.slurm.wait_for(job, "COMPLETED")
    done = site.once()
    assert done.returncode == 0, done.stderr
    [application] = served.ask(f"/v1/applications?system={site.system}").json["items"]
    runs = served.ask(f"/v1/applications/{application['id']}/runs").json["items"]
    # The logs of both jobs are the same files, and the service knows them.
    assert [(run["job_id"], run["tasks"], run["io_nodes"]) for run in runs[1:]] == [
        (str(forked), 1, 2)
    ]
    assert sum(phase["bytes"] for phase in runs[1]["phases"]) == 3_001_002
    assert runs[0]["job_id"] == str(both)
    assert _outcomes(site, served) == {str(forked): 2, str(both): 1}


def test_a_running_job_that_is_put_back_into_the_queue_has_two_outcomes(
    site: Site, served: Served
) -> None:
    """The watch is killed while the first run is running, and starts after the second one."""
    stay = site.folder / "stay"
    stay.touch()
    logs = site.logs_by_run("hacc-io-ionodes4", "periodic-ionodes4")
    with killed_at_the_end(site.watch(), stderr=subprocess.DEVNULL) as first:
        job = site.submit(_LOG_OF_RUN, "-Lionode:4", "--requeue", logs=logs, lasting=stay)
        mark = f"AdminComment=ioncast:{_DECISION}"
        site.slurm.run("scontrol", "update", f"JobId={job}", mark)
        site.wait_for_logs(job, 1)
        wait_for(lambda: site.is_followed(job), "run in the state")
        first.kill()
    starts = [site.start_of(job)]
    site.put_back(job)
    site.wait_for_logs(job, 2)
    starts.append(site.start_of(job))
    stay.unlink()
    site.slurm.wait_for(job, "COMPLETED")
    assert not _outcomes_of(site, served, job)
    done = site.once()
    assert done.returncode == 0, done.stderr
    # The job keeps its administrator's comment.
    assert _outcomes_of(site, served, job) == [(start, 4, _DECISION) for start in starts]
    again = site.once()
    assert "0 traces and 0 outcomes sent, 0 rejected, 0 waiting" in again.stderr
    assert len(_outcomes_of(site, served, job)) == 2


def test_a_finished_job_that_is_put_back_into_the_queue_has_two_outcomes(
    site: Site, served: Served
) -> None:
    """The watch follows both runs, and is killed between them."""
    logs = site.logs_by_run("hacc-io-ionodes4", "periodic-ionodes4")
    log = (site.folder / "watch.log").open("ab")
    with log:

        def outcomes_told() -> int:
            # The service knows an outcome before the watch tells it, which the end could prevent.
            lines = (site.folder / "watch.log").read_text()
            return lines.count(f"job {job} of root: 1 outcome sent, 2 I/O nodes")

        with killed_at_the_end(site.watch(), stderr=log) as first:
            job = site.submit(_LOG_OF_RUN, "-Lionode:2", "--requeue", logs=logs)
            wait_for(lambda: outcomes_told() == 1, "outcome")
            starts = [site.start_of(job)]
            site.put_back(job)
            first.kill()
        with killed_at_the_end(site.watch(), stderr=log) as second:
            wait_for(lambda: outcomes_told() == 2, "outcome of the second run")
            starts.append(site.start_of(job))
            second.terminate()
        assert [start for start, *_ in _outcomes_of(site, served, job)] == starts
        assert len(_runs_of(site, served, job)) == 2
        assert "rejected (" not in (site.folder / "watch.log").read_text()


@pytest.mark.promise("watch-away")
def test_both_runs_of_a_job_are_known_from_slurmdbd_if_no_watch_ran(
    tmp_path: Path, home: Home, served: Served
) -> None:
    with cluster(tmp_path / "slurm", nodes=1, rest=True, accounting=True) as slurm:
        site = Site(slurm, tmp_path, home)
        logs = site.logs_by_run("hacc-io-ionodes4", "periodic-ionodes4")
        assert site.once().returncode == 0
        job = site.submit(_LOG_OF_RUN, "-Lionode:2", "--requeue", logs=logs)
        slurm.wait_for(job, "COMPLETED")
        starts = [site.start_of(job)]
        site.put_back(job)
        slurm.wait_for(job, "COMPLETED")
        starts.append(site.start_of(job))
        site.wait_for_logs(job, 2)
        done = site.once()
        assert done.returncode == 0, done.stderr
        found = _outcomes_of(site, served, job)
        assert [(start, count) for start, count, _ in found] == [(each, 2) for each in starts]


def test_a_job_id_that_comes_again_after_slurm_lost_its_state_is_another_job(
    tmp_path: Path, home: Home, served: Served
) -> None:
    with cluster(tmp_path / "slurm", nodes=1, rest=True) as slurm:
        site = Site(slurm, tmp_path, home)
        first = site.submit("hacc-io-ionodes4.darshan", "-Lionode:4")
        slurm.wait_for(first, "COMPLETED")
        starts = [site.start_of(first)]
        assert site.once().returncode == 0
        slurm.stop("slurmctld")
        state = slurm.folder / "state"
        shutil.rmtree(state)
        state.mkdir()
        shutil.chown(state, "slurm")
        slurm.start("slurmctld")
        slurm.wait(lambda: "idle" in slurm.run("sinfo", "-ho%t").stdout, "idle node")
        second = site.submit("periodic-ionodes4.darshan", "-Lionode:1")
        slurm.wait_for(second, "COMPLETED")
        assert second == first
        starts.append(site.start_of(second))
        for _ in range(2):
            assert site.once().returncode == 0
        found = _outcomes_of(site, served, first)
        assert [(start, count) for start, count, _ in found] == [(starts[0], 4), (starts[1], 1)]


def test_one_round_can_be_tried_without_sending_and_then_done(site: Site, served: Served) -> None:
    job = site.submit("hacc-io-ionodes4-dxt.darshan", "-Lionode:3", "--job-name=a\x1b[2J\nb")
    site.slurm.wait_for(job, "COMPLETED")
    tried = site.once("--dry-run")
    assert tried.returncode == 0, tried.stderr
    assert f"would send outcome root_app_id{job}-" in tried.stdout
    assert f"job_id={job} user=root name='a\\x1b[2J\\nb' nodes=1 io_nodes=3" in tried.stdout
    assert f"ioncast: job {job} of root: 1 outcome would be sent, 3 I/O nodes" in tried.stderr
    assert "0 traces and 1 outcome would be sent, 0 rejected, 0 waiting" in tried.stderr
    assert " sent" not in tried.stderr.replace("would be sent", "")
    assert not _runs(site, served)
    done = site.once()
    assert done.returncode == 0
    assert "0 traces and 1 outcome sent, 0 rejected, 0 waiting" in done.stderr
    assert _outcomes(site, served) == {str(job): 3}
    again = site.once()
    assert again.returncode == 0
    assert "0 traces and 0 outcomes sent, 0 rejected, 0 waiting" in again.stderr


@pytest.mark.promise("watch-log-rejected")
def test_texts_of_a_user_in_a_job_hide_no_other_job(site: Site, served: Served) -> None:
    strange = site.folder / os.fsdecode(b"folder \xff")
    strange.mkdir()
    jobs = [
        site.submit(f"{log}.darshan", "-Lionode:4", option)
        for log, option in (
            ("periodic-ionodes4", b"--job-name=\xff"),
            ("multiphase-ionodes4", b"--comment=a \xfe b"),
            ("hacc-io-ionodes4", b"--chdir=" + os.fsencode(strange)),
            ("hacc-io-ionodes4-dxt", '--job-name=\x01"\\'),
        )
    ]
    for job in jobs:
        site.slurm.wait_for(job, "COMPLETED")
    done = site.once()
    assert done.returncode == 0, done.stderr
    assert _outcomes(site, served) == {str(job): 4 for job in jobs}


def test_a_job_of_which_nothing_was_decided_is_not_said_to_have_had_none(
    site: Site, served: Served
) -> None:
    # The plugin gives a job that the service does not know neither a mark nor licences.
    job = site.submit("periodic-ionodes0.darshan")
    site.slurm.wait_for(job, "COMPLETED")
    done = site.once()
    assert f"job {job} of root: 1 trace sent, I/O nodes unknown" in done.stderr
    assert _runs(site, served) == {str(job): None}


@pytest.mark.promise("watch-log-rejected")
def test_a_rejected_log_is_not_a_failure(site: Site) -> None:
    job = site.submit(str(site.config))
    site.slurm.wait_for(job, "COMPLETED")
    done = site.once()
    assert f"job {job} of root: its trace is rejected" in done.stderr
    assert "1 rejected, 0 waiting" in done.stderr
    assert done.returncode == 0


_EMPTY = "ioncast: 0 jobs done, 0 without a log; 0 traces and 0 outcomes"


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_service_that_cannot_be_used_is_found_out_with_nothing_to_send(
    slurm: Cluster, tmp_path: Path, own_home: Home, options: tuple[str, ...]
) -> None:
    site = Site(slurm, tmp_path, own_home)
    away = site.once(*options)
    (site.folder / "token").write_text("ion_wrong")
    with own_home.served():
        refused = site.once(*options)
    for done, said in ((away, "the service cannot be reached"), (refused, "answers 401")):
        error, summary = done.stderr.splitlines()
        assert error.startswith("ioncast: sending logs fails: ")
        assert said in error
        assert summary.startswith(_EMPTY)
        assert done.returncode == 1
    assert "ion_wrong" not in refused.stderr


@pytest.mark.promise("watch-second-starts")
def test_a_second_watch_on_a_state_is_refused_in_one_line(site: Site) -> None:
    with killed_at_the_end(site.watch(), stderr=subprocess.PIPE) as first:
        assert first.stderr is not None
        assert b"following jobs of" in first.stderr.readline()
        second = site.once()
        first.terminate()
        assert first.wait() == 0
    assert second.returncode == 2
    assert second.stderr.count("\n") == 1
    assert "another watch uses this state" in second.stderr


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda site: (site.folder / "logs").rmdir(), "the folder of the logs cannot be read"),
        (lambda site: (site.folder / "jwt").unlink(), "jwt: cannot be read: No such file"),
        (lambda site: site.config.write_text("system = 3\n"), "slurm.toml:1: key `system`"),
    ],
)
def test_a_wrong_setting_is_an_error_of_one_line(
    site: Site, spoil: Callable[[Site], None], said: str
) -> None:
    spoil(site)
    done = site.once()
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_token_that_slurm_refuses_is_said(site: Site) -> None:
    (site.folder / "jwt").write_text("not.a.token")
    for options in ((), ("--dry-run",)):
        done = site.once(*options)
        assert done.returncode == 1
        assert done.stderr.count("following jobs fails") == 1
        assert "not.a.token" not in done.stderr


def test_the_overview_shows_slurms_io_nodes_and_waiting_jobs(
    slurm: Cluster, tmp_path: Path, own_home: Home
) -> None:
    site = Site(slurm, tmp_path, own_home)
    # The cluster has 8 licences of ionode.
    end = site.folder / "until"
    end.touch()
    with own_home.served() as served:
        runs = site.submit("none*", "-Lionode:7", lasting=end)
        wait_for((site.folder / f"began.{runs}").exists, "job that runs")
        waits = site.submit("none*", "-Lionode:2")
        held = site.submit("none*", "--hold")
        site.slurm.wait(lambda: site.slurm.job(waits)["Reason"] == "Licenses", "reason")
        done = site.once()
        assert done.returncode == 0, done.stderr
        page = served.ask("/", headers={"Accept": "text/html"}).body.decode()
        site.slurm.run("scancel", str(held), str(waits), str(runs))
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    assert "7 of 8 I/O nodes in use, 2 waiting jobs, 1 of them for I/O nodes" in words
    assert "no arbiter" in words
