"""The client of slurmrestd with a real one, from Debian's Slurm."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from pwd import getpwnam

import pytest

from scheduler_plugin.slurm import (
    Licence,
    Slurm,
    SlurmAnswerError,
    SlurmRefusedError,
    SlurmUnreachableError,
    licence_count,
)
from scheduler_plugin.token_files import read_token
from tests.scheduler_plugin.slurm.changing import change
from tests.support.serving import free_port
from tests.support.slurm import WATCH_USER, Cluster, cluster, version

pytestmark = pytest.mark.slurm

_RENEW = Path(__file__).resolve().parents[3] / "scheduler_plugin" / "deploy" / "renew-slurm-token"

_SLEEP = "#!/bin/sh\nsleep 300\n"
# The newest interface of Slurm that ioncast knows too.
_INTERFACES = {(22, 5): "0.0.38", (24, 11): "0.0.42", (26, 5): "0.0.44"}
# A long timeout, because machines that run tests are busy.
_PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm") / "lab", nodes=2, rest=True) as found:
        yield found


def client(
    running: Cluster, token: Callable[[], str], user: str = "root", timeout_s: float = _PATIENCE_S
) -> Slurm:
    return Slurm(f"unix:{running.rest}", user, token, timeout_s)


@pytest.fixture
def slurm(running: Cluster) -> Iterator[Slurm]:
    token = running.token()
    with client(running, lambda: token) as found:
        yield found
    running.run("scancel", "--user=root")
    running.wait(lambda: not running.run("squeue", "--noheader").stdout, "empty queue")


def test_its_version_is_found(slurm: Slurm) -> None:
    assert slurm.version == _INTERFACES[version()]
    slurm.ping()


def test_jobs_are_told_as_scontrol_tells_them(running: Cluster, slurm: Slurm) -> None:
    held = running.submit("--hold", "-Lionode:3", "-N2", "-n4", "-Jwaits")
    runs = running.submit("-Lionode:4", "-Jruns", "--comment=any", script=_SLEEP)
    fails = running.submit(script="#!/bin/sh\nexit 3\n")
    running.wait_for(runs, "RUNNING")
    running.wait_for(fails, "FAILED")
    jobs = {job.id: job for job in slurm.jobs()}

    waiting = jobs[held]
    assert (waiting.user, waiting.name, waiting.partition) == ("root", "waits", "batch")
    assert (waiting.state, waiting.reason, waiting.is_held) == ("PENDING", "JobHeldUser", True)
    assert (waiting.priority, waiting.nodes, waiting.tasks) == (0, 2, 4)
    assert licence_count(waiting.licenses, "ionode") == 3
    assert (waiting.started_s, waiting.ended_s) == (None, None)
    assert not waiting.has_ended

    job = jobs[runs]
    assert (job.state, job.is_held, job.ended_s) == ("RUNNING", False, None)
    told = running.job(runs)
    assert job.priority == int(told["Priority"])
    assert job.submitted_s == _unix_time(told["SubmitTime"])
    assert job.started_s == _unix_time(told["StartTime"])

    ended = jobs[fails]
    assert (ended.state, ended.reason) == ("FAILED", "NonZeroExitCode")
    assert ended.has_ended
    assert ended.ended_s == _unix_time(running.job(fails)["EndTime"])
    assert slurm.job(fails) == ended


def _unix_time(text: str) -> int:
    return int(time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))


def test_a_cancelled_job_has_ended(running: Cluster, slurm: Slurm) -> None:
    job_id = running.submit("--hold")
    running.run("scancel", str(job_id))
    running.wait_for(job_id, "CANCELLED")
    job = slurm.job(job_id)
    assert job is not None
    assert (job.state, job.has_ended, job.is_held) == ("CANCELLED", True, False)


def test_an_unknown_job_is_missing(slurm: Slurm) -> None:
    assert slurm.job(999_999) is None


def test_licences_are_those_that_are_used(running: Cluster, slurm: Slurm) -> None:
    before = slurm.licences()
    running.wait_for(running.submit("-Lionode:5", script=_SLEEP), "RUNNING")
    assert before == [Licence("ionode", 8, 0)]
    assert slurm.licences() == [Licence("ionode", 8, 5)]


def test_licences_of_a_job_that_waits_are_taken_away(running: Cluster, slurm: Slurm) -> None:
    job_id = running.submit("--hold", "-Lionode:8")
    change(slurm, job_id, licenses="")
    job = slurm.job(job_id)
    assert job is not None
    assert job.licenses == ""


def test_licences_that_there_are_not_are_refused(running: Cluster, slurm: Slurm) -> None:
    job_id = running.submit("--hold", "-Lionode:8")
    for licenses in ("ionode:9", "matlab:1"):
        with pytest.raises(SlurmAnswerError, match="Invalid license specification"):
            change(slurm, job_id, licenses=licenses)
    assert running.job(job_id)["Licenses"] == "ionode:8"


def test_licences_of_a_job_that_runs_stay(running: Cluster, slurm: Slurm) -> None:
    job_id = running.submit("-Lionode:4", script=_SLEEP)
    running.wait_for(job_id, "RUNNING")
    with pytest.raises(SlurmAnswerError, match=f"job {job_id} is RUNNING"):
        change(slurm, job_id, licenses="ionode:2")
    assert running.job(job_id)["Licenses"] == "ionode:4"


def test_a_job_that_is_not_known_does_not_change(slurm: Slurm) -> None:
    with pytest.raises(SlurmAnswerError, match="Invalid job id"):
        change(slurm, 999_999, begins_s=int(time.time()))


def test_an_arrays_tasks_change_together(running: Cluster, slurm: Slurm) -> None:
    array = running.submit("--begin=now+1hour", "--array=1-3", "-Lionode:4", script=_SLEEP)
    waiting = slurm.job(array)
    assert waiting is not None
    assert (waiting.array_job_id, waiting.array_task_id) == (array, None)
    change(slurm, array, licenses="ionode:2", begins_s=int(time.time()))
    running.wait(lambda: len(_tasks(slurm, array)) == 3, "three tasks that run")
    assert sorted(_tasks(slurm, array)) == [(1, "ionode:2"), (2, "ionode:2"), (3, "ionode:2")]
    last = slurm.job(array)
    assert last is not None
    assert (last.id, last.array_job_id) == (array, array)
    with pytest.raises(SlurmAnswerError, match="is RUNNING"):
        change(slurm, array, licenses="ionode:1")


def _tasks(slurm: Slurm, array: int) -> list[tuple[int | None, str]]:
    return [
        (job.array_task_id, job.licenses)
        for job in slurm.jobs()
        if job.array_job_id == array and job.state == "RUNNING"
    ]


def test_components_of_a_heterogeneous_job_are_jobs_of_their_own(
    running: Cluster, slurm: Slurm
) -> None:
    first = running.submit("--hold", "-Lionode:2", "-n1", ":", "-n2")
    jobs = [job for job in slurm.jobs() if job.het_job_id == first]
    assert [(job.id, job.tasks) for job in jobs] == [(first, 1), (first + 1, 2)]
    assert slurm.job(first) == jobs[0]
    assert slurm.job(first + 1) == jobs[1]


def test_a_job_begins_with_its_licences_at_once(running: Cluster, slurm: Slurm) -> None:
    job_id = running.submit("--begin=now+1hour", "-Lionode:8", script=_SLEEP)
    job = slurm.job(job_id)
    assert job is not None
    assert job.begins_s == _unix_time(running.job(job_id)["EligibleTime"])
    with pytest.raises(SlurmAnswerError, match="Invalid license specification"):
        change(slurm, job_id, licenses="ionode:9", begins_s=int(time.time()))
    # Slurm takes both values or none.
    assert slurm.job(job_id) == job
    change(slurm, job_id, licenses="ionode:2", begins_s=int(time.time()))
    assert running.wait_for(job_id, "RUNNING")["Licenses"] == "ionode:2"
    with pytest.raises(SlurmAnswerError, match="no longer pending"):
        change(slurm, job_id, licenses="ionode:4", begins_s=int(time.time()))
    assert running.job(job_id)["Licenses"] == "ionode:2"


def test_of_a_heterogeneous_job_only_the_first_component_changes(
    running: Cluster, slurm: Slurm
) -> None:
    first = running.submit("--hold", "-Lionode:4", "-n1", ":", "-n1")
    change(slurm, first, licenses="ionode:3", is_leader=True)
    licenses = {job.id: job.licenses for job in slurm.jobs() if job.het_job_id == first}
    assert licenses == {first: "ionode:3", first + 1: ""}


def test_without_slurmdbd_its_jobs_are_refused(slurm: Slurm) -> None:
    with pytest.raises(SlurmAnswerError, match="does not offer /slurmdb/"):
        slurm.ended_jobs(0, 2_000_000_000)


def test_other_users_may_look_but_not_change(running: Cluster, slurm: Slurm) -> None:
    job_id = running.submit("--hold")
    token = running.token("nobody")
    with client(running, lambda: token, "nobody") as other:
        assert other.job(job_id) == slurm.job(job_id)
        with pytest.raises(SlurmRefusedError, match="operator"):
            change(other, job_id, begins_s=int(time.time()))


def test_a_bad_token_is_refused_whatever_is_asked(
    running: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # slurmctld runs, so a slow answer only means that the machine is busy.
    monkeypatch.setattr("scheduler_plugin.slurm.refusals._TRIED_S", _PATIENCE_S)
    with client(running, lambda: "bad") as slurm:
        for ask in (slurm.ping, slurm.jobs, slurm.licences, lambda: slurm.job(1)):
            with pytest.raises(SlurmRefusedError, match="not accepted"):
                ask()


def test_a_token_that_is_renewed_is_good_again(running: Cluster) -> None:
    tokens = [running.token()]
    job_id = running.submit("--hold")
    with client(running, lambda: tokens[-1]) as slurm:
        slurm.jobs()
        tokens.append(running.token(lifespan_s=1))
        time.sleep(2.1)
        with pytest.raises(SlurmRefusedError, match="the token expired at"):
            slurm.jobs()
        with pytest.raises(SlurmRefusedError, match="the token expired at"):
            change(slurm, job_id, begins_s=int(time.time()))
        tokens.append(running.token())
        change(slurm, job_id, begins_s=int(time.time()))


def test_a_controller_that_is_away_is_unreachable_and_comes_back(
    running: Cluster, slurm: Slurm
) -> None:
    job_id = running.submit("--hold")
    before = slurm.job(job_id)
    token = running.token()
    running.stop("slurmctld")
    try:
        with (
            client(running, lambda: token, timeout_s=2) as impatient,
            pytest.raises(SlurmUnreachableError),
        ):
            impatient.jobs()
    finally:
        running.start("slurmctld")
    assert slurm.job(job_id) == before


def test_a_slurmrestd_that_is_away_is_unreachable_and_comes_back(
    running: Cluster, slurm: Slurm
) -> None:
    slurm.ping()
    running.stop("slurmrestd")
    try:
        with pytest.raises(SlurmUnreachableError, match="no server answers"):
            slurm.jobs()
    finally:
        running.rest.unlink(missing_ok=True)
        running.start("slurmrestd")
    slurm.ping()


def renew(running: Cluster, file: Path, user: str = WATCH_USER) -> int:
    return running.run(str(_RENEW), user, str(file), check=False).returncode


def test_a_token_is_renewed_in_its_place(running: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "slurm.jwt"
    assert renew(running, file) == 0
    with client(running, lambda: read_token(str(file)), WATCH_USER) as slurm, file.open() as old:
        slurm.jobs()
        content = file.read_text()
        running.wait(
            lambda: renew(running, file) == 0 and file.read_text() != content, "other token"
        )
        slurm.jobs()
        # A process that has opened the old file still reads all of it.
        assert old.read() == content
        assert not os.path.samestat(os.fstat(old.fileno()), file.stat())
    found = file.stat()
    assert (found.st_uid, found.st_gid) == (0, getpwnam(WATCH_USER).pw_gid)
    assert found.st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["slurm.jwt"]


def unreachable(running: Cluster) -> Cluster:
    """The same cluster; its commands look for slurmctld at a wrong port, with a short timeout."""
    changes = {"SlurmctldPort": free_port(), "MessageTimeout": 2}
    text = (running.folder / "slurm.conf").read_text()
    for name, value in changes.items():
        text = re.sub(rf"(?m)^{name}=.*", f"{name}={value}", text)
    other = running.folder / "unreachable.conf"
    other.write_text(text)
    return replace(running, environment={**running.environment, "SLURM_CONF": str(other)})


def test_a_token_that_is_not_made_leaves_the_old_one(running: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "slurm.jwt"
    file.write_text("old")
    assert renew(unreachable(running), file) != 0
    assert renew(running, file, "no such user") != 0
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["slurm.jwt"]


@pytest.mark.parametrize("user", [WATCH_USER, "nobody"])
def test_a_users_token_makes_nobody_else_of_it(running: Cluster, user: str) -> None:
    token = running.token(user)
    for other in ("root", "slurm"):
        with client(running, lambda: token, other) as slurm, pytest.raises(SlurmRefusedError):
            slurm.jobs()


def test_any_bytes_in_a_jobs_texts_are_read(running: Cluster, slurm: Slurm) -> None:
    strange = running.submit("--hold", b"--job-name=a\xffb", b"--comment=\xfe\xc3")
    plain = running.submit("--hold", "--job-name=plain")
    names = {job.id: job.name for job in slurm.jobs()}
    assert (names[strange], names[plain]) == ("a\ufffdb", "plain")
    found = slurm.job(strange)
    assert found is not None
    assert found.is_held
