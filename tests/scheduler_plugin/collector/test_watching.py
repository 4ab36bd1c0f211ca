"""The watch with a real service: each log arrives once, whatever stops or is killed meanwhile."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.store.tokens import add_token
from ioncast_base.errors import InputError
from ioncast_base.times import in_utc
from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.collector.job_runs import io_nodes_of, job_runs
from scheduler_plugin.collector.name_history import NameHistory
from scheduler_plugin.collector.state import WatchState, copied_state, opened_state
from scheduler_plugin.collector.steady_time import SteadyTime
from scheduler_plugin.collector.watching import Watch
from scheduler_plugin.service_client import Ioncast, ServiceRefusedError
from scheduler_plugin.slurm import Job, SlurmAnswerError, SlurmUnreachableError
from scheduler_plugin.slurm.licences import Licence
from tests.support.examples import examples
from tests.support.serving import PATIENCE_S, Served, running, start, stop

pytestmark = pytest.mark.serving

_LOGS = Path(__file__).resolve().parents[3] / "experiments" / "data" / "testbed" / "logs"
# Logs of the processes of two Python programs, and the bytes that each program moved.
_ONE_JOB = _LOGS.parents[3] / "tests" / "summario" / "fixtures" / "programs"
_FORKED = [f"fork-workers-{number}" for number in range(4)]
_SPAWNED = [f"spawn-workers-{number}" for number in range(5)]
_FORKED_BYTES, _SPAWNED_BYTES = 3_001_002, 3_008_061
_START_S = datetime(2026, 3, 5, 10).timestamp()
_HOUR_S = 3600.0
_numbers = itertools.count()


class _Patient(Ioncast):
    """Asks again if the service is busy, because the machine is busy."""

    def _ask(self, *arguments: Any, **content: Any) -> dict[str, Any]:
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            try:
                return super()._ask(*arguments, **content)
            except ServiceRefusedError as error:
                if error.status != 503 or time.monotonic() > give_up_at:
                    raise
            time.sleep(0.2)
            for _, (_, copy) in content.get("files", ()):
                copy.seek(0)


class Site:
    """A service, a folder of logs, and a Slurm whose answers a test sets."""

    def __init__(self, served: Served, token: str, folder: Path) -> None:
        self.served = served
        self.token = token
        self.folder = folder
        self.system = f"system{next(_numbers)}"
        self.now_s = _START_S + 600
        # Seconds by which the wall clock is ahead.
        self.ahead_s = 0.0
        self.listed: list[Job] = []
        self.accounted: list[Job] = []
        self.failure: Exception | None = None
        self.asked: list[tuple[int, int]] = []
        (folder / "logs").mkdir()

    def jobs(self) -> list[Job]:
        if self.failure:
            raise self.failure
        return self.listed

    def licences(self) -> list[Licence]:
        return [Licence("ionode", 8, 6)]

    def ended_jobs(self, since_s: int, until_s: int) -> list[Job]:
        self.asked.append((since_s, until_s))
        if not self.accounted:
            raise SlurmAnswerError("there is no slurmdbd")
        return self.accounted

    def log(self, source: str, job_id: int = 42, started_s: float = _START_S + 5) -> Path:
        """Copy a genuine log to the place where Darshan would write it."""
        when = datetime.fromtimestamp(started_s)
        day = self.folder / "logs" / f"{when.year}/{when.month}/{when.day}"
        day.mkdir(parents=True, exist_ok=True)
        second = when.hour * 3600 + when.minute * 60 + when.second
        name = f"ann_{source}_id{job_id}-77_{when.month}-{when.day}-{second}-1234_1.darshan"
        folder = _ONE_JOB if "-workers-" in source else _LOGS
        return Path(shutil.copy(folder / f"{source}.darshan", day / name))

    def name(self, file: str, text: str) -> None:
        """Write a file of the hooks' history."""
        (self.folder / "jobs").mkdir(exist_ok=True)
        (self.folder / "jobs" / file).write_text(text)

    def watch(self, state: WatchState, service: Any, **settings: Any) -> Watch:
        return Watch(
            state,
            self,
            service,
            LogFolder(self.folder / "logs", "%Y/%-m/%-d"),
            system=self.system,
            licence="ionode",
            heartbeat=str(self.folder / "heartbeat"),
            name_history=NameHistory(str(self.folder / "jobs")),
            clock=SteadyTime(lambda: self.now_s + self.ahead_s, lambda: self.now_s - _START_S),
            **{"period_s": 10.0, "wait_s": 300.0, **settings},
        )

    def round(self, later_s: float = 0.0, rounds: int = 1, token: str | None = None) -> None:
        """Start a watch, do some rounds, and end it."""
        self.now_s += later_s
        with (
            opened_state(str(self.folder / "watch.sqlite")) as state,
            _Patient(self.served.url, lambda: token or self.token) as service,
        ):
            watch = self.watch(state, service)
            for _ in range(rounds):
                watch.round(float("inf"))

    def ask(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.served.ask(path).json["items"]
        return items

    def runs(self) -> list[dict[str, Any]]:
        applications = self.ask(f"/v1/applications?system={self.system}")
        found = [self.ask(f"/v1/applications/{each['id']}/runs") for each in applications]
        return [run for runs in found for run in runs]

    def report(self, io_nodes: int) -> None:
        """Report the outcome of job 42, as another program may do."""
        given = {"system": self.system, "job_id": "42", "io_nodes": io_nodes}
        given["started"] = _utc(_START_S)
        self.served.ask(
            "/v1/outcomes",
            method="POST",
            body=json.dumps(given | {"bandwidth_mib_s": 100.0}).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
            },
        )

    def outcomes(self) -> list[dict[str, Any]]:
        return self.ask(f"/v1/outcomes?system={self.system}")


