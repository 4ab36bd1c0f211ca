"""Reads logs of servers from files; the format is recognised by the content.

A format is registered with a pattern that its files have in their beginning, and a function that
reads them into tables of samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ioncast.diagnosis.server_logs.read_csv import read_csv
from ioncast.diagnosis.server_logs.read_job_stats import read_job_stats
from ioncast.diagnosis.server_logs.read_lmt import read_lmt
from ioncast.diagnosis.server_logs.read_prometheus import read_exposition, read_query_range
from ioncast.diagnosis.server_logs.read_tokio import read_tokio
from ioncast.diagnosis.server_logs.sample_rows import ImportSettings
from ioncast_base.errors import InputError

_BEGINNING_BYTES = 1 << 16
Reader = Callable[[Sequence[Path], ImportSettings], Iterator[pa.Table]]


@dataclass(frozen=True)
class Format:
    """A format of servers' logs; files of snapshots are read together, others one by one."""

    name: str
    pattern: bytes
    read: Reader
    are_snapshots: bool = False


_FORMATS = (
    Format("TOKIO", rb"\A\x89HDF\r\n\x1a\n", read_tokio),
    Format("LMT", rb"\ASQLite format 3\x00", read_lmt),
    Format("query_range", rb'\A\s*\{[^\[]*"data"', read_query_range),
    Format("CSV", rb"\A[^\n]*\btime_start\b", read_csv),
    Format(
        "job_stats",
        rb"^\s*job_stats:|job_stats\s*=|^\s*- job_id\s*:",
        read_job_stats,
        are_snapshots=True,
    ),
    Format(
        "Prometheus",
        rb"^lustre_\w+\{|^# (HELP|TYPE) lustre_",
        read_exposition,
        are_snapshots=True,
    ),
)


def format_of(path: Path) -> Format:
    """Recognise the format of a file.

    Raises
    ------
    InputError
        If the file is of no format, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING_BYTES)
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from error
    for each in _FORMATS:
        if re.search(each.pattern, beginning, re.MULTILINE):
            return each
    raise InputError(
        "this is no log of servers that ioncast knows",
        where=str(path),
        remedy="give TOKIO's HDF5, LMT's tables as SQLite, `lctl get_param` of job_stats,"
        " Prometheus text or query_range JSON of a Lustre exporter, or a CSV as docs/servers.md"
        " describes it",
    )
