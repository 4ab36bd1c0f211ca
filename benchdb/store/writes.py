"""Lines that say who wrote what: in the service's log, and in syslog from commands."""

from __future__ import annotations

import os
import pwd
import socket
from contextlib import suppress
from typing import Literal

from ioncast_base.visible_text import visible

WriteKind = Literal["run", "outcome", "measurements", "deletion", "token", "change"]
_SYSLOG = "/dev/log"
# A notice of a user's program, in the numbers of RFC 3164.
_PRIORITY = 8 * 1 + 5
_LONGEST = 1000


def write_line(by: str, kind: WriteKind, what: object, system: str | None = None) -> str:
    r"""Say in one line who wrote what.

    `what` is the id of the run or outcome, the name of the file or of the token, the number of
    deleted rows, or the change of a system. It never names the user of a job, who may be deleted
    later.

    Examples
    --------
    >>> write_line("token watch", "run", 17, "mysite")
    'token watch on mysite: run 17'
    """
    place = f" on {visible(system)}" if system else ""
    return f"{visible(by)}{place}: {kind} {visible(str(what)[-_LONGEST:])}"


def tell_syslog(kind: WriteKind, what: object, system: str | None = None) -> None:
    """Tell syslog that the user of this command wrote something; without syslog do nothing."""
    number = os.getuid()
    try:
        user = pwd.getpwuid(number).pw_name
    except KeyError:
        user = f"uid:{number}"
    line = write_line(f"command of {user}", kind, what, system)
    # A full or stopped syslog must not delay a command, and `syslog.syslog` would wait for it.
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.setblocking(False)
        log.connect(_SYSLOG)
        log.send(f"<{_PRIORITY}>ioncast[{os.getpid()}]: {line}".encode())
