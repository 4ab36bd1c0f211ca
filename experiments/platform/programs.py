"""Running the programs that a platform is made with."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ioncast_base.errors import IoncastError

# In the environment of a platform's processes, wherever they go: its name, and the run's.
MEMBER = "IONCAST_PLATFORM_MEMBER"
_PATIENCE_S = 60.0


def marked(member: str) -> dict[str, str]:
    """Make the environment of what runs on a platform: the user's own, with the mark.

    Parameters
    ----------
    member : str
        The platform's name, a slash, and what of it the process is.
    """
    return {**os.environ, MEMBER: member}


def system_path() -> str:
    """Say where the system's programs are looked for."""
    # Debian keeps daemons out of a plain user's path, and so out of some of root's.
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
        For its standard input.
    member : str
        The platform that it and what it leaves running belong to.

    Returns
    -------
    str
        What it wrote.

    Raises
    ------
    IoncastError
        If it fails, with the first line of what it complained of.
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
        raise IoncastError("did not end in time", where=" ".join(command)) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        reason = said[0] if said else f"ended with code {done.returncode}"
        raise IoncastError(reason, where=" ".join(command))
    return done.stdout


def succeed(commands: Mapping[str, Sequence[str]], *, patience_s: float) -> set[str]:
    """Run programs at the same time.

    Parameters
    ----------
    commands : mapping of str to sequence of str
        What each of them belongs to → the program and its arguments.
    patience_s : float
        What has not ended by then is killed.

    Returns
    -------
    set of str
        The keys of those that ended well.
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
