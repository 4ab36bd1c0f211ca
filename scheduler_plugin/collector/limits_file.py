"""The file from which job_submit.lua reads Slurm's limits on I/O nodes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from ioncast_base.errors import InputError
from scheduler_plugin.roots_files import write_in_place
from scheduler_plugin.slurm import SlurmAnswerError, SlurmError
from scheduler_plugin.slurm.licence_limits import Limits

_LOG = logging.getLogger("ioncast.watch")
# The plugin reads no more (LONGEST_LIMITS in ioncast.lua).
LONGEST_BYTES = 64 * 1024


class SlurmLimits(Protocol):
    """The part of `scheduler_plugin.slurm.Slurm` that tells limits."""

    def licence_total(self, licence: str) -> int:
        """The number that Slurm has of a licence."""

    def limits(self, licence: str, total: int) -> Limits:
        """Slurm's limits on a licence."""


class LimitsFile:
    """Writes Slurm's limits into a file."""

    def __init__(self, path: str | Path, licence: str, slurm: SlurmLimits) -> None:
        self._path = Path(path)
        self._licence = licence
        self._slurm = slurm
        self._known: Limits | None = None
        self._said = ""

    def renew(self, now_s: float) -> None:
        """Ask Slurm and write the file; a cluster without slurmdbd has a total only.

        If slurmdbd does not answer, the limits that it gave last stay.
        """
        total = self._slurm.licence_total(self._licence)
        failure: SlurmError | None = None
        try:
            self._known = self._slurm.limits(self._licence, total)
        except SlurmAnswerError:
            self._known = self._known or Limits(self._licence, total)
        except SlurmError as error:
            failure = error
        if self._known is not None:
            self._write(replace(self._known, total=total), now_s)
        if failure is not None:
            raise failure

    def _write(self, limits: Limits, now_s: float) -> None:
        lines = list(_lines(limits))
        content = text_of(limits, now_s).encode()
        if len(content) > LONGEST_BYTES:
            raise InputError(
                f"Slurm's limits take {len(content)} bytes, and the plugin reads {LONGEST_BYTES}",
                where=str(self._path),
                remedy="limit the licence for QOS or accounts instead of users",
            )
        # A reader that comes in between finds two different times, and uses no limit.
        write_in_place(self._path, content, "watch.limits")
        if (said := ", ".join(lines).replace("\t", " ")) != self._said:
            _LOG.info("Slurm's limits on %s: %s", self._licence, said)
            self._said = said


def text_of(limits: Limits, now_s: float) -> str:
    """The content of the file: a limit in each line, between two lines with the time."""
    stamp = str(int(now_s))
    first = f"ioncast-limits\t1\t{stamp}\t{limits.licence}"
    return "\n".join([first, *_lines(limits), f"end\t{stamp}", ""])


def _lines(limits: Limits) -> Iterator[str]:
    named = [
        (("total",), limits.total),
        *((("partition", name), limit) for name, limit in limits.partitions.items()),
        *((("qos", name), limit) for name, limit in limits.qos.items()),
        *((("account", name), limit) for name, limit in limits.accounts.items()),
        *((("user", *names), limit) for names, limit in limits.users.items()),
        *((("partition-user", *names), limit) for names, limit in limits.partition_users.items()),
    ]
    for names, limit in named:
        if all(map(str.isprintable, names)):
            yield "\t".join([*names, str(limit)])
