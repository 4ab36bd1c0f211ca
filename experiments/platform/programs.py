"""Runs the system's programs that build a platform."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ioncast_base.errors import IoncastError

# The variable that marks the processes of a platform and everything that they start.
MEMBER = "IONCAST_PLATFORM_MEMBER"
_PATIENCE_S = 60.0


def marked(member: str) -> dict[str, str]:
    """Make the environment of a program on a platform: that of this process, with the mark.

    Parameters
    ----------
    member : str
        The mark: the platform's name, a slash, and the name of a daemon or a run.
    """
    return {**os.environ, MEMBER: member}


def system_path() -> str:
    """Search path of the system's programs."""
    # Debian leaves the folders of daemons out of a user's PATH, and of some root shells'.
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def _environment(member: str) -> dict[str, str]:
    """Make the environment of the system's programs."""
    return {**marked(member), "PATH": system_path(), "LC_ALL": "C"}


def run(*command: str, told: str | None = None, member: str = "") -> str:
    """Run a program to its end.

    Parameters
    ----------
    *command : str
        The program and its arguments.
    told : str, optional
        Text for its standard input.
    member : str
        Mark of the program and of everything that it leaves running (see `marked`).

    Returns
    -------
    str
        Its output.

    Raises
    ------
    IoncastError
        If the program fails, with the first line of its error; or if it takes too long.
    """
    try:
        done = subprocess.run(  # noqa: S603 - names of nodes and files are our own
            command,
            input=told,
            stdin=subprocess.DEVNULL if told is None else None,
            env=_environment(member),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise IoncastError(
            f"took longer than {_PATIENCE_S:g} s", where=" ".join(command)
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        reason = said[0] if said else f"ended with exit code {done.returncode}"
        raise IoncastError(reason, where=" ".join(command))
    return done.stdout


def succeed(commands: Mapping[str, Sequence[str]], *, patience_s: float) -> set[str]:
    """Run programs at the same time.

    Parameters
    ----------
    commands : mapping of str to sequence of str
        Programs with their arguments, by mark (see `marked`).
    patience_s : float
        Seconds after which a program that still runs is killed.

    Returns
    -------
    set of str
        The marks of the programs that ended with exit code 0.
    """
    give_up_at = time.monotonic() + patience_s
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for member, command in commands.items():
            processes[member] = subprocess.Popen(  # noqa: S603 - as above
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(member),
            )
        for process in processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, give_up_at - time.monotonic()))
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    return {member for member, process in processes.items() if process.returncode == 0}