def _job(**changed: Any) -> Job:
    """A job that ended after ten minutes."""
    job = Job(
        id=42,
        user="ann",
        name="restart",
        partition="batch",
        state="COMPLETED",
        reason="None",
        is_held=False,
        priority=1,
        submitted_s=int(_START_S) - 10,
        started_s=int(_START_S),
        ended_s=int(_START_S) + 590,
        nodes=8,
        tasks=16,
        licenses="matlab:1,ionode:4",
        admin_comment="ioncast:04a9",
    )
    return replace(job, **changed)


_RUNS = {"state": "RUNNING", "ended_s": None}


def _utc(moment_s: float) -> str:
    return in_utc(datetime.fromtimestamp(moment_s, timezone.utc))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder = tmp_path_factory.mktemp("service")
    location = str(folder / "ioncast.sqlite")
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, "slurm", "scheduler")
    settings = folder / "service.toml"
    settings.write_text("requests_per_minute = 100000\n")
    with running(folder, "--db", location, "--config", str(settings)) as service:
        yield service, token


@pytest.fixture
def site(served: tuple[Served, str], tmp_path: Path) -> Site:
    return Site(*served, tmp_path)


def test_a_job_that_ended_is_reported_with_the_io_nodes_that_it_had(site: Site) -> None:
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round()
    [run], [outcome] = site.runs(), site.outcomes()
    assert (run["job_id"], run["name"], run["nodes"], run["io_nodes"]) == ("42", "restart", 8, 4)
    assert outcome["run_id"] == run["id"]
    assert (outcome["io_nodes"], outcome["decision_id"]) == (4, "04a9")


@pytest.mark.parametrize(
    ("changed", "io_nodes"),
    [
        ({}, 4),
        ({"licenses": "ionode:2"}, 2),
        ({"licenses": "matlab:1"}, 0),
        ({"licenses": "", "admin_comment": "ticket 7 ioncast:04a9:held until:9"}, 0),
        # The site may have given it I/O nodes in another way.
        ({"licenses": "", "admin_comment": "about ioncast"}, None),
    ],
)
def test_the_io_nodes_of_a_job_are_what_it_had(
    changed: dict[str, str], io_nodes: int | None
) -> None:
    assert io_nodes_of(_job(**changed), "ionode") == io_nodes


def test_the_names_of_its_io_nodes_are_sent_with_the_outcome(site: Site) -> None:
    """Job 42 is the one with names; before it Slurm used the id for another one."""
    start_s = int(_START_S)
    text = f"42 {start_s - 7000} io9 end\n42 {start_s + 1} io2,io7 end\n"
    site.name("history.old", text)
    site.listed = [_job(**_RUNS)]
    site.round()
    # The history holds the last jobs only.
    site.name("history.old", "")
    site.listed = [_job(), _job(id=43)]
    site.log("periodic-ionodes4")
    site.log("hacc-io-ionodes4", 43)
    site.round(later_s=10)
    names = {outcome["job_id"]: outcome["io_node_names"] for outcome in site.outcomes()}
    assert names == {"42": "io2,io7", "43": None}


def test_the_schedulers_times_are_sent_with_the_outcome(site: Site) -> None:
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round()
    [outcome] = site.outcomes()
    start_s = int(_START_S)
    times = [outcome[name] for name in ("submitted", "started", "ended")]
    assert times == [_utc(start_s - 10), _utc(start_s), _utc(start_s + 590)]


