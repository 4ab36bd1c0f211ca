"""Logs whose users change, lock or replace them: each is put off or rejected alone."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scheduler_plugin.collector.darshan_logs import copied_log
from scheduler_plugin.collector.sending import in_turns
from scheduler_plugin.collector.state import opened_state
from scheduler_plugin.service_client import NamedLog, RunOf
from tests.scheduler_plugin.collector import test_import_history, test_watching
from tests.scheduler_plugin.collector.test_import_history import Past
from tests.scheduler_plugin.collector.test_watching import _FORKED, Site, _job, _Patient

pytestmark = pytest.mark.serving

served, site, past = test_watching.served, test_watching.site, test_import_history.past
_OF_42, _OF_43 = "periodic-ionodes4", "hacc-io-ionodes4"
_RESIZES = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
os.ftruncate(file, 32 << 20)
print("begins", flush=True)
while True:
    os.ftruncate(file, 16 << 20)
    os.ftruncate(file, 32 << 20)
"""
_HOLDS_A_LEASE = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("holds it", flush=True)
sys.stdin.read()
"""


@contextmanager
def _disturbed(log: Path, program: str) -> Iterator[None]:
    """Let another process work on a log meanwhile."""
    command = [sys.executable, "-c", program, str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def _works(site: Site, later_s: float = 0.0) -> bool:
    """Start a watch for one round, and return whether all its steps worked."""
    site.now_s += later_s
    with (
        opened_state(str(site.folder / "watch.sqlite")) as state,
        _Patient(site.served.url, lambda: site.token) as service,
    ):
        return site.watch(state, service).round(float("inf"))


def _jobs_with_runs(site: Site) -> list[str]:
    return sorted(run["job_id"] for run in site.runs())


@pytest.mark.promise("watch-log-changes")
def test_a_log_that_changes_its_size_while_it_is_sent_stops_nothing(site: Site) -> None:
    site.listed = [_job(), _job(id=43)]
    changing = site.log(_OF_42)
    site.log(_OF_43, 43)
    with _disturbed(changing, _RESIZES):
        assert _works(site)
        assert _jobs_with_runs(site) == ["43"]
        assert _works(site, later_s=60)


@pytest.mark.promise("watch-log-changes")
def test_an_import_survives_a_log_that_changes_its_size(past: Past) -> None:
    [changing] = (past.folder / "logs").rglob("*id44*")
    with _disturbed(changing, _RESIZES):
        past.import_()
    assert _jobs_with_runs(past) == ["42", "43"]


@pytest.mark.promise("watch-log-changes")
@pytest.mark.parametrize(
    "path", ["/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
def test_a_log_with_more_or_fewer_bytes_than_its_size_said_is_not_copied(path: str) -> None:
    """The kernel says 0 bytes of the first file and 4096 of the second one; both have others."""
    with pytest.raises(OSError, match="it changes while it is read"):
        copied_log(Path(path), "root")


@pytest.mark.promise("watch-log-changes")
def test_a_log_that_changes_is_put_off_alone(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.listed = [_job()]
    log, changing = site.log(_OF_42), Path("/proc/self/status")
    with (
        opened_state(str(site.folder / "watch.sqlite")) as state,
        _Patient(site.served.url, lambda: site.token) as service,
    ):
        watch = site.watch(state, service)
        state.follow(test_watching.job_runs(site.listed, "ionode", site.now_s))
        [run] = state.ended()
        state.add_delivery(run, "trace", [changing, log], site.now_s)
        for _ in range(3):
            assert watch.round(float("inf"))
            site.now_s += 60
        assert state.waiting() == 1
    assert len(site.runs()) == 1
    assert caplog.text.count(f"{changing} cannot be read") == 1


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 10 << 30)


def _socket(path: Path) -> None:
    # The path of a socket is at most 108 bytes long.
    before = Path.cwd()
    os.chdir(path.parent)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)
    os.chdir(before)


@pytest.mark.promise("watch-pipe-instead-of-log")
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "this is not a regular file"),
        (Path.mkdir, "this is not a regular file"),
        (_socket, "this is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "this is a link"),
        (lambda path: path.symlink_to("/nowhere"), "this is a link"),
        (_sparse, "it is larger than 256 MiB"),
    ],
    ids=["fifo", "folder", "socket", "link to a device", "link to nothing", "10 GiB"],
)
def test_an_unreadable_log_is_rejected_and_the_others_are_sent(
    site: Site,
    make: Callable[[Path], None],
    why: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site.listed = [_job(), _job(id=43)]
    bad = site.log(_OF_42)
    bad.unlink()
    make(bad)
    site.log(_OF_43)
    site.log("multiphase-ionodes4", 43)
    assert _works(site)
    assert _works(site, later_s=60)
    assert _jobs_with_runs(site) == ["42", "43"]
    [rejected] = [line for line in caplog.messages if "is rejected" in line]
    assert rejected.endswith(f"({bad}): {why}")


@pytest.mark.promise("watch-log-changes")
def test_a_log_with_a_lease_is_put_off_alone(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.listed = [_job(), _job(id=43)]
    *_, leased = [site.log(name) for name in _FORKED]
    site.log(_OF_43, 43)
    with _disturbed(leased, _HOLDS_A_LEASE):
        assert _works(site)
        assert _works(site, later_s=60)
        assert sorted(outcome["job_id"] for outcome in site.outcomes()) == ["42", "43"]
    told = f"{leased} cannot be read and is tried again later: another process has a lease on it"
    assert caplog.text.count(told) == 1
    assert "fails" not in caplog.text
    assert _works(site, later_s=600)
    sent = [test_watching.moved_bytes(run) for run in site.runs() if run["job_id"] == "42"]
    assert sum(sent) == test_watching._FORKED_BYTES


@pytest.mark.promise("watch-log-changes")
def test_logs_that_grew_are_sent_by_themselves(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together the logs would take more memory than one request may."""
    sizes = []

    class Counting(_Patient):
        def _send(self, path: str, logs: Sequence[NamedLog], fields: Any) -> Any:
            sizes.append(sum(log.copy.seek(0, os.SEEK_END) for log in logs))
            for log in logs:
                log.copy.seek(0)
            return super()._send(path, logs, fields)

    site.listed = [_job()]
    most_bytes = max(site.log(name).stat().st_size for name in _FORKED)
    monkeypatch.setattr("scheduler_plugin.collector.sending.MOST_BYTES", most_bytes)
    with (
        opened_state(str(site.folder / "watch.sqlite")) as state,
        Counting(site.served.url, lambda: site.token) as service,
    ):
        watch = site.watch(state, service)
        for _ in range(3):
            assert watch.round(float("inf"))
            site.now_s += 60
    assert len(sizes) > 1
    assert max(sizes) <= most_bytes
    assert sum(map(test_watching.moved_bytes, site.runs())) == test_watching._FORKED_BYTES


