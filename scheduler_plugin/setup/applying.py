"""A setup on this machine: which files it would make, and making them. Existing files stay."""

from __future__ import annotations

import difflib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from ioncast_base.errors import InputError
from scheduler_plugin.file_rights import user_name
from scheduler_plugin.setup.plan import SetupPlan, WantedFile

State = Literal["missing", "as wanted", "kept", "differs"]
_PATIENCE_S = 120.0
_KEY_BYTES = 32
_SHOWN_LINES = 12


def state_of(file: WantedFile) -> State:
    """Compare a file with the wanted one; a secret that exists is kept."""
    path = Path(file.path)
    if not os.path.lexists(path):
        return "missing"
    if file.is_secret:
        return "kept"
    return "as wanted" if not differences(file) else "differs"


def differences(file: WantedFile) -> list[str]:
    """Say in which lines and rights an existing file differs from the wanted one."""
    path = Path(file.path)
    try:
        text, info = path.read_text(errors="replace"), path.stat()
    except OSError as error:
        return [f"it cannot be read: {error.strerror}"]
    old, new = text.splitlines(), file.content.decode().splitlines()
    found = [line for line in difflib.unified_diff(old, new, n=0, lineterm="") if _is_change(line)]
    rights = f"{user_name(info.st_uid)}, mode {info.st_mode & 0o777:o}"
    wanted = f"{file.owner}, mode {file.mode:o}"
    if rights != wanted:
        found.insert(0, f"its owner and mode are {rights}, wanted are {wanted}")
    more = len(found) - _SHOWN_LINES
    return found[:_SHOWN_LINES] + ([f"… and {more} more lines"] if more > 0 else [])


def _is_change(line: str) -> bool:
    return line[0] in "+-" and not line.startswith(("+++", "---"))


def carry_out(plan: SetupPlan, environment: Mapping[str, str], told: Callable[[str], None]) -> None:
    """Make users and folders, then the missing files; `told` hears of each.

    Parameters
    ----------
    environment : mapping of str to str
        Variables for `ioncast token add`, such as IONCAST_DB.

    Raises
    ------
    InputError
        If a command fails or a file cannot be written. Called again, the rest is made.
    """
    _run(["systemd-sysusers", "-"], plan.sysusers)
    told("made: users and groups")
    _run(["systemd-tmpfiles", "--create", "-"], plan.tmpfiles)
    told("made: folders")
    for file in plan.files:
        if state_of(file) == "missing":
            make_file(file, environment)
            told(f"made: {file.path}")
    if Path("/run/systemd/system").is_dir():
        _run(["systemctl", "daemon-reload"])


def make_file(file: WantedFile, environment: Mapping[str, str]) -> None:
    """Make a file that is missing. It appears whole, with its owner and its rights."""
    path = Path(file.path)
    content = _content(file, environment)
    new = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        shutil.chown(new, file.owner, file.group)
        new.chmod(file.mode)
        new.rename(path)
    except LookupError as error:
        raise InputError(f"{error}", where=file.path) from error
    except OSError as error:
        what = f"this file cannot be written: {error.strerror}"
        raise InputError(what, where=file.path, remedy="run this command as root") from error


def _content(file: WantedFile, environment: Mapping[str, str]) -> bytes:
    if not file.is_secret:
        return file.content
    if not file.client:
        return secrets.token_bytes(_KEY_BYTES)
    words = ["-m", "ioncast", "token", "add", file.client, "--role", file.role]
    command = ["runuser", "-u", "ioncast", "--", sys.executable, *words]
    return _run(command, environment=environment).encode()


def _run(command: list[str], told: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output."""
    name = " ".join(command)
    try:
        done = subprocess.run(  # noqa: S603  the programs are those of systemd and ioncast
            command,
            input=told,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
            env={**os.environ, **(environment or {})},
            cwd="/",
        )
    except FileNotFoundError as error:
        raise InputError(f"{command[0]} is not installed here") from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"`{name}` does not end within {_PATIENCE_S:g} s") from error
    if done.returncode != 0:
        reason = " ".join((done.stderr or done.stdout).split())
        raise InputError(f"`{name}` fails: {reason[:300]}")
    return done.stdout