def test_names_that_cannot_be_read_or_are_too_many_keep_no_outcome_back(site: Site) -> None:
    site.name("history", f"42 {int(_START_S)} io1,io2,io3,io4,io5 end\n")
    os.mkfifo(site.folder / "jobs" / "history.old")
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round()
    [outcome] = site.outcomes()
    assert outcome["io_node_names"] is None
    (site.folder / "jobs" / "history.old").unlink()
    site.listed = [_job(), _job(id=43)]
    site.log("hacc-io-ionodes4", 43)
    site.name("history", f"43 {int(_START_S)} io1,io2,io3,io4,io5 end\n")
    site.round()
    assert [outcome["io_node_names"] for outcome in site.outcomes()] == [None, None]


def test_the_queue_is_reported_every_five_minutes(site: Site) -> None:
    site.listed = [_job(id=7, state="PENDING", reason="Licenses")]
    service = _Hears()
    with opened_state(str(site.folder / "watch.sqlite")) as state:
        watch = site.watch(state, service)
        for _ in range(61):
            assert watch.round(float("inf"))
            site.now_s += 10
    told = {"system": site.system, "io_nodes": 8, "in_use": 6, "waiting": 1, "for_io_nodes": 1}
    assert service.queues == [{**told, "arbiter_works": None}] * 2
    site.round()
    page = site.served.ask("/", headers={"Accept": "text/html"}).body.decode()
    assert f"I/O nodes in use and waiting jobs on {site.system}" in page


def test_a_queue_that_could_not_be_reported_is_reported_in_the_next_round(site: Site) -> None:
    service = _Hears()
    with opened_state(str(site.folder / "watch.sqlite")) as state:
        watch = site.watch(state, service)
        site.failure = SlurmUnreachableError("no answer")
        assert not watch.round(float("inf"))
        site.failure = None
        assert watch.round(float("inf"))
    assert len(service.queues) == 1


def test_a_job_that_accounting_tells_of_is_not_said_to_have_had_none() -> None:
    # slurmdbd knows only licences that AccountingStorageTRES counts.
    told = [_job(licenses=""), _job(id=43, licenses="ionode:2")]
    runs = job_runs(told, "ionode", 0.0, are_accounted=True)
    assert [run.io_nodes for run in runs] == [None, 2]
    assert [run.io_nodes for run in job_runs(told, "ionode", 0.0)] == [0, 2]


@pytest.mark.parametrize("are_accounted", [False, True])
def test_a_heterogeneous_job_has_the_io_nodes_of_its_first_component(are_accounted: bool) -> None:
    first = _job(het_job_id=42)
    second = _job(id=43, het_job_id=42, licenses="", nodes=1, admin_comment="")
    [run] = job_runs([second, first], "ionode", 0.0, are_accounted=are_accounted)
    assert (run.id, run.io_nodes, run.nodes, run.decision_id) == (42, 4, None, "04a9")


def test_io_nodes_of_two_components_have_no_known_sum() -> None:
    # Up to Slurm 22.05 users can ask for licences in each component.
    first = _job(het_job_id=42, licenses="ionode:3", admin_comment="")
    second = replace(first, id=43, licenses="ionode:2")
    [run] = job_runs([first, second], "ionode", 0.0)
    assert (run.id, run.io_nodes, run.decision_id) == (42, None, None)


def test_each_run_of_a_job_that_accounting_lists_is_a_run() -> None:
    """slurmdbd lists a job that was put back into the queue once for each of its ends."""
    again = {"started_s": int(_START_S) + 700, "ended_s": int(_START_S) + 800}
    first, second = _job(het_job_id=42), _job(id=43, het_job_id=42, licenses="ionode:2")
    told = [replace(second, **again), first, replace(first, **again), second, _job(id=44)]
    runs = job_runs(told, "ionode", 0.0, are_accounted=True)
    assert sorted((run.id, run.started_s - _START_S, run.io_nodes) for run in runs) == [
        (42, 0, None),
        (42, 700, None),
        (44, 0, 4),
    ]


def test_a_job_whose_io_nodes_nobody_knows_is_a_trace_without_them(site: Site) -> None:
    site.listed = [_job(licenses="", admin_comment="")]
    site.log("periodic-ionodes4")
    site.round()
    [run] = site.runs()
    assert run["io_nodes"] is None
    assert not site.outcomes()


def test_of_several_steps_the_one_that_moved_most_tells_the_outcome(site: Site) -> None:
    names = ("hacc-io-ionodes4", "periodic-ionodes4", "multiphase-ionodes4")
    site.listed = [_job()]
    for number, name in enumerate(names):
        site.log(name, started_s=_START_S + number)
    site.round()
    runs = site.runs()
    moved = {run["id"]: sum(phase["bytes"] for phase in run["phases"]) for run in runs}
    assert len(runs) == len(names)
    [outcome] = site.outcomes()
    assert outcome["run_id"] == max(moved, key=lambda run: moved[run])


