"""Darshan's logs of a job: where they are, and which are its own.

Darshan writes ``USER_EXE_idJOB-PID_MONTH-DAY-SECONDS-HASH.darshan_partial``, in the folder of the
day, and renames it to ``…-HASH_DURATION.darshan`` when it is whole (`darshan_get_logfile_name`
and `darshan_log_finalize` in darshan-core.c of Darshan 3.5; before 3.3 without the PID). Day and
seconds since midnight are those of the process's start, in local time. Of a name that would be
too long only ``idJOB`` is left. JOB is what the first number of $SLURM_JOBID is.
"""

from __future__ import annotations

import errno
import os
import pwd
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from ioncast_base.errors import InputError

_NAME = re.compile(
    r"""(?:.*_)?id(?P<job>[0-9]{1,10})
    (?:(?:-[0-9]+)?_(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})-(?P<second>[0-9]{1,5})-[0-9]+)?
    (?:_[0-9]+)?\.darshan(?P<partial>_partial)?""",
    re.VERBOSE | re.DOTALL,
)
_NO_FILES: Mapping[int, list[LogName]] = {}


@dataclass(frozen=True)
class LogName:
    """What the name of a log says.

    Attributes
    ----------
    name : str
        The name itself.
    job_id : int
        The job's.
    month, day, second : int or None
        When the process started: second of that day, local time. None in a shortened name.
    is_partial : bool
        Whether it is still being written.
    """

    name: str
    job_id: int
    month: int | None
    day: int | None
    second: int | None
    is_partial: bool

    def started_between(self, since_s: float, until_s: float) -> bool | None:
        """Whether its process started within a span of Unix times; None where it does not say."""
        if self.month is None or self.day is None or self.second is None:
            return None
        years = {_local(since_s).year, _local(until_s).year}
        moments = (_moments(year, self.month, self.day, self.second) for year in years)
        return any(since_s <= moment <= until_s for found in moments for moment in found)


@dataclass(frozen=True)
class FoundLogs:
    """The logs of a job, and whether more are being written."""

    paths: tuple[Path, ...]
    is_writing: bool


def parse_log_name(name: str) -> LogName | None:
    """Read the name of a log; None where it is no name of Darshan's.

    Examples
    --------
    >>> parse_log_name("ann_my_id_app_id42-7_12-31-86399-123_1.darshan").job_id
    42
    >>> parse_log_name("app.darshan") is None
    True
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    month, day, second = (
        int(found[part]) if found[part] else None for part in ("month", "day", "second")
    )
    return LogName(name, int(found["job"]), month, day, second, found["partial"] is not None)


class LogFolder:
    """A site's folder of logs.

    Parameters
    ----------
    folder : str or Path
        The folder of all logs.
    layout : str
        The folder of a day below it, as strftime has it.
    slack_s : float
        How far clocks may be apart.
    """

    def __init__(self, folder: str | Path, layout: str, slack_s: float = 120.0) -> None:
        self._folder = Path(folder)
        self._layout = layout
        self._slack_s = slack_s
        self._listed: dict[Path, Mapping[int, list[LogName]]] = {}

    def check(self) -> None:
        """Raise InputError when the folder cannot be read."""
        try:
            next(self._folder.iterdir(), None)
        except OSError as error:
            raise _unreadable(self._folder, error) from error

    def refresh(self) -> None:
        """List folders anew from now on."""
        self._listed.clear()

    def logs_of(
        self,
        job_id: int,
        started_s: float,
        ended_s: float,
        *,
        after_s: float | None = None,
        before_s: float | None = None,
    ) -> FoundLogs:
        """The logs of a job that ran at a time: ids are used again.

        Parameters
        ----------
        job_id : int
            The job's.
        started_s, ended_s : float
            Its Unix times.
        after_s, before_s : float, optional
            The end of an earlier job of that id, and the start of a later one.

        Raises
        ------
        InputError
            When a folder cannot be read.
        """
        since_s, until_s = started_s - self._slack_s, ended_s + self._slack_s
        if after_s is not None:
            since_s = max(since_s, min(after_s, started_s))
        if before_s is not None:
            until_s = min(until_s, before_s)
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
        if folder not in self._listed:
            self._listed[folder] = self._list(folder)
        return self._listed[folder]

    def _list(self, folder: Path) -> Mapping[int, list[LogName]]:
        logs = defaultdict(list)
        try:
            # Path.iterdir makes a path of each of a day's logs.
            for name in os.listdir(folder):  # noqa: PTH208
                if log := parse_log_name(name):
                    logs[log.job_id].append(log)
        except FileNotFoundError:
            # A day without logs, unless all are away.
            self.check()
            return _NO_FILES
        except OSError as error:
            raise _unreadable(folder, error) from error
        return logs


def open_log(path: Path, user: str) -> BinaryIO:
    """Open a log of a user's job.

    Everybody may put files where Darshan puts its logs: what is no file, or not the user's, is
    none of the job's logs. (Who gathers logs may have made them root's, or their own.)

    Raises
    ------
    InputError
        When it is not the job's.
    OSError
        When it cannot be opened.
    """
    # A link may lead anywhere, and to open a FIFO may take for ever.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError("it is a link", where=str(path)) from error
        raise
    try:
        _check(os.fstat(descriptor), path, user)
    except InputError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check(status: os.stat_result, path: Path, user: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise InputError("it is no file", where=str(path))
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
    """The Unix times of a local time; there are two of it when summer time ends."""
    try:
        clock = datetime(year, month, day, second // 3600, second // 60 % 60, second % 60)
    except ValueError:
        return
    yield from {clock.replace(fold=fold).timestamp() for fold in (0, 1)}


def _written_between(path: Path, since_s: float, until_s: float) -> bool:
    try:
        return since_s <= path.lstat().st_mtime <= until_s
    except OSError:
        return False


def _unreadable(folder: Path, error: OSError) -> InputError:
    return InputError(f"the folder of the logs cannot be read: {error.strerror}", where=str(folder))
