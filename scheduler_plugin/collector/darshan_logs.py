"""The Darshan logs of a job: find them by name and time, and copy them safely.

Darshan writes ``USER_EXE_idJOB-PID_MONTH-DAY-SECONDS-HASH.darshan_partial`` in the folder of the
day, and renames a complete log to ``…-HASH_DURATION.darshan`` (`darshan_get_logfile_name` and
`darshan_log_finalize` in darshan-core.c of Darshan 3.5; before 3.3 without the PID). DAY and
SECONDS since midnight are the process's start in local time. JOB is the first number in
$SLURM_JOBID. A name that would be too long is shortened to ``idJOB``.
"""

from __future__ import annotations

import errno
import math
import os
import pwd
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ioncast_base.errors import InputError

_NAME = re.compile(
    r"""(?:.*_)?id(?P<job>[0-9]{1,10})
    (?:(?:-[0-9]+)?_(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})-(?P<second>[0-9]{1,5})-[0-9]+)?
    (?:_[0-9]+)?\.darshan(?P<partial>_partial)?""",
    re.VERBOSE | re.DOTALL,
)
# About 100 MB.
_MOST_NAMES = 250_000
# The service accepts no larger requests, by default.
_LARGEST_LOG_MIB = 256
# How far the clocks of Slurm, the compute nodes and this machine may differ.
CLOCKS_S = 120.0


@dataclass(frozen=True, slots=True)
class LogName:
    """The name of a log, and its parts.

    Attributes
    ----------
    month, day, second : int or None
        When the process started, in local time; `second` counts from midnight. None in a
        shortened name.
    """

    name: str
    job_id: int
    month: int | None
    day: int | None
    second: int | None
    is_partial: bool

    def started_between(self, since_s: float, until_s: float) -> bool | None:
        """Whether the process started from one Unix time on and before another one.

        None for a shortened name.
        """
        if self.month is None or self.day is None or self.second is None:
            return None
        years = {_local(since_s).year, _local(until_s).year}
        moments = (_moments(year, self.month, self.day, self.second) for year in years)
        return any(since_s <= moment < until_s for found in moments for moment in found)


@dataclass(frozen=True)
class FoundLogs:
    """The complete logs of a job, and whether Darshan is still writing another one."""

    paths: tuple[Path, ...]
    is_writing: bool


def parse_log_name(name: str) -> LogName | None:
    """Read the name of a log; None if Darshan does not write such names.

    Examples
    --------
    >>> parse_log_name("ann_my_id_app_id42-7_12-31-86399-123_1.darshan").job_id
    42
    >>> parse_log_name("app.darshan") is None
    True
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    month, day, second = (
        int(match[part]) if match[part] else None for part in ("month", "day", "second")
    )
    return LogName(name, int(match["job"]), month, day, second, match["partial"] is not None)


class LogFolder:
    """A site's folder of logs."""

    def __init__(self, folder: str | Path, layout: str) -> None:
        self._folder = Path(folder)
        self._layout = layout
        # The folder that was used last is the last one.
        self._listed: dict[Path, Mapping[int, list[LogName]]] = {}

    def check(self) -> None:
        """Raise InputError when the folder cannot be read."""
        try:
            next(self._folder.iterdir(), None)
        except OSError as error:
            raise _unreadable(self._folder, error) from error

    def refresh(self) -> None:
        """Forget the listings of folders, so that new logs are found."""
        self._listed.clear()

    def logs_of(
        self,
        job_id: int,
        started_s: float,
        ended_s: float,
        *,
        after_s: float | None = None,
        before_s: float | None = None,
        known_s: float = math.inf,
    ) -> FoundLogs:
        """The logs of one run of a job, by id and time, because Slurm uses ids again.

        A log belongs to one run. Between two runs it belongs to the nearer one.

        Parameters
        ----------
        known_s : float
            Unix time until which all runs are known. A later log may be that of the next run.
        """
        since_s, until_s = span_of_run(
            started_s, ended_s, after_s=after_s, before_s=before_s, known_s=known_s
        )
        paths, is_writing = set(), False
        for folder in self._folders(since_s, until_s):
            for log in self._logs_in(folder).get(job_id, ()):
                path = folder / log.name
                when = log.started_between(since_s, until_s)
                if when or (when is None and _written_between(path, since_s, until_s)):
                    is_writing |= log.is_partial
                    if not log.is_partial:
                        paths.add(path)
        return FoundLogs(tuple(sorted(paths)), is_writing)

    def _folders(self, since_s: float, until_s: float) -> list[Path]:
        days = _days(_local(since_s).date(), _local(until_s).date())
        return list(dict.fromkeys(self._folder / day.strftime(self._layout) for day in days))

    def _logs_in(self, folder: Path) -> Mapping[int, list[LogName]]:
        if folder in self._listed:
            self._listed[folder] = self._listed.pop(folder)
        else:
            self._listed[folder] = self._list(folder)
            self._forget_oldest()
        return self._listed[folder]

    def _forget_oldest(self) -> None:
        """Forget listings so that the others have few enough names; the last one stays."""
        counts = {folder: sum(map(len, logs.values())) for folder, logs in self._listed.items()}
        names = sum(counts.values())
        for folder in list(self._listed)[:-1]:
            if names <= _MOST_NAMES:
                break
            names -= counts[folder]
            del self._listed[folder]

    def _list(self, folder: Path) -> Mapping[int, list[LogName]]:
        logs = defaultdict(list)
        try:
            # Path.iterdir would create a Path for each log of the day.
            for name in os.listdir(folder):  # noqa: PTH208
                if log := parse_log_name(name):
                    logs[log.job_id].append(log)
        except FileNotFoundError:
            # A day without logs has no folder; but the folder of all logs must be there.
            self.check()
        except OSError as error:
            raise _unreadable(folder, error) from error
        return logs


