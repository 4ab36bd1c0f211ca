"""Plugin, Slurm, watch, service and arbiter together, all of them real.

A submission is decided, its job runs and writes a Darshan log, the watch sends the log, and the
next submission is decided from this run.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.store.tokens import add_token
from scheduler_plugin.arbiter.heartbeat import HOLD_S
from scheduler_plugin.marks import mark_of
from tests.support.command import killed_at_the_end
from tests.support.serving import Served, running, wait_for
from tests.support.slurm import Cluster, cluster, version

pytestmark = [pytest.mark.slurm, pytest.mark.serving]

PROJECT = Path(__file__).resolve().parents[2]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
LUA = PROJECT / "scheduler_plugin" / "lua"
PROGRAM = "hacc_io_write_posix_fpp"
# Number of I/O nodes for unknown jobs.
DEFAULT = 2

SETTINGS = """
return {{
    mode = "on",
    address = "unix:{socket}",
    system = "testbed",
    pool = 8,
    default = {default},
    partitions = {{ shared = {{ mode = "arbitrate" }} }},
    heartbeat = "{folder}/run/heartbeat",
    token_file = "{folder}/token",
    -- Machines that run tests are slow.
    deadline_ms = 10000,
}}
"""
WATCH = """
system = "testbed"
[slurmrestd]
address = "unix:{rest}"
user = "root"
token_file = "{folder}/jwt"
[service]
address = "unix:{socket}"
token_file = "{folder}/token"
[darshan]
folder = "{folder}/logs"
layout = "."
[watch]
state = "{folder}/watch.sqlite"
[arbitrate]
period_s = 0.5
heartbeat = "{folder}/run/heartbeat"
lock = "{folder}/lock"
"""
SLURM_CONF = """
JobSubmitPlugins=lua
PartitionName=shared Nodes=ALL State=UP MaxTime=10
PrologSlurmctld={folder}/hooks/prolog_slurmctld.sh
EpilogSlurmctld={folder}/hooks/epilog_slurmctld.sh
TaskProlog={folder}/hooks/task_prolog.sh
"""
SUBMISSION = ("--job-name=hacc", "--nodes=4", "--ntasks=8")
QUESTION = f"/v1/decisions?system=testbed&user=nobody&executable={PROGRAM}&nodes=4&tasks=8"
# In place of the application: it copies a genuine log to the place where Darshan would write it.
APPLICATION = """#!/bin/sh
echo "$ION_COUNT" > "$1/ion_count.$SLURM_JOB_ID"
logs=$1/logs
set -- $(date '+%-m-%-d %-H %-M %-S')
second=$(($2 * 3600 + $3 * 60 + $4))
cp {log} "$logs/nobody_{program}_id$SLURM_JOB_ID-$$_$1-$second-7_1.darshan"
"""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # Other users cannot read pytest's folders.
    with TemporaryDirectory(prefix="end-to-end-") as name:
        path = Path(name)
        path.chmod(0o777)
        (path / "logs").mkdir()
        (path / "logs").chmod(0o777)
        log = shutil.copy(TESTBED / "logs" / "hacc-io-ionodes4.darshan", path / "run.darshan")
        Path(log).chmod(0o644)
        program = path / PROGRAM
        program.write_text(APPLICATION.format(log=log, program=PROGRAM))
        program.chmod(0o755)
        yield path


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    """The service, with benchmarks but without a history."""
    database = str(folder / "ioncast.sqlite")
    benchmarks = str(TESTBED / "benchmarks.csv")
    size = ("--system", "testbed", "--tasks", "16", "--nodes", "8")
    ioncast("bench", "import", benchmarks, *size, "--db", database)
    with opened_database(database) as opened, transaction(opened, write=True) as connection:
        (folder / "token").write_text(add_token(connection, "slurm", "scheduler"))
    # One worker: of two, one could know a new run later than the other.
    with running(folder, "--db", database, "--workers", "1") as service:
        yield service


@pytest.fixture(scope="module")
def slurm(folder: Path, served: Served) -> Iterator[Cluster]:
    files = {name: (LUA / name).read_text() for name in ("job_submit.lua", "ioncast.lua")}
    told = {"socket": served.socket, "folder": folder, "default": DEFAULT}
    files["ioncast_settings.lua"] = SETTINGS.format(**told)
    install_hooks(folder)
    lines = SLURM_CONF.format(folder=folder).split("\n")
    with cluster(folder / "slurm", files=files, lines=lines, rest=True) as found:
        (folder / "jwt").write_text(found.token())
        (folder / "watch.toml").write_text(WATCH.format(rest=found.rest, **told))
        yield found


def install_hooks(folder: Path) -> None:
    shutil.copytree(PROJECT / "scheduler_plugin" / "hooks", folder / "hooks")
    (folder / "jobs").mkdir()
    # slurmctld runs its hooks as its own user, which must be able to write here.
    shutil.chown(folder / "jobs", "slurm")
    configuration = f"LICENCE=ionode\nJOBS_FOLDER={folder}/jobs\n"
    (folder / "hooks" / "hooks.conf").write_text(configuration)


def ioncast(*arguments: str) -> str:
    command = [sys.executable, "-m", "ioncast", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT)
    assert done.returncode == 0, done.stderr
    return done.stderr


def script(folder: Path) -> str:
    return (
        f"#!/bin/sh\n# The run\nmodule() {{ :; }}\nmodule load hacc\n{folder}/{PROGRAM} {folder}\n"
    )


def licences_of(job: dict[str, str]) -> int:
    return int(job["Licenses"].removeprefix("ionode:"))


def lines_of(slurm: Cluster, job: dict[str, str]) -> str:
    """The lines about a job's decision in slurmctld's log."""
    number = job["AdminComment"].removeprefix("ioncast:")
    [line] = re.findall(rf"ioncast: .*{number}.*", slurm.controller_log())
    return str(line)


@pytest.fixture(scope="module")
def first_job(slurm: Cluster, served: Served, folder: Path) -> dict[str, str]:
    """The first job of an unknown program; after it the service knows the program."""
    number = slurm.submit(*SUBMISSION, script=script(folder), user="nobody")
    done = slurm.wait_for(number, "COMPLETED")
    ioncast("slurm", "watch", "--config", str(folder / "watch.toml"), "--once")
    wait_for(lambda: served.ask(QUESTION).json["source"] == "history", "prepared answer")
    return done


def test_a_job_is_known_by_what_the_one_before_did(
    first_job: dict[str, str], slurm: Cluster, served: Served, folder: Path
) -> None:
    first = first_job["JobId"]
    assert licences_of(first_job) == DEFAULT
    # The service made no decision, so the job got the plugin's default.
    assert "AdminComment" not in first_job
    [line] = re.findall(r'ioncast: .* job="hacc" .*', slurm.controller_log())[:1]
    assert f"io_nodes={DEFAULT} source=default " in line
    assert (folder / f"ion_count.{first}").read_text() == f"{DEFAULT}\n"
    outcomes = {outcome["job_id"]: outcome for outcome in served.ask("/v1/outcomes").json["items"]}
    assert (outcomes[first]["io_nodes"], outcomes[first]["decision_id"]) == (DEFAULT, None)

    expected = served.ask(f"{QUESTION}&name=hacc&available=8").json
    second = slurm.submit(*SUBMISSION, script=script(folder), user="nobody")
    done = slurm.wait_for(second, "COMPLETED")
    assert licences_of(done) == expected["io_nodes"] != DEFAULT
    assert (folder / f"ion_count.{second}").read_text() == f"{expected['io_nodes']}\n"
    line = lines_of(slurm, done)
    assert "source=history" in line
    assert "1 earlier run of the same program, user and job name" in line


@pytest.mark.parametrize("io_nodes", [0, 2])
def test_a_user_asks_for_another_number_or_for_direct_access(
    first_job: dict[str, str], slurm: Cluster, folder: Path, io_nodes: int
) -> None:
    """As docs/slurm.md says: `-L ionode:0` opts out, also where a job like this gets more."""
    assert licences_of(first_job) == DEFAULT
    asked = f"--licenses=ionode:{io_nodes}"
    number = slurm.submit(asked, *SUBMISSION, script=script(folder), user="nobody")
    done = slurm.wait_for(number, "COMPLETED")
    assert licences_of(done) == io_nodes
    assert "AdminComment" not in done
    # Without I/O nodes the variable is 0 or missing.
    assert int((folder / f"ion_count.{number}").read_text().strip() or 0) == io_nodes
    line = re.findall(r'ioncast: .* job="hacc" .*', slurm.controller_log())[-1]
    assert f"io_nodes={io_nodes} source=user " in line


def test_submissions_over_rest_are_decided_too(slurm: Cluster, folder: Path) -> None:
    path = "/usr/bin:/bin"
    interface, environment = (
        ("0.0.38", {"PATH": path}) if version() < (23, 2) else ("0.0.42", [f"PATH={path}"])
    )
    job = {
        "name": "over-rest",
        "current_working_directory": str(folder),
        "environment": environment,
        "standard_output": "/dev/null",
    }
    submitted = slurm.run(
        *("curl", "-sf", "--unix-socket", str(slurm.rest), "-H", "Content-Type: application/json"),
        *("-H", "X-SLURM-USER-NAME: root", "-H", f"X-SLURM-USER-TOKEN: {slurm.token()}"),
        *("--data-binary", "@-", f"http://localhost/slurm/v{interface}/job/submit"),
        told=json.dumps({"script": f"#!/bin/sh\n{folder}/{PROGRAM} {folder}\n", "job": job}),
    )
    job_id = json.loads(submitted.stdout)["job_id"]
    done = slurm.wait_for(job_id, "COMPLETED")
    assert done["Licenses"].startswith("ionode:")
    count = (folder / f"ion_count.{job_id}").read_text()
    assert count == f"{licences_of(done)}\n"


@pytest.mark.usefixtures("first_job")
def test_jobs_that_are_held_share_the_pool_and_are_told_what_they_got(
    slurm: Cluster, served: Served, folder: Path
) -> None:
    heartbeat = folder / "run" / "heartbeat"
    heartbeat.parent.mkdir()
    jobs = []
    # A running arbiter would plan for the first job before the second one is submitted.
    for _ in range(2):
        heartbeat.write_text(f"{int(time.time())} {HOLD_S}\n")
        options = ("--job-name=hacc", "--partition=shared", "--nodes=1", "--ntasks=2")
        jobs.append(slurm.submit(*options, script=sleeping(folder), user="nobody"))
        mark = mark_of(slurm.job(jobs[-1])["AdminComment"])
        assert mark is not None
        assert mark.held_until_s is not None
        wait_until_stored(served, mark.decision_id)
    command = [sys.executable, "-m", "ioncast", "slurm", "arbitrate"]
    with killed_at_the_end([*command, "--config", str(folder / "watch.toml")]) as arbiter:
        shares = [licences_of(slurm.wait_for(job, "RUNNING")) for job in jobs]
        arbiter.terminate()
        assert arbiter.wait(60) == 0
    # Alone, each job would get 8.
    assert sum(shares) == 8
    for job, share in zip(jobs, shares, strict=True):
        wait_for(lambda job=job: (folder / f"told.{job}").read_text(), "output")  # type: ignore[misc]
        assert (folder / f"told.{job}").read_text() == f"{share}\n"
    slurm.run("scancel", *map(str, jobs))


def wait_until_stored(served: Served, decision_id: str) -> None:
    """Wait for the decision; the arbiter leaves out jobs whose decision it cannot read."""
    wait_for(lambda: served.ask(f"/v1/decisions/{decision_id}").status == 200, "stored decision")


def sleeping(folder: Path) -> str:
    """A script of the known program that runs longer than the test."""
    tell = f'echo "$ION_COUNT" > {folder}/told.$SLURM_JOB_ID'
    return f"#!/bin/sh\n{tell}\nsleep 600\n{folder}/{PROGRAM} {folder}\n"
