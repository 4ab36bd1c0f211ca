"""The import of past jobs with a real service: each log arrives once, whatever stops meanwhile."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ioncast_base.errors import InputError, IoncastError
from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.collector.import_history import HistoryImport
from scheduler_plugin.collector.sending import LogSender
from scheduler_plugin.collector.state import opened_state
from scheduler_plugin.collector.stored_logs import StoredLogs
from scheduler_plugin.service_client import ServiceRefusedError, ServiceUnreachableError
from scheduler_plugin.slurm import Job, SlurmAnswerError, SlurmUnreachableError
from tests.scheduler_plugin.collector import test_watching
from tests.scheduler_plugin.collector.test_watching import (
    _HOUR_S,
    _START_S,
    _job,
    _Patient,
)
from tests.support.serving import Served

pytestmark = pytest.mark.serving

served = test_watching.served
_DAY_S = 24 * _HOUR_S
_UNTIL_S = int(_START_S + _HOUR_S)
_OF_42, _OF_43, _OF_44 = "periodic-ionodes4", "hacc-io-ionodes4", "multiphase-ionodes4"


class Past(test_watching.Site):
    """A service, a folder of logs, and a slurmdbd whose answers a test sets.

    `before` is called before each request that sends logs, `after` with its answer.
    """

    def __init__(self, served: Served, token: str, folder: Path) -> None:
        super().__init__(served, token, folder)
        self.spans: list[tuple[int, int]] = []
        self.sent: list[str] = []
        # Instead of those in the folder.
        self.logs: StoredLogs | None = None
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def accounted_jobs(self, since_s: int, until_s: int) -> list[Job]:
        if self.failure:
            raise self.failure
        self.spans.append((since_s, until_s))
        return [
            job
            for job in self.accounted
            if (job.started_s or 0) < until_s and (job.ended_s or since_s) >= since_s
        ]

    def import_(self, since_s: float = _START_S - _HOUR_S, until_s: float = _UNTIL_S) -> bool:
        """Start an import and return whether everything could be read."""
        self.count: Counter[str] = Counter()
        with (
            opened_state(str(self.folder / "watch-import.sqlite"), "import") as state,
            _Sending(self) as service,
        ):
            sender = LogSender(
                state,
                service,
                self.count,
                system=self.system,
                period_s=1.0,
                is_dry=False,
                clock=lambda: self.now_s,
            )
            past = HistoryImport(
                state,
                self,
                self.logs or LogFolder(self.folder / "logs", "%Y/%-m/%-d"),
                sender,
                self.count,
                licence="ionode",
                clock=lambda: self.now_s,
                sleep=self._sleep,
            )
            try:
                return past.run(int(since_s), int(until_s))
            finally:
                past.sum_up()

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds


class _Sending(_Patient):
    """A client that notes which logs it sends."""

    def __init__(self, past: Past) -> None:
        super().__init__(past.served.url, lambda: past.token)
        self._past = past

    def _send(self, path: str, logs: Any, fields: Any) -> Any:
        self._past.before()
        self._past.sent += [log.name for log in logs]
        answer = super()._send(path, logs, fields)
        self._past.after()
        return answer


@pytest.fixture
def past(served: tuple[Served, str], tmp_path: Path) -> Past:
    """Three jobs, one after the other, each with a log; slurmdbd knows the licences of two."""
    found = Past(*served, tmp_path)
    found.accounted = [
        _job(licenses="ionode:4"),
        _job(id=43, licenses="ionode:4", ended_s=int(_START_S) + 600, admin_comment=""),
        _job(id=44, licenses="", ended_s=int(_START_S) + 610, admin_comment=""),
    ]
    for job, source in ((42, _OF_42), (43, _OF_43), (44, _OF_44)):
        found.log(source, job)
    return found


def io_nodes(past: Past) -> dict[str, int | None]:
    """The I/O nodes of each job whose runs are stored."""
    runs = past.runs()
    assert len({run["job_id"] for run in runs}) == len(runs)
    return {run["job_id"]: run["io_nodes"] for run in runs}


ALL = {"42": 4, "43": 4, "44": None}


def outcomes(past: Past) -> dict[str, tuple[int, str | None]]:
    found = past.outcomes()
    assert len({item["job_id"] for item in found}) == len(found)
    return {item["job_id"]: (item["io_nodes"], item["decision_id"]) for item in found}


def test_past_jobs_are_outcomes_if_their_io_nodes_are_known_and_traces_otherwise(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ioncast.import")
    past.accounted.append(_job(id=45))
    assert past.import_()
    assert io_nodes(past) == ALL
    assert outcomes(past) == {"42": (4, "04a9"), "43": (4, None)}
    assert "slurmdbd knows 4 jobs that ended from " in caplog.text
    assert (
        "4 jobs done, 1 without a log; 1 trace and 2 outcomes sent, 0 rejected, 0 waiting"
    ) in caplog.text


def test_the_newest_jobs_are_sent_first(past: Past) -> None:
    assert past.import_()
    assert [name.split("_id")[1][:2] for name in past.sent] == ["44", "43", "42"]


def test_only_jobs_that_ended_in_the_span_are_sent(past: Past) -> None:
    assert past.import_(_START_S + 600, _START_S + 610)
    assert io_nodes(past) == {"43": 4}


def test_an_import_that_is_done_sends_nothing_again(past: Past) -> None:
    assert past.import_()
    past.sent.clear()
    assert past.import_()
    assert past.sent == []
    assert past.count["done"] == 3


@pytest.mark.promise("watch-import-history")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("request_number", [1, 2, 3])
def test_an_import_that_is_killed_goes_on(past: Past, when: str, request_number: int) -> None:
    """Before a request, or after the service has stored the logs and before its answer is noted."""
    requests = itertools.count(1)

    def kill() -> None:
        if next(requests) == request_number:
            raise KeyboardInterrupt

    setattr(past, when, kill)
    with pytest.raises(KeyboardInterrupt):
        past.import_()
    setattr(past, when, lambda: None)
    assert past.import_()
    assert io_nodes(past) == ALL
    assert outcomes(past) == {"42": (4, "04a9"), "43": (4, None)}
    # Only the log whose answer was lost is sent twice.
    assert len(past.sent) == 3 + (when == "after")


@pytest.mark.promise("watch-import-history")
def test_an_import_that_is_killed_while_it_reads_jobs_goes_on(past: Past) -> None:
    past.failure = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        past.import_()
    past.failure = None
    assert past.import_()
    assert io_nodes(past) == ALL


def test_jobs_of_the_watch_stay_as_it_sent_them(past: Past) -> None:
    # slurmctld still has the licences of job 43, and ioncast decided on 0 for job 44.
    past.listed = [past.accounted[1], _job(id=44, licenses="", ended_s=int(_START_S) + 610)]
    past.round(rounds=2)
    assert outcomes(past) == {"43": (4, None), "44": (0, "04a9")}
    assert past.import_()
    assert io_nodes(past) == {"42": 4, "43": 4, "44": 0}
    assert outcomes(past) == {"42": (4, "04a9"), "43": (4, None), "44": (0, "04a9")}


def test_jobs_of_the_import_stay_if_the_watch_sends_them_too(past: Past) -> None:
    assert past.import_()
    past.listed = past.accounted[:2]
    past.round(rounds=2)
    assert io_nodes(past) == ALL
    assert outcomes(past) == {"42": (4, "04a9"), "43": (4, None)}


def test_the_logs_of_a_job_that_ran_twice_belong_to_their_runs(past: Past) -> None:
    """The second run began a minute after the first one, and is still running."""
    first, again = _job(), {"started_s": int(_START_S) + 650, "state": "RUNNING", "ended_s": None}
    past.accounted = [first, _job(**again)]
    past.log(_OF_43, started_s=_START_S + 655)
    assert past.import_()
    [sent] = past.sent
    assert _OF_42 in sent
    past.accounted[1] = _job(**again | {"state": "COMPLETED", "ended_s": int(_START_S) + 900})
    assert past.import_()
    assert len(past.runs()) == len(past.outcomes()) == 2


def test_logs_that_come_later_are_sent_by_the_next_import(past: Past) -> None:
    """For example from an archive, or after the folder in the settings was corrected."""
    logs = past.folder / "logs"
    logs.rename(past.folder / "archive")
    logs.mkdir()
    assert past.import_()
    assert past.count["without"] == 3
    logs.rmdir()
    (past.folder / "archive").rename(logs)
    assert past.import_()
    assert io_nodes(past) == ALL


def test_a_rejected_log_is_one_line_and_stops_nothing(
    past: Past, caplog: pytest.LogCaptureFixture
) -> None:
    bad = past.log(_OF_44, 44)
    bad.write_bytes(b"damaged")
    past.accounted[2] = _job(id=44, licenses="", name="a\x1b[2J\nb\ud800")
    for _ in range(2):
        assert past.import_()
    assert io_nodes(past) == {"42": 4, "43": 4}
    [line] = [each for each in caplog.messages if "rejected (" in each]
    assert line.startswith(f"job 44 of ann: its trace is rejected ({bad}): ")


def test_a_folder_that_cannot_be_read_is_said_and_its_logs_are_sent_later(
    past: Past, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    past.accounted.append(_job(id=45, started_s=int(_START_S - _DAY_S)))
    closed = past.log("multiphase-ionodes0", 45, _START_S - _DAY_S).parent
    listdir = os.listdir

    def list_open(folder: Path) -> list[str]:
        if folder == closed:
            raise PermissionError(13, "Permission denied", str(folder))
        return listdir(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", list_open)
        assert not past.import_()
    assert io_nodes(past) == ALL
    assert f"{closed}: the folder of the logs cannot be read: Permission denied" in caplog.text
    assert past.import_()
    assert io_nodes(past) == {**ALL, "45": 4}


def fail_until(past: Past, until_s: float, error: IoncastError) -> Callable[[], None]:
    def fail() -> None:
        if past.now_s < until_s:
            raise error

    return fail


@pytest.mark.parametrize(
    "error",
    [
        ServiceUnreachableError("the service restarts"),
        ServiceRefusedError(429, "too many requests", where="here", retry_after_s=30.0),
        ServiceRefusedError(503, "busy", where="here"),
    ],
)
def test_a_service_that_is_away_for_minutes_is_waited_for(past: Past, error: IoncastError) -> None:
    past.before = fail_until(past, past.now_s + 300, error)
    assert past.import_()
    assert io_nodes(past) == ALL


@pytest.mark.promise("watch-import-history")
@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (ServiceUnreachableError("the service restarts"), True),
        (ServiceRefusedError(401, "the token is unknown", where="here"), False),
    ],
)
def test_a_service_that_stays_away_ends_the_import_and_nothing_is_lost(
    past: Past, error: IoncastError, waits: bool
) -> None:
    began_s = past.now_s
    past.before = fail_until(past, float("inf"), error)
    with pytest.raises(type(error)):
        past.import_()
    assert (past.now_s - began_s >= 600) == waits
    past.before = lambda: None
    assert past.import_()
    assert io_nodes(past) == ALL


@pytest.mark.promise("watch-import-history")
def test_a_slurmdbd_that_stays_away_or_is_missing_ends_the_import(past: Past) -> None:
    began_s = past.now_s
    past.failure = SlurmAnswerError("there is no slurmdbd")
    with pytest.raises(SlurmAnswerError):
        past.import_()
    assert past.now_s == began_s
    past.failure = SlurmUnreachableError("slurmdbd restarts")
    with pytest.raises(SlurmUnreachableError):
        past.import_()
    assert past.now_s >= began_s + 600


def test_slurmdbd_is_asked_for_at_most_a_day_and_for_an_hour_where_jobs_are_many(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_plugin.collector.import_history._MANY_JOBS", 3)
    assert past.import_(_START_S - 10 * _DAY_S, _UNTIL_S)
    begins = [begin for begin, _ in past.spans]
    ends = [end for _, end in past.spans]
    assert begins == [int(_START_S - 10 * _DAY_S), *ends[:-1]]
    assert ends[-1] == _UNTIL_S
    lengths = [end - begin for begin, end in past.spans]
    assert lengths[:6] == [_HOUR_S * 2**n for n in range(5)] + [_DAY_S]
    assert max(lengths) == _DAY_S
    assert len(past.spans) < 20
    past.spans.clear()
    assert past.import_(_START_S, _START_S + 3 * _HOUR_S)
    assert [end - begin for begin, end in past.spans] == [_HOUR_S, _HOUR_S, _HOUR_S]


def test_each_folder_is_listed_once(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_plugin.collector.import_history._RUNS_AT_ONCE", 2)
    listdir, listed = os.listdir, Counter[Path]()

    def counting(folder: Path) -> list[str]:
        listed[folder] += 1
        return listdir(folder)

    monkeypatch.setattr(os, "listdir", counting)
    for day in range(5):
        began_s = _START_S - day * _DAY_S
        past.log(_OF_42, 100 + day, began_s)
        past.accounted.append(_job(id=100 + day, started_s=int(began_s), ended_s=int(_START_S)))
    assert past.import_()
    assert len(listed) == 5
    assert set(listed.values()) == {1}


def test_the_names_of_few_folders_are_remembered(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_plugin.collector.darshan_logs._MOST_NAMES", 2)
    past.accounted.append(_job(id=45, started_s=int(_START_S - _DAY_S)))
    past.log("multiphase-ionodes0", 45, _START_S - _DAY_S)
    assert past.import_()
    assert io_nodes(past) == {**ALL, "45": 4}


def test_only_one_import_uses_a_state(past: Past) -> None:
    with (
        opened_state(str(past.folder / "watch-import.sqlite")),
        pytest.raises(InputError, match="another import uses this state"),
    ):
        past.import_()