def span_of_run(
    started_s: float,
    ended_s: float,
    *,
    after_s: float | None,
    before_s: float | None,
    known_s: float,
) -> tuple[float, float]:
    """The Unix times between which the logs of a run start, see `LogFolder.logs_of`.

    `after_s` is the end of the run before, `before_s` the start of the next run.
    """
    since_s, until_s = started_s - CLOCKS_S, min(ended_s + CLOCKS_S, known_s)
    if after_s is not None:
        since_s = max(since_s, _border(after_s, started_s))
    if before_s is not None:
        until_s = min(until_s, _border(ended_s, before_s))
    return since_s, until_s


def _border(ended_s: float, started_s: float) -> float:
    """The time between the end of a run and the start of the next one, which may seem earlier."""
    return (min(ended_s, started_s) + started_s) / 2


def copied_log(path: Path, user: str) -> BytesIO:
    """Copy a log of a user's job into memory, so that nobody changes it while it is sent."""
    with open_log(path, user) as file:
        before = os.fstat(file.fileno())
        if before.st_size > _LARGEST_LOG_MIB << 20:
            raise InputError(f"it is larger than {_LARGEST_LOG_MIB} MiB", where=str(path))
        # None if a mandatory lock keeps the bytes back.
        content = file.read(before.st_size + 1) or b""
        after = os.fstat(file.fileno())
    if len(content) != before.st_size or after.st_mtime_ns != before.st_mtime_ns:
        raise OSError(errno.EBUSY, "it changes while it is read", str(path))
    return BytesIO(content)


def open_log(path: Path, user: str) -> BinaryIO:
    """Open a log of a user's job.

    Everybody can write files to Darshan's folders. So a log must be a regular file that belongs
    to the job's user, or to root or this process's user, who may have collected the logs.
    """
    # A link could lead to any file. Opening a FIFO could block forever, and a file with a lease
    # for 45 s.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError("this is a link", where=str(path)) from error
        if error.errno == errno.ENXIO:
            raise InputError("this is not a regular file", where=str(path)) from error
        if error.errno == errno.EWOULDBLOCK:
            error.strerror = "another process has a lease on it"
        raise
    try:
        _check(os.fstat(descriptor), path, user)
    except InputError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check(status: os.stat_result, path: Path, user: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InputError("this is not a regular file", where=str(path))
    owners = {0, os.geteuid(), _uid(user)}
    if status.st_uid not in owners and None not in owners:
        raise InputError(f"it belongs to uid {status.st_uid}, not to {user}", where=str(path))


def _uid(user: str) -> int | None:
    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):
        return None


def _local(moment_s: float) -> datetime:
    return datetime.fromtimestamp(moment_s).astimezone()


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(number)


def _moments(year: int, month: int, day: int, second: int) -> Iterator[float]:
    """The Unix times of a local time; two of them in the hour that summer time repeats."""
    try:
        clock = datetime(year, month, day, second // 3600, second // 60 % 60, second % 60)
    except ValueError:
        return
    yield from {clock.replace(fold=fold).timestamp() for fold in (0, 1)}


def _written_between(path: Path, since_s: float, until_s: float) -> bool:
    try:
        return since_s <= path.lstat().st_mtime < until_s
    except OSError:
        return False


def _unreadable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"the folder of the logs cannot be read: {error.strerror}",
        where=str(folder),
        remedy="make the folder or correct its permissions (docs/slurm.md, Darshan's folders), or"
        " correct `folder` in the settings' table [darshan]",
    )
