"""Rows of a check, and their sources: each may hang, be missing or be forbidden."""

from __future__ import annotations

import os
import pwd
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from ioncast_base.errors import InputError, IoncastError
from ioncast_base.visible_text import visible

# A command or a request may take so long, and all sources that are asked at once a little longer.
ANSWER_S = 10.0
PATIENCE_S = 30.0
AGAIN = "run this command again when it answers"
# cron's PATH does not have these folders.
_FOLDERS = ("/usr/local/bin", "/usr/sbin", "/sbin", "/opt/slurm/bin")
_LONGEST_REASON = 300
_Value = TypeVar("_Value")
Status = Literal["OK", "WARN", "FAIL"]


@dataclass(frozen=True)
class Row:
    """One row of a check.

    Attributes
    ----------
    status : str
        ``OK``; ``WARN`` for a problem that loses nothing yet, and for a source that only root may
        read; ``FAIL`` for a part that does not work or is not safe.
    subject : str
        The thing that was looked at, in a few words.
    remedy : str
        Advice; empty if nothing needs to be done.
    """

    status: Status
    subject: str
    found: str
    remedy: str = ""


class MissingSource(InputError):  # noqa: N818  it is no error of the check
    """A source that tells nothing."""

    def __init__(self, reason: str, remedy: str = "", *, needs_root: bool = False) -> None:
        super().__init__(reason, remedy=remedy)
        self.needs_root = needs_root


class SiteCheck:
    """A function that asks sources, with its inputs, and yields their rows.

    If a source, such as an input, tells nothing, a row about `subject` says so; without a subject
    none does. `remedy` counts if the source has none.
    """

    def __init__(
        self, subject: str, rows: Callable[..., Iterable[Row]], *inputs: Any, remedy: str = AGAIN
    ) -> None:
        self.subject, self.remedy, self._rows, self._inputs = subject, remedy, rows, inputs
        # Rows before a source that hangs or fails count.
        self.rows: list[Row] = []

    def run(self) -> None:
        """Fill `rows`."""
        for source in self._inputs:
            if isinstance(source, MissingSource):
                raise source
        for row in self._rows(*self._inputs):
            self.rows.append(row)


def ok(subject: str, found: str) -> Row:
    """A row about a thing that is as it should be."""
    return Row("OK", subject, visible(found))


def warn(subject: str, found: str, remedy: str) -> Row:
    """A row about a problem that loses nothing yet."""
    return Row("WARN", subject, visible(found), visible(remedy))


def fail(subject: str, found: str, remedy: str) -> Row:
    """A row about a part that does not work or is not safe."""
    return Row("FAIL", subject, visible(found), visible(remedy))


def unknown(subject: str, missing: MissingSource, remedy: str) -> Row:
    """The row of a source that tells nothing; `remedy` counts if the source has none."""
    if missing.needs_root:
        return warn(subject, f"not checked: {missing.what}", "run this command as root")
    return fail(subject, missing.what, str(missing.remedy or remedy))


def exit_code(rows: Iterable[Row]) -> int:
    """0 without a failure, otherwise 1."""
    return int(any(row.status == "FAIL" for row in rows))


def rows_of(*checks: SiteCheck) -> Iterator[Row]:
    """The rows of all checks, in this order; their sources are asked at once."""
    for check, end in zip(checks, gathered(*(check.run for check in checks)), strict=True):
        yield from tuple(check.rows)
        if check.subject and isinstance(end, MissingSource):
            yield unknown(check.subject, end, check.remedy)


def gathered(*sources: Callable[[], Any]) -> list[Any]:
    """Ask all sources at once; a `MissingSource` stands for each that tells nothing."""
    answers = [started(source) for source in sources]
    done = wait(answers, PATIENCE_S).done
    silent = MissingSource(f"no answer within {PATIENCE_S:g} s", "look why it hangs")
    return [_value(answer) if answer in done else silent for answer in answers]


def started(source: Callable[[], _Value]) -> Future[_Value]:
    """Ask a source; if it hangs, as a network file system may, it does not keep this program."""
    answer: Future[_Value] = Future()

    def ask() -> None:
        try:
            answer.set_result(source())
        except (
            Exception
        ) as error:  # a source may contain anything, and every other row still counts
            answer.set_exception(error)

    threading.Thread(target=ask, daemon=True).start()
    return answer


def _value(answer: Future[Any]) -> Any:
    error = answer.exception()
    if error is None or isinstance(error, MissingSource):
        return error or answer.result()
    remedy, cause, reason = "", error, f"{type(error).__name__}: {error}"
    if isinstance(error, IoncastError):
        where = f"{visible(error.where)}: " if error.where else ""
        remedy, cause, reason = (
            str(error.remedy or ""),
            error.__cause__ or error,
            where + error.what,
        )
    elif isinstance(error, OSError) and error.filename is not None and error.strerror:
        reason = f"{visible(os.fsdecode(error.filename))}: {error.strerror}"
    is_forbidden = isinstance(cause, PermissionError) and os.geteuid() != 0
    return MissingSource(
        " ".join(reason.split())[:_LONGEST_REASON], remedy, needs_root=is_forbidden
    )


def said_by(*command: str, user: str | None = None, told: str = "") -> str:
    """Run a command and return its standard output."""
    shown = f"`{' '.join(command)[:60]}`"
    try:
        done: subprocess.CompletedProcess[bytes] = subprocess.run(  # noqa: S603  the programs are those of Slurm, Lua and the system
            command,
            input=told.encode(),
            capture_output=True,
            check=False,
            timeout=ANSWER_S,
            env={**os.environ, "LC_ALL": "C", "PATH": search_path()},
            **_identity(user),
        )
    except FileNotFoundError as error:
        raise InputError(f"{command[0]} is not installed here") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"{shown} does not answer within {ANSWER_S:g} s") from error
    except OSError as error:
        raise InputError(f"{shown} cannot run: {error.strerror}") from error
    if done.returncode != 0:
        reason = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
        raise InputError(f"{shown} fails: {reason[:_LONGEST_REASON]}")
    return done.stdout.decode(errors="replace")


def search_path() -> str:
    """The folders of programs."""
    return ":".join([os.environ.get("PATH", ""), *_FOLDERS])


def can(user: str, right: str, path: str | Path) -> bool:
    """Whether a user may read (``r``), write (``w``) or run (``x``) a file.

    Only root can find out for others; for other users of this command it is always true.
    """
    if os.geteuid() != 0:
        return True
    try:
        said_by("test", f"-{right}", str(path), user=user)
    except InputError:
        return False
    return True


def _identity(user: str | None) -> dict[str, Any]:
    if user is None or os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise InputError(f"this machine has no user {user!r}") from error
    groups = os.getgrouplist(user, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": groups, "cwd": "/"}
