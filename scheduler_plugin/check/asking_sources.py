"""Asks sources that may hang, be missing or be forbidden, each within a limit of time."""

from __future__ import annotations

import os
import pwd
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ioncast_base.errors import InputError, IoncastError
from ioncast_base.visible_text import visible
from scheduler_plugin.check.row_values import MissingSource

# A command or a request may take so long, and all sources that are asked at once a little longer.
ANSWER_S = 10.0
PATIENCE_S = 30.0
# cron's PATH does not have these folders.
_FOLDERS = ("/usr/local/bin", "/usr/sbin", "/sbin", "/opt/slurm/bin")
_LONGEST_REASON = 300


def gathered(sources: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Ask all sources at once.

    A source that hangs, such as a network file system, keeps its thread, but not this program.
    """
    found: dict[str, Any] = {}

    def ask(name: str, source: Callable[[], Any]) -> None:
        found[name] = attempted(source)

    threads = [
        threading.Thread(target=ask, args=item, daemon=True, name=item[0])
        for item in sources.items()
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + PATIENCE_S
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    silent = MissingSource(f"no answer within {PATIENCE_S:g} s", "look why it hangs")
    return {name: found.get(name, silent) for name in sources}


def attempted(source: Callable[[], Any]) -> Any:
    """The value of a source, or a `MissingSource` with the reason why it has none."""
    try:
        return source()
    except IoncastError as error:
        where = f"{visible(error.where)}: " if error.where else ""
        return _gap(error.__cause__ or error, where + error.what, str(error.remedy or ""))
    except Exception as error:  # a source may contain anything, and every other row still counts
        return _gap(error, f"{type(error).__name__}: {error}", "")


def _gap(error: BaseException, reason: str, remedy: str) -> MissingSource:
    is_forbidden = isinstance(error, PermissionError) and os.geteuid() != 0
    return MissingSource(" ".join(reason.split())[:_LONGEST_REASON], remedy, is_forbidden)


def said_by(*command: str, user: str | None = None, told: str = "") -> str:
    """Run a command and return its standard output."""
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
        raise InputError(f"{_shown(command)} does not answer within {ANSWER_S:g} s") from error
    except OSError as error:
        raise InputError(f"{_shown(command)} cannot run: {error.strerror}") from error
    if done.returncode != 0:
        reason = " ".join((done.stderr or done.stdout).decode(errors="replace").split())
        raise InputError(f"{_shown(command)} fails: {reason[:_LONGEST_REASON]}")
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


def _shown(command: Sequence[str]) -> str:
    return f"`{' '.join(command)[:60]}`"
