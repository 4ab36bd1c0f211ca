"""Finding the Darshan logs of a job by their names, folders and times."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from scheduler_plugin.collector.darshan_logs import LogFolder, open_log, parse_log_name

_LAYOUT = "%Y/%-m/%-d"
# Characters that file names may have.
_words = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=30
)
_numbers = st.integers(0, 2**64 - 1)


def _moment(text: str) -> float:
    """The Unix time of a local time."""
    return datetime.fromisoformat(text).timestamp()


def _name(job_id: int, started: str, *, pid: int | None = 77, end: str = "_1.darshan") -> str:
    """A name in the form of darshan_get_logfile_name."""
    when = datetime.fromisoformat(started)
    second = when.hour * 3600 + when.minute * 60 + when.second
    process = "" if pid is None else f"-{pid}"
    return f"ann_app_id{job_id}{process}_{when.month}-{when.day}-{second}-123456789{end}"


def _log(folder: Path, job_id: int, started: str, **how: object) -> Path:
    """Write a log where Darshan would."""
    when = datetime.fromisoformat(started)
    day = folder / f"{when.year}/{when.month}/{when.day}"
    day.mkdir(parents=True, exist_ok=True)
    path = day / _name(job_id, started, **how)  # type: ignore[arg-type]
    path.write_bytes(b"log")
    return path


def _found(folder: Path, job_id: int, started: str, ended: str) -> set[Path]:
    logs = LogFolder(folder, _LAYOUT)
    return set(logs.logs_of(job_id, _moment(started), _moment(ended)).paths)


@given(_words, _words, st.integers(0, 2**31 - 1), st.none() | _numbers, _numbers, st.booleans())
def test_the_job_is_read_from_any_name_that_darshan_makes(
    user: str, program: str, job_id: int, pid: int | None, number: int, is_partial: bool
) -> None:
    process = "" if pid is None else f"-{pid}"
    end = ".darshan_partial" if is_partial else "_3.darshan"
    found = parse_log_name(f"{user}_{program}_id{job_id}{process}_12-31-86399-{number}{end}")
    assert found is not None
    assert found.job_id == job_id
    assert (found.month, found.day, found.second) == (12, 31, 86399)
    assert found.is_partial == is_partial


@given(_words)
def test_a_file_name_that_darshan_does_not_write_is_not_a_log(name: str) -> None:
    assert parse_log_name(name) is None


def test_names_of_genuine_logs_are_read(shared_data: Path) -> None:
    names = [path.name for path in (shared_data / "darshan-logs").rglob("*_id*.darshan")]
    jobs = {found.job_id for name in names if (found := parse_log_name(name))}
    assert len(names) == sum(parse_log_name(name) is not None for name in names) >= 20
    # Names of Darshan without PID and with it.
    assert {4373053, 438090, 4681120, 1057716, 3116902} <= jobs


def test_a_shortened_name_and_one_without_duration_are_read() -> None:
    assert parse_log_name("id42_1.darshan") == parse_log_name("id42_1.darshan")
    for name in ("id42.darshan", "id42_1.darshan", "a_b_id42-1_6-2-60198-98.darshan"):
        found = parse_log_name(name)
        assert found is not None
        assert found.job_id == 42


def test_logs_of_other_jobs_and_other_times_are_not_the_jobs(tmp_path: Path) -> None:
    mine = _log(tmp_path, 42, "2026-03-05 10:00:05")
    _log(tmp_path, 43, "2026-03-05 10:00:05")
    _log(tmp_path, 42, "2026-03-05 08:00:00")
    assert _found(tmp_path, 42, "2026-03-05 10:00", "2026-03-05 10:30") == {mine}


def test_an_id_that_is_used_again_a_year_later_finds_its_own_log(tmp_path: Path) -> None:
    first = _log(tmp_path, 42, "2025-03-05 10:00:05")
    second = _log(tmp_path, 42, "2026-03-05 10:00:05")
    assert _found(tmp_path, 42, "2025-03-05 10:00", "2025-03-05 10:30") == {first}
    assert _found(tmp_path, 42, "2026-03-05 10:00", "2026-03-05 10:30") == {second}


@pytest.mark.parametrize("day", ["2026-03-05", "2025-12-31", "2024-02-28"])
def test_steps_before_and_after_midnight_are_found(tmp_path: Path, day: str) -> None:
    evening = _moment(f"{day} 23:50")
    after = datetime.fromtimestamp(evening + 1200).isoformat(" ", "seconds")
    logs = {_log(tmp_path, 42, f"{day} 23:55:00"), _log(tmp_path, 42, after)}
    assert _found(tmp_path, 42, f"{day} 23:50", after) == logs


def test_a_job_of_many_days_is_looked_for_in_all_of_them(tmp_path: Path) -> None:
    days = ("2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02")
    logs = {_log(tmp_path, 42, f"{day} 12:00:00") for day in days}
    assert _found(tmp_path, 42, "2026-02-27 11:00", "2026-03-02 13:00") == logs


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_both_hours_at_the_end_of_summer_time_are_meant_by_a_name(tmp_path: Path) -> None:
    # On 2026-10-25 it is 02:30 twice in Berlin: at 00:30 and at 01:30 UTC.
    log = _log(tmp_path, 42, "2026-10-25 02:30:00")
    for hour in ("00", "01"):
        moment = datetime.fromisoformat(f"2026-10-25T{hour}:30:00+00:00").timestamp()
        found = LogFolder(tmp_path, _LAYOUT).logs_of(42, moment - 60, moment + 60)
        assert set(found.paths) == {log}


def test_a_log_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    _log(tmp_path, 42, "2026-03-05 10:00:05", end=".darshan_partial")
    logs = LogFolder(tmp_path, _LAYOUT)
    span = (_moment("2026-03-05 10:00"), _moment("2026-03-05 10:30"))
    assert logs.logs_of(42, *span).is_writing
    assert not logs.logs_of(42, *span).paths


def test_names_without_time_go_by_when_the_file_was_written(tmp_path: Path) -> None:
    written = _log(tmp_path, 42, "2026-03-05 10:00:05").with_name("id42_1.darshan")
    written.write_bytes(b"log")
    os.utime(written, times=(_moment("2026-03-05 10:20"),) * 2)
    assert written in _found(tmp_path, 42, "2026-03-05 10:00", "2026-03-05 10:30")
    os.utime(written, times=(_moment("2026-03-05 12:00"),) * 2)
    assert written not in _found(tmp_path, 42, "2026-03-05 10:00", "2026-03-05 10:30")


def test_a_job_that_ran_twice_has_the_logs_of_each_run(tmp_path: Path) -> None:
    first, second = (_log(tmp_path, 42, f"2026-03-05 10:0{minute}:30") for minute in (0, 1))
    logs = LogFolder(tmp_path, _LAYOUT)
    start, again, end = (_moment(f"2026-03-05 10:0{minute}") for minute in (0, 1, 2))
    assert logs.logs_of(42, start, again, before_s=again).paths == (first,)
    assert logs.logs_of(42, again, end, after_s=again).paths == (second,)


@pytest.mark.parametrize("pause_s", [0, 1, 60, 3600])
@pytest.mark.parametrize("clock_s", [-2, 0, 2])
def test_a_log_belongs_to_one_run_of_a_job_that_is_started_again(
    tmp_path: Path, pause_s: int, clock_s: int
) -> None:
    """A process may start in the same second as its job, on a node whose clock differs."""
    start = _moment("2026-03-05 10:00")
    end, again = start + 60, start + 60 + pause_s
    logs = LogFolder(tmp_path, _LAYOUT)
    owners = []
    for moment in (start, end - 3, again, again + 10):
        when = datetime.fromtimestamp(moment + clock_s).isoformat(" ", "seconds")
        log = _log(tmp_path, 42, when, pid=int(moment))
        logs.refresh()
        first = logs.logs_of(42, start, end, before_s=again).paths
        second = logs.logs_of(42, again, again + 60, after_s=end).paths
        assert (log in first) + (log in second) == 1
        owners.append(2 if log in second else 1)
    # With a clock that is slow by more than half of the pause the log is taken for the first run's.
    expected = 1 if clock_s < 0 and pause_s < 60 else 2
    assert owners == [1, 1, expected, 2]


def test_the_end_of_a_run_may_be_known_only_after_the_next_start(tmp_path: Path) -> None:
    """The watch learns of a requeue from the next run, if it was away."""
    first, second = (_log(tmp_path, 42, f"2026-03-05 10:{minute}") for minute in ("00", "10"))
    logs = LogFolder(tmp_path, _LAYOUT)
    start, again, seen = (_moment(f"2026-03-05 10:{minute}") for minute in ("00", "10", "30"))
    assert logs.logs_of(42, start, seen, before_s=again).paths == (first,)
    assert logs.logs_of(42, again, seen, after_s=seen).paths == (second,)


def test_a_log_that_is_newer_than_the_known_runs_waits(tmp_path: Path) -> None:
    """The job may have been started again since Slurm was asked."""
    first, second = (_log(tmp_path, 42, f"2026-03-05 10:00:{second}") for second in ("05", "40"))
    logs = LogFolder(tmp_path, _LAYOUT)
    span = (_moment("2026-03-05 10:00"), _moment("2026-03-05 10:00:30"))
    assert logs.logs_of(42, *span, known_s=span[1] + 5).paths == (first,)
    assert logs.logs_of(42, *span, known_s=span[1] + 60).paths == (first, second)


def test_one_folder_may_hold_all_logs(tmp_path: Path) -> None:
    log = tmp_path / _name(42, "2025-12-31 23:59:00")
    log.write_bytes(b"log")
    logs = LogFolder(tmp_path, ".")
    assert logs.logs_of(42, _moment("2025-12-31 23:00"), _moment("2026-01-01 01:00")).paths == (
        log,
    )


def test_a_folder_that_is_away_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    logs = LogFolder(tmp_path / "gone", _LAYOUT)
    with pytest.raises(InputError, match="cannot be read"):
        logs.logs_of(42, 0.0, 1.0)


def test_other_things_than_files_and_files_of_others_are_not_logs(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link.darshan").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="this is a link"):
        open_log(tmp_path / "link.darshan", "root")
    (tmp_path / "folder.darshan").mkdir()
    with pytest.raises(InputError, match="this is not a regular file"):
        open_log(tmp_path / "folder.darshan", "root")
    os.mkfifo(tmp_path / "fifo.darshan")
    with pytest.raises(InputError, match="this is not a regular file"):
        open_log(tmp_path / "fifo.darshan", "root")


@pytest.mark.root
def test_a_log_belongs_to_the_user_of_the_job(tmp_path: Path) -> None:
    path = tmp_path / "app.darshan"
    path.write_bytes(b"log")
    os.chown(path, 4711, 4711)
    with pytest.raises(InputError, match="it belongs to uid 4711, not to nobody"):
        open_log(path, "nobody")
    with open_log(path, "somebody whom this machine does not know") as log:
        assert log.read() == b"log"