def moved_bytes(run: dict[str, Any]) -> int:
    return sum(phase["bytes"] for phase in run["phases"])


def test_the_logs_of_a_jobs_processes_are_one_run_and_its_outcome(site: Site) -> None:
    site.listed = [_job(tasks=1)]
    for name in _FORKED:
        site.log(name)
    site.round()
    [run], [outcome] = site.runs(), site.outcomes()
    assert (run["job_id"], run["io_nodes"], moved_bytes(run)) == ("42", 4, _FORKED_BYTES)
    # Slurm started one process; questions for decisions have its number.
    assert run["tasks"] == 1
    assert outcome["run_id"] == run["id"]


def test_each_step_of_a_job_is_a_run_with_the_logs_of_its_processes(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    site.listed = [_job()]
    for name in [*_FORKED, "periodic-ionodes4", *_SPAWNED]:
        site.log(name)
    site.round(rounds=2)
    runs = sorted(site.runs(), key=moved_bytes)
    assert [moved_bytes(run) for run in runs[:2]] == [_FORKED_BYTES, _SPAWNED_BYTES]
    [outcome] = site.outcomes()
    assert outcome["run_id"] == runs[2]["id"]
    assert "1 outcome and 3 traces sent, 4 I/O nodes" in caplog.text
    assert "rejected" not in caplog.text.replace("0 rejected", "")


@pytest.mark.promise("watch-log-rejected")
def test_a_damaged_log_is_rejected_and_the_others_of_its_run_are_sent(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.listed = [_job()]
    for name in _FORKED[:3]:
        site.log(name)
    bad = site.log(_FORKED[3])
    bad.write_bytes(bad.read_bytes()[:1000])
    site.round(rounds=2)
    [run], [outcome] = site.runs(), site.outcomes()
    assert moved_bytes(run) == _FORKED_BYTES - 1_000_000
    assert outcome["run_id"] == run["id"]
    assert caplog.text.count("is rejected") == 1
    assert f"{bad.name} is rejected" not in caplog.text
    assert str(bad) in caplog.text


def test_a_late_log_of_a_process_becomes_a_part_of_its_run(site: Site) -> None:
    site.listed = [_job()]
    for name in [*_FORKED[:3], *_SPAWNED]:
        site.log(name)
    site.round()
    site.log(_FORKED[3])
    site.round(later_s=100)
    assert sorted(map(moved_bytes, site.runs())) == [_FORKED_BYTES, _SPAWNED_BYTES]
    assert len(site.outcomes()) == 1


def test_a_log_that_vanished_leaves_the_others_together(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.listed = [_job()]
    for name in _FORKED:
        site.log(name)
    site.round(token="ion_wrong")  # noqa: S106
    next((site.folder / "logs").rglob("*workers-3*")).unlink()
    site.round(later_s=60, rounds=2)
    [run] = site.runs()
    assert moved_bytes(run) == _FORKED_BYTES - 1_000_000
    assert "the file does not exist any more" in caplog.text


def test_a_rejected_outcome_leaves_the_logs_of_its_run_together(site: Site) -> None:
    """Another program, for example an epilog script, may have reported the job before."""
    site.listed = [_job()]
    for name in _FORKED:
        site.log(name)
    site.report(io_nodes=2)
    site.round(rounds=2)
    assert [moved_bytes(run) for run in site.runs()] == [_FORKED_BYTES]
    assert [outcome["io_nodes"] for outcome in site.outcomes()] == [2]


def test_a_late_log_joins_a_run_whose_outcome_was_rejected(site: Site) -> None:
    site.listed = [_job()]
    for name in _FORKED[:3]:
        site.log(name)
    site.report(io_nodes=2)
    site.round(rounds=2)
    site.log(_FORKED[3])
    site.round(later_s=100)
    assert [moved_bytes(run) for run in site.runs()] == [_FORKED_BYTES]


def test_logs_that_are_too_much_for_the_service_are_sent_one_by_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = _Patient._send

    def send_little(self: _Patient, path: str, logs: Any, fields: Any) -> Any:
        if len(logs) > 1:
            raise ServiceRefusedError(413, "too large", where=path)
        return send(self, path, logs, fields)

    monkeypatch.setattr(_Patient, "_send", send_little)
    site.listed = [_job()]
    for name in _FORKED:
        site.log(name)
    site.round(rounds=2)
    assert sum(map(moved_bytes, site.runs())) == _FORKED_BYTES
    [outcome] = site.outcomes()
    [run] = [run for run in site.runs() if run["id"] == outcome["run_id"]]
    assert moved_bytes(run) == 1_000_000


@pytest.mark.parametrize("limit", [{"_MOST_LOGS": 2}, {"MOST_BYTES": 5_000}])
def test_more_logs_than_a_request_may_have_are_several_runs(
    site: Site, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]
) -> None:
    for name, value in limit.items():
        monkeypatch.setattr(f"scheduler_plugin.collector.log_queue.{name}", value)
    site.listed = [_job()]
    for name in _FORKED:
        site.log(name)
    site.round(rounds=2)
    assert sum(map(moved_bytes, site.runs())) == _FORKED_BYTES
    assert len(site.runs()) > 1
    assert len(site.outcomes()) == 1


def test_a_log_that_comes_late_is_a_trace_and_later_ones_are_not_waited_for(site: Site) -> None:
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round()
    site.log("hacc-io-ionodes4")
    site.round(later_s=100)
    assert len(site.runs()) == 2
    site.round(later_s=300)
    site.log("multiphase-ionodes4")
    site.round(later_s=100)
    assert len(site.runs()) == 2
    assert len(site.outcomes()) == 1


def test_while_one_log_is_written_the_others_of_its_job_wait(site: Site) -> None:
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    writing = site.log("hacc-io-ionodes4").rename(site.folder / "rest")
    partial = next((site.folder / "logs").rglob("*.darshan")).with_name(
        "ann_app_id42-78_3-5-36010-99.darshan_partial"
    )
    partial.touch()
    site.round()
    assert not site.runs()
    writing.rename(partial.with_name("ann_app_id42-78_3-5-36010-99_1.darshan"))
    partial.unlink()
    site.round(later_s=10)
    assert len(site.runs()) == 2


def test_a_job_that_slurm_forgot_is_known_from_when_it_ran(site: Site) -> None:
    site.listed = [_job(**_RUNS)]
    site.round()
    site.log("periodic-ionodes4")
    site.listed = []
    site.round(later_s=_HOUR_S)
    [outcome] = site.outcomes()
    assert outcome["io_nodes"] == 4


@pytest.mark.promise("watch-away")
def test_jobs_that_came_and_went_while_nobody_watched_are_asked_of_accounting(site: Site) -> None:
    site.round()
    first_s = site.now_s
    job_s = int(first_s) + 100
    site.accounted = [_job(id=43, started_s=job_s, ended_s=job_s + 60)]
    site.log("periodic-ionodes4", 43, job_s + 1)
    site.round(later_s=300)
    [(since_s, until_s)] = site.asked
    assert since_s <= first_s < job_s + 60 < until_s
    assert [run["job_id"] for run in site.runs()] == ["43"]
    site.round(later_s=10)
    assert len(site.asked) == 1


@pytest.mark.promise("watch-away")
def test_without_accounting_the_watch_goes_on(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.round()
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round(later_s=400)
    assert len(site.outcomes()) == 1
    assert "jobs that slurmctld has forgotten since then are unknown" in caplog.text


@pytest.mark.promise("watch-away")
def test_of_a_gap_that_slurmctld_remembers_nobody_is_warned(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.round()
    site.round(later_s=50)
    site.round(later_s=300)
    assert len(site.asked) == 2
    assert "slurmdbd" not in caplog.text
    site.round(later_s=301)
    assert caplog.text.count("slurmdbd cannot be asked") == 1


def test_a_system_that_nothing_was_measured_on_is_said_once_before_it_is_made(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.round()
    assert caplog.messages == [
        f"the service has no measurements of system {site.system!r} and cannot decide for its jobs"
    ]
    site.listed = [_job(), _job(id=43)]
    site.log("periodic-ionodes4")
    site.log("hacc-io-ionodes4", 43)
    caplog.clear()
    site.round(rounds=2)
    assert caplog.text.count("has no measurements of system") == 1


class _Hears:
    """A service that notes what it hears of the queue."""

    def __init__(self) -> None:
        self.queues: list[Mapping[str, Any]] = []

    def measured_systems(self) -> list[str]:
        return ["mn4"]

    def send_queue(self, report: Mapping[str, Any]) -> None:
        self.queues.append(report)


class _Warns(_Hears):
    """A service that warns about each log."""

    def send_trace(self, *_: Any) -> dict[str, Any]:
        return {"bytes": 1, "warnings": ["half of it\nis missing", "all is late"]}

    def send_outcome(self, *_: Any) -> dict[str, Any]:
        return self.send_trace()


def test_a_warning_of_the_service_is_printed_once(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.system = "mn4"
    site.listed = [_job(), _job(id=43)]
    for job_id in (42, 43):
        site.log("periodic-ionodes4", job_id)
        site.log("hacc-io-ionodes4", job_id)
    with opened_state(str(site.folder / "watch.sqlite")) as state:
        assert site.watch(state, _Warns()).round(float("inf"))
    assert caplog.messages == [
        "the service warns: half of it is missing",
        "the service warns: all is late",
    ]


def test_logs_wait_where_the_system_is_spelled_otherwise(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.system = "MN4"
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    with opened_state(str(site.folder / "watch.sqlite")) as state:
        assert not site.watch(state, _Warns()).round(float("inf"))
        assert state.waiting() == 1
    assert "the system is called 'mn4' in ioncast, not 'MN4'" in caplog.text


def test_a_job_that_is_put_back_into_the_queue_is_two_runs(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.listed = [_job(**_RUNS)]
    site.round()
    site.log("periodic-ionodes4")
    site.listed = [_job(**{**_RUNS, "state": "PENDING", "started_s": None})]
    site.round(later_s=10)
    again_s = int(site.now_s) + 5
    site.log("hacc-io-ionodes4", started_s=again_s + 1)
    site.listed = [_job(started_s=again_s, ended_s=again_s + 5, licenses="ionode:2")]
    site.round(later_s=20)
    assert sorted(run["io_nodes"] for run in site.runs()) == [2, 4]
    outcomes = site.outcomes()
    assert [outcome["io_nodes"] for outcome in outcomes] == [4, 2]
    assert [outcome["started"] for outcome in outcomes] == [_utc(_START_S), _utc(again_s)]
    # The job keeps its administrator's comment, and so its decision.
    assert {outcome["decision_id"] for outcome in outcomes} == {"04a9"}
    assert "is rejected" not in caplog.text


def test_a_job_that_completes_before_it_is_queued_again_is_one_run(site: Site) -> None:
    """Slurm 22.05 then gives the present time as its start: 5, 6 and 7 s after the first run."""
    site.listed = [_job(**_RUNS)]
    site.round()
    # On a node whose clock is fast the last step seems to start when the job completes.
    site.log("periodic-ionodes4", started_s=site.now_s + 6)
    for _ in range(3):
        site.listed = [_job(state="COMPLETING", started_s=int(site.now_s) + 5, ended_s=None)]
        site.round(later_s=5)
    site.listed = [_job(**{**_RUNS, "state": "PENDING", "started_s": None})]
    site.round(later_s=30)
    assert [outcome["started"] for outcome in site.outcomes()] == [_utc(_START_S)]
    with opened_state(str(site.folder / "watch.sqlite")) as state:
        assert len([*state.running(), *state.ended()]) == 1


def test_a_job_that_is_put_back_while_no_watch_runs_is_two_runs(site: Site) -> None:
    site.listed = [_job(**_RUNS)]
    site.round()
    site.log("periodic-ionodes4")
    again_s = int(site.now_s) + 5
    # Its first process starts in the second in which Slurm starts the job.
    site.log("hacc-io-ionodes4", started_s=again_s)
    site.listed = [_job(started_s=again_s, ended_s=again_s + 5, licenses="ionode:2")]
    site.round(later_s=20)
    site.round(later_s=400)
    assert sorted(run["io_nodes"] for run in site.runs()) == [2, 4]
    assert sorted(outcome["io_nodes"] for outcome in site.outcomes()) == [2, 4]


def test_an_id_that_slurm_uses_again_is_another_job(site: Site) -> None:
    """Slurm counts from FirstJobId again after MaxJobId, or when it has lost its state."""
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round()
    later_s = int(_START_S + 3 * _HOUR_S)
    other = {"user": "bob", "name": "other", "admin_comment": "ioncast:7777"}
    site.listed = [_job(started_s=later_s, ended_s=later_s + 60, **other)]
    site.log("hacc-io-ionodes4", started_s=later_s + 1)
    site.round(later_s=3 * _HOUR_S, rounds=2)
    outcomes = site.outcomes()
    assert [outcome["decision_id"] for outcome in outcomes] == ["04a9", "7777"]
    assert [outcome["started"] for outcome in outcomes] == [_utc(_START_S), _utc(later_s)]


def test_the_logs_of_a_job_that_slurm_starts_again_unseen_wait_until_slurm_answers(
    site: Site,
) -> None:
    site.listed = [_job()]
    site.round()
    site.failure = SlurmUnreachableError("slurmrestd cannot be reached")
    site.log("periodic-ionodes4")
    # Slurm starts the job again while slurmrestd is away.
    again_s = int(site.now_s) + 20
    site.log("hacc-io-ionodes4", started_s=again_s + 1)
    site.round(later_s=60)
    assert [outcome["started"] for outcome in site.outcomes()] == [_utc(_START_S)]
    site.failure = None
    site.listed = [_job(started_s=again_s, ended_s=again_s + 30, licenses="ionode:2")]
    site.round(later_s=600)
    assert [outcome["io_nodes"] for outcome in site.outcomes()] == [4, 2]


@pytest.mark.promise("watch-log-rejected")
def test_a_damaged_log_is_refused_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.listed = [_job(), _job(id=43)]
    site.log("periodic-ionodes4").write_bytes(b"no log of Darshan's")
    site.log("periodic-ionodes4", 43)
    site.round(rounds=3)
    site.round(later_s=600)
    assert [run["job_id"] for run in site.runs()] == ["43"]
    assert caplog.text.count("its outcome is rejected") == 1
    assert caplog.text.count("its trace is rejected") == 1


@pytest.mark.root
def test_a_log_that_is_another_users_is_not_the_jobs(site: Site) -> None:
    site.listed = [_job(user="nobody")]
    os.chown(site.log("periodic-ionodes4"), 4711, 4711)
    site.round()
    assert not site.runs()
    site.log("hacc-io-ionodes4")
    site.round(later_s=10)
    assert len(site.outcomes()) == len(site.runs()) == 1


@pytest.mark.promise("watch-log-rejected")
def test_whatever_users_call_files_and_jobs_the_watch_goes_on(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.listed = [_job(name="half \ud800 and \n"), _job(id=43, name="x" * 1000)]
    log = site.log("periodic-ionodes4")
    log.rename(log.with_name(os.fsdecode(b'ann\xff\n"_id42-1_3-5-36005-1_1.darshan')))
    bad = site.log("hacc-io-ionodes4")
    bad.write_bytes(b"")
    bad.rename(log.with_name(os.fsdecode(b"ann\xff\nioncast: lie_id42-1_3-5-36005-1_1.darshan")))
    site.log("multiphase-ionodes4", 43)
    site.round(rounds=2)
    assert {run["job_id"] for run in site.runs()} == {"42", "43"}
    assert all("\n" not in message for message in caplog.messages)


class _Deaf(_Hears):
    """A service that can receive no logs."""

    def measured_systems(self) -> list[str]:
        return []


@pytest.mark.promise("watch-killed")
def test_a_log_that_was_sent_is_not_sent_again(site: Site) -> None:
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round(rounds=2)
    with opened_state(str(site.folder / "watch.sqlite")) as state:
        assert site.watch(state, _Deaf()).round(float("inf"))


@pytest.mark.promise("watch-token-wrong")
def test_a_wrong_token_loses_nothing(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    site.round(token="ion_wrong", rounds=3)  # noqa: S106
    assert caplog.text.count("sending logs fails: ") == 1
    assert "answers 401" in caplog.text
    site.round(later_s=60)
    assert len(site.outcomes()) == 1


@pytest.mark.promise("watch-killed")
def test_slurm_that_is_away_keeps_no_log_from_being_sent(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.listed = [_job()]
    site.round()
    site.log("periodic-ionodes4")
    site.failure = SlurmUnreachableError("slurmrestd cannot be reached")
    site.round(later_s=10, rounds=2)
    assert len(site.outcomes()) == 1
    assert caplog.text.count("slurmrestd cannot be reached") == 1


@pytest.mark.promise("watch-killed")
def test_logs_wait_for_a_service_that_is_away(tmp_path: Path) -> None:
    location = str(tmp_path / "ioncast.sqlite")
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, "slurm", "scheduler")
    served = start(tmp_path, "--db", location)
    stop(served)
    site = Site(served, token, tmp_path)
    site.listed = [_job(), _job(id=43)]
    site.log("periodic-ionodes4")
    site.log("hacc-io-ionodes4", 43)
    site.round(rounds=2)
    with running(tmp_path, "--db", location, port=served.port):
        site.round(later_s=600)
        assert len(site.outcomes()) == len(site.runs()) == 2


@pytest.mark.promise("watch-log-folder-missing")
def test_a_folder_of_logs_that_is_away_closes_no_job(site: Site) -> None:
    site.listed = [_job()]
    site.log("periodic-ionodes4")
    away = (site.folder / "logs").rename(site.folder / "away")
    site.round(later_s=1000)
    away.rename(site.folder / "logs")
    site.round(later_s=10)
    assert len(site.outcomes()) == 1


@pytest.mark.promise("watch-second-starts")
def test_a_state_has_one_watch(tmp_path: Path) -> None:
    path = str(tmp_path / "watch.sqlite")
    with (
        opened_state(path),
        pytest.raises(InputError, match="another watch uses this state"),
        opened_state(path),
    ):
        pass


def test_an_unusable_state_file_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "watch.sqlite"
    path.write_text("this is no database, however long it is" * 10)
    with pytest.raises(InputError, match="the state cannot be used"), opened_state(str(path)):
        pass


def test_a_copy_of_a_state_leaves_it_as_it_is(site: Site) -> None:
    path = str(site.folder / "watch.sqlite")
    site.listed = [_job(**_RUNS)]
    site.round()
    with opened_state(path) as state, copied_state(path) as copy:
        assert copy.running() == state.running() != []
        copy.close_run(copy.running()[0], 0.0)
        assert len(state.running()) == 1


def test_old_jobs_are_forgotten_and_running_ones_are_not(site: Site) -> None:
    site.listed = [_job(), _job(id=43, **_RUNS)]
    site.log("periodic-ionodes4")
    site.round(later_s=1000)
    with opened_state(str(site.folder / "watch.sqlite")) as state, state.transaction():
        assert state.prune(site.now_s + 1) == 0
        assert [run.id for run in state.running()] == [43]
        assert not state.paths_of(state.running()[0])


_KILLED = """
import json, logging, os, signal, sys
from pathlib import Path
from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.service_client import Ioncast, ServiceRefusedError
from scheduler_plugin.slurm import Job
from scheduler_plugin.collector.state import opened_state
from scheduler_plugin.collector.steady_time import SteadyTime
from scheduler_plugin.collector.watching import Watch

logging.disable()
told = json.load(sys.stdin)

class Slurm:
    def jobs(self):
        return [Job(**job) for job in told["jobs"]]

    def licences(self):
        return []

def watch(system, state_path, kill_at):
    done = 0
    def count(_statement):
        nonlocal done
        done += 1
        if done == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
    with opened_state(state_path) as state, Ioncast(told["url"], lambda: told["token"]) as service:
        state._database.set_trace_callback(count)
        watch = Watch(state, Slurm(), service, LogFolder(told["logs"], "%Y/%-m/%-d"),
                      system=system, licence="ionode", heartbeat=told["logs"] + "/heartbeat",
                      period_s=10.0, wait_s=300.0,
                      clock=SteadyTime(lambda: told["now_s"], lambda: told["now_s"]))
        # A busy service is asked again.
        while not watch.round(float("inf")):
            told["now_s"] += 5

def in_a_process(*arguments):
    child = os.fork()
    if child == 0:
        watch(*arguments)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

for kill_at in range(1, 1000, told["step"]):
    system, state_path = f"{told['system']}-{kill_at}", f"{told['folder']}/{kill_at}.sqlite"
    ended = in_a_process(system, state_path, kill_at)
    if ended == 0:
        break
    assert ended == -signal.SIGKILL, ended
    assert in_a_process(system, state_path, None) == 0
    print(system)
"""


@pytest.mark.promise("watch-killed")
def test_killed_anywhere_nothing_is_lost_or_doubled(site: Site) -> None:
    again_s = int(_START_S) + 595
    again = _job(id=42, started_s=again_s, ended_s=again_s + 3, licenses="ionode:1")
    jobs = [_job(), again, _job(id=43, licenses="ionode:2"), _job(id=44)]
    site.log("periodic-ionodes4")
    site.log("hacc-io-ionodes4-dxt", started_s=again_s)
    site.log("hacc-io-ionodes4", 43)
    site.log("multiphase-ionodes4", 43)
    for name in _FORKED:
        site.log(name, 44)
    told = {
        "jobs": [vars(job) for job in jobs],
        "url": site.served.url,
        "token": site.token,
        "logs": str(site.folder / "logs"),
        "folder": str(site.folder),
        "system": site.system,
        "now_s": site.now_s,
        "step": 250 // examples(60),
    }
    done = subprocess.run(
        [sys.executable, "-c", _KILLED],
        input=json.dumps(told),
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr
    systems = done.stdout.split()
    assert len(systems) >= 5
    for system in systems:
        site.system = system
        assert sorted(run["job_id"] for run in site.runs()) == ["42", "42", "43", "43", "44"]
        [forked] = [run for run in site.runs() if run["job_id"] == "44"]
        assert moved_bytes(forked) == _FORKED_BYTES
        got = sorted((outcome["job_id"], outcome["io_nodes"]) for outcome in site.outcomes())
        assert got == [("42", 1), ("42", 4), ("43", 2), ("44", 4)]
