"""Reads logs of servers from files; the format is recognised by the content.

A format is registered with a function that recognises it in the beginning of a file, and a function
that reads files of it into tables of samples.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ioncast.diagnosis.server_logs import read_job_stats as job_stats
from ioncast.diagnosis.server_logs import read_prometheus as prometheus
from ioncast.diagnosis.server_logs.read_csv import NEEDED, read_csv
from ioncast.diagnosis.server_logs.read_lmt import MAGIC as SQLITE
from ioncast.diagnosis.server_logs.read_lmt import read_lmt
from ioncast.diagnosis.server_logs.read_tokio import MAGIC as HDF5
from ioncast.diagnosis.server_logs.read_tokio import read_tokio
from ioncast.diagnosis.server_logs.sample_rows import ImportSettings
from ioncast_base.errors import InputError

_BEGINNING_BYTES = 1 << 16
Recogniser = Callable[[bytes], bool]
Reader = Callable[[Sequence[Path], ImportSettings], Iterator[pa.Table]]


@dataclass(frozen=True)
class Format:
    """A format of servers' logs; files of snapshots are read together, others one by one."""

    name: str
    recognises: Recogniser
    read: Reader
    are_snapshots: bool = False


def _is_csv(beginning: bytes) -> bool:
    first = beginning.split(b"\n", 1)[0].decode("utf-8-sig", "replace")
    return set(NEEDED) <= {name.strip() for name in next(csv.reader([first]), [])}


_FORMATS = (
    Format("TOKIO", lambda beginning: beginning.startswith(HDF5), read_tokio),
    Format("LMT", lambda beginning: beginning.startswith(SQLITE), read_lmt),
    Format(
        "query_range",
        lambda beginning: re.match(rb'\s*\{[^\[]*"data"', beginning) is not None,
        prometheus.read_query_range,
    ),
    Format(
        "job_stats",
        lambda beginning: (
            re.search(rb"^\s*job_stats:|job_stats\s*=|^\s*- job_id\s*:", beginning, re.M)
            is not None
        ),
        job_stats.read_job_stats,
        are_snapshots=True,
    ),
    Format(
        "Prometheus",
        lambda beginning: (
            re.search(rb"^lustre_\w+\{|^# (HELP|TYPE) lustre_", beginning, re.M) is not None
        ),
        prometheus.read_exposition,
        are_snapshots=True,
    ),
    Format("CSV", _is_csv, read_csv),
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
        if each.recognises(beginning):
            return each
    raise InputError(
        "this is no log of servers that ioncast knows",
        where=str(path),
        remedy="give TOKIO's HDF5, LMT's tables as SQLite, `lctl get_param` of job_stats, Prometheus"
        " text or query_range JSON of a Lustre exporter, or a CSV as docs/servers.md describes it",
    )