def test_the_copies_of_logs_need_no_memory_after_they_were_sent(site: Site) -> None:
    """Each request belongs to cycles of objects, which Python may collect much later."""
    size = 16 << 20
    for job_id in range(42, 48):
        site.listed.append(_job(id=job_id))
        os.truncate(site.log(_OF_42, job_id), size)
    gc.disable()
    tracemalloc.start()
    try:
        assert _works(site)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert peak_bytes < 2 * size


class _Breaks(_Patient):
    """A client with a fault that one log reaches."""

    def _send(self, path: str, logs: Sequence[NamedLog], fields: Any) -> Any:
        if fields["job_id"] == "42":
            raise RuntimeError("a fault that nobody knows yet")
        return super()._send(path, logs, fields)


@pytest.mark.promise("watch-log-changes")
def test_a_fault_in_sending_one_log_stops_no_other_log(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.listed = [_job(), _job(id=43)]
    site.log(_OF_42)
    site.log(_OF_43, 43)
    with (
        opened_state(str(site.folder / "watch.sqlite")) as state,
        _Breaks(site.served.url, lambda: site.token) as service,
    ):
        watch = site.watch(state, service)
        watch.round(float("inf"))
        assert _jobs_with_runs(site) == ["43"]
        assert state.waiting() == 1
    assert "RuntimeError: a fault that nobody knows yet" in caplog.text
    assert _works(site, later_s=60)
    assert _jobs_with_runs(site) == ["42", "43"]


@pytest.mark.promise("watch-log-changes")
def test_an_import_sends_all_logs_but_one_with_a_lease(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    [leased] = (past.folder / "logs").rglob("*id43*")
    with _disturbed(leased, _HOLDS_A_LEASE):
        assert not past.import_()
    assert _jobs_with_runs(past) == ["42", "44"]
    assert f"{leased} cannot be read" in caplog.text
    assert past.import_()
    assert _jobs_with_runs(past) == ["42", "43", "44"]


@pytest.mark.promise("watch-large-logs")
def test_users_take_turns() -> None:
    waiting = [("ann", 1), ("ann", 2), ("ann", 3), ("bob", 4), ("cy", 5), ("bob", 6)]
    order = [("ann", 1), ("bob", 4), ("cy", 5), ("ann", 2), ("bob", 6), ("ann", 3)]
    assert list(in_turns(waiting, {})) == order
    # Ann's turn was later than Bob's.
    turns = list(in_turns(waiting, {"bob": 7, "ann": 8}))
    assert turns[:3] == [("cy", 5), ("bob", 4), ("ann", 1)]


class _Notes:
    """A service that notes whose logs it gets, and is slow: a round has time for one request."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.users: list[str | None] = []

    def measured_systems(self) -> list[str]:
        return [self._site.system]

    def send_trace(self, _logs: Any, run: RunOf) -> dict[str, Any]:
        self.users.append(run.user)
        self._site.now_s += 1
        return {"bytes": 1}

    send_outcome = send_trace

    def send_queue(self, _report: Mapping[str, Any]) -> None:
        """Take no time."""


@pytest.mark.promise("watch-large-logs")
def test_a_log_waits_for_one_log_of_each_other_user_at_most(site: Site) -> None:
    users = ["ann", "eve", "bob"]
    for user, jobs in (("ann", 40), ("eve", 40), ("bob", 1)):
        for _ in range(jobs):
            job_id = len(site.listed) + 100
            site.listed.append(_job(id=job_id, user=user))
            site.log(_OF_42, job_id)
    service = _Notes(site)
    with opened_state(str(site.folder / "watch.sqlite")) as state:
        watch = site.watch(state, service)
        while state.waiting() or not service.users:
            assert watch.round(0.5)
    assert service.users[:3] == users
    assert service.users[3:80] == ["ann", "eve"] * 38 + ["ann"]
    assert len(service.users) == 81
