"""The answers of all versions are read as the same jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scheduler_plugin.slurm import Job, Licence, Slurm, SlurmClusterError
from scheduler_plugin.slurm.versions import NEWEST_FIRST
from tests.scheduler_plugin.slurm.recorded import VERSIONS, Slurmrestd, recorded, served

_JOB = Job(
    id=0,
    user="ada",
    name="hacc",
    partition="batch",
    state="PENDING",
    reason="None",
    is_held=False,
    priority=1,
    submitted_s=1790000000,
    started_s=None,
    ended_s=None,
    nodes=1,
    tasks=1,
    licenses="",
    admin_comment="",
)
_T = 1790000000
JOBS = [
    replace(
        _JOB,
        id=101,
        reason="BeginTime",
        priority=4294901752,
        nodes=4,
        tasks=16,
        licenses="ionode:4,matlab:1",
        admin_comment=f"ioncast:d1:held until:{_T + 300}",
        begins_s=_T + 300,
    ),
    replace(
        _JOB,
        id=102,
        reason="JobHeldUser",
        is_held=True,
        priority=0,
        submitted_s=_T + 10,
        nodes=2,
        tasks=8,
        licenses="ionode:8",
        begins_s=_T + 310,
    ),
    replace(
        _JOB,
        id=103,
        state="RUNNING",
        priority=4294901750,
        submitted_s=_T + 20,
        started_s=_T + 30,
        nodes=2,
        tasks=8,
        licenses="ionode:2",
        admin_comment="ioncast:d2",
    ),
    replace(
        _JOB,
        id=104,
        state="COMPLETED",
        priority=4294901749,
        submitted_s=_T + 40,
        started_s=_T + 50,
        ended_s=_T + 110,
        tasks=2,
    ),
    replace(
        _JOB,
        id=106,
        state="TIMEOUT",
        reason="TimeLimit",
        submitted_s=_T + 60,
        started_s=_T + 70,
        ended_s=_T + 670,
        tasks=None,
        array_job_id=105,
        array_task_id=3,
    ),
    replace(
        _JOB,
        id=107,
        state="RUNNING",
        submitted_s=_T + 80,
        started_s=_T + 90,
        het_job_id=107,
    ),
    # Slurm cleans up its nodes. The machine of slurmrestd does not know the user's name.
    replace(
        _JOB,
        id=108,
        user="1001",
        name="",
        state="COMPLETING",
        reason="NonZeroExitCode",
        submitted_s=_T + 80,
        started_s=_T + 90,
    ),
]
_ENDED = replace(_JOB, priority=100, tasks=None, started_s=_T + 10)
ENDED_JOBS = [
    replace(
        _ENDED,
        id=90,
        state="COMPLETED",
        ended_s=_T + 100,
        nodes=4,
        licenses="ionode:4,matlab:1",
        admin_comment="ioncast:d0",
    ),
    replace(_ENDED, id=92, state="NODE_FAIL", ended_s=_T + 200, array_job_id=91, array_task_id=2),
    # It was cancelled while it waited.
    replace(
        _ENDED,
        id=93,
        state="CANCELLED",
        started_s=None,
        ended_s=_T + 150,
        nodes=0,
        het_job_id=93,
    ),
]


@pytest.fixture(params=VERSIONS)
def slurm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Slurm]:
    with served(Slurmrestd((request.param,)), tmp_path / "rest.sock") as address:
        yield Slurm(address, "ada", lambda: "token")


def test_jobs_are_the_same_in_every_version(slurm: Slurm) -> None:
    assert slurm.jobs() == JOBS


def test_one_job_is_the_same_in_every_version(slurm: Slurm) -> None:
    assert slurm.job(101) == JOBS[0]
    assert slurm.job(104) == JOBS[3]


def test_an_unknown_job_is_missing_in_every_version(slurm: Slurm) -> None:
    assert slurm.job(999) is None


def test_jobs_of_slurmdbd_are_the_same_in_every_version(slurm: Slurm) -> None:
    # The running job is not listed.
    assert slurm.ended_jobs(_T, _T + 1000) == ENDED_JOBS


def test_jobs_of_slurmdbd_ended_within_the_span(slurm: Slurm) -> None:
    assert [job.id for job in slurm.ended_jobs(_T + 100, _T + 200)] == [90, 93]


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_of_other_clusters_are_left_out(version: str, tmp_path: Path) -> None:
    """slurmdbd lists the jobs of all its clusters, which may have the same ids."""
    document = json.loads(recorded(version, "accounted_jobs"))
    document["jobs"][0]["cluster"] = "other"
    told = {"jobs": (200, json.dumps(document), 0.0)}
    with served(Slurmrestd((version,), told), tmp_path / "rest.sock") as address:
        own = Slurm(address, "ada", lambda: "token", cluster="test").ended_jobs(_T, _T + 1000)
        with pytest.raises(SlurmClusterError, match="other and test"):
            Slurm(address, "ada", lambda: "token").ended_jobs(_T, _T + 1000)
    assert own == ENDED_JOBS[1:]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_that_was_put_back_into_the_queue_has_ended(version: str, tmp_path: Path) -> None:
    """Slurm 22.05 gives such a run of slurmdbd the state REQUEUED, for which 0.0.40 has a flag."""
    document = json.loads(recorded(version, "accounted_jobs"))
    [job] = [job for job in document["jobs"] if job["job_id"] == 90]
    job["state"]["current"] = "REQUEUED" if version < "0.0.40" else ["PENDING", "REQUEUED"]
    told = {"jobs": (200, json.dumps(document), 0.0)}
    with served(Slurmrestd((version,), told), tmp_path / "rest.sock") as address:
        found = Slurm(address, "ada", lambda: "token").ended_jobs(_T, _T + 1000)
    assert found == [replace(ENDED_JOBS[0], state="REQUEUED"), *ENDED_JOBS[1:]]
    assert found[0].has_ended


def test_licences_are_the_same_in_every_version(slurm: Slurm) -> None:
    assert slurm.licences() == [Licence("ionode", 8, 6), Licence("matlab", 2, 0)]


def test_slurmctld_is_up_in_every_version(slurm: Slurm) -> None:
    slurm.ping()


@pytest.mark.parametrize(
    "told",
    [
        None,
        0xFFFFFFFE,  # Slurm's NO_VAL.
        0xFFFFFFFF,  # Slurm's INFINITE.
        {"set": False, "infinite": False, "number": 0},
        {"set": False, "infinite": True, "number": 0},
        {"set": True, "infinite": True, "number": 0},
        {"set": True, "infinite": False, "number": 0xFFFFFFFE},
    ],
)
def test_numbers_that_are_none_are_none(told: Any) -> None:
    assert NEWEST_FIRST[0].number(told) is None


@pytest.mark.parametrize(
    ("state", "ended"), [("COMPLETED", True), ("TIMEOUT", True), ("COMPLETING", False)]
)
def test_a_job_has_ended_when_its_nodes_are_free(state: str, ended: bool) -> None:
    assert replace(_JOB, state=state).has_ended is ended
