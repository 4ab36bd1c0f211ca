"""The queue that the watch reports: which jobs wait for what, and whether the arbiter works."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from scheduler_plugin.arbiter.heartbeat import Heartbeat
from scheduler_plugin.collector.queue_report import does_arbiter_work, queue_report
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licences import Licence


def waiting(number: int, reason: str, licenses: str = "", het: int | None = None) -> Job:
    return Job(
        *(number, "ann", "restart", "batch", "PENDING", reason, False, 1, 1, None, None, 1, 1),
        licenses=licenses,
        admin_comment="",
        het_job_id=het,
    )


def test_waiting_jobs_and_io_nodes_in_use_are_counted() -> None:
    jobs = [
        waiting(1, "Licenses", "ionode:4"),
        waiting(2, "Licenses", "matlab:1"),
        waiting(3, "Priority", "ionode:2"),
        waiting(4, "Licenses", "ionode:1", het=4),
        waiting(5, "Licenses", "ionode:1", het=4),
    ]
    told = queue_report(
        "here",
        jobs,
        [Licence("matlab", 9, 1), Licence("ionode", 8, 6)],
        licence="ionode",
        arbiter_works=True,
    )
    assert (told.system, told.io_nodes, told.in_use) == ("here", 8, 6)
    # Job 2 waits for other licences, and jobs 4 and 5 are one job of two components.
    assert (told.waiting, told.for_io_nodes) == (4, 2)


def test_without_the_licence_there_are_no_io_nodes() -> None:
    told = queue_report("here", [], [], licence="ionode", arbiter_works=None)
    assert (told.io_nodes, told.in_use, told.waiting) == (0, 0, 0)


def test_the_arbiter_works_as_long_as_the_plugin_trusts_its_heartbeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "heartbeat"
    assert does_arbiter_work(str(file)) is None
    file.touch()
    assert does_arbiter_work(str(file)) is False
    heartbeat, now_s = Heartbeat(file, tmp_path / "lock"), time.time()
    heartbeat.beat()
    monkeypatch.setattr("time.time", lambda: now_s)
    assert does_arbiter_work(str(file)) is True
    monkeypatch.setattr("time.time", lambda: now_s + 31)
    assert does_arbiter_work(str(file)) is False
    heartbeat.end()
    monkeypatch.setattr("time.time", lambda: now_s)
    assert does_arbiter_work(str(file)) is False
