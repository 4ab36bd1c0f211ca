"""Writes Darshan logs from counters by name, as a table of a paper gives them.

`posix_record("/scratch/f", READS=8)` is a record. The api's name in front of each counter is left
out, and missing counters are 0. A record of rank -1, the default, is reduced over all processes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments.applications.darshan_writer import record_id
from summario.reading.layouts import COUNTER_MODULES, FILE_ID, Layout, layout_of, newest_version
from tests.support.log_bytes import write_modules

# Darshan always writes these, whether there are requests or not.
_ALIGNMENTS = {"FILE_ALIGNMENT": 4096, "MEM_ALIGNMENT": 8}


@dataclass(frozen=True)
class CounterRecord:
    """A record of a module in its newest version, and the names that its log must have."""

    module: str
    names: tuple[str, ...]
    data: bytes


def posix_record(path: str, rank: int = -1, **counters: float) -> CounterRecord:
    """Make a POSIX record; by default files have blocks of 4,096 bytes, and memory of 8."""
    return counter_record("POSIX", path, rank, **_ALIGNMENTS | counters)


def mpiio_record(path: str, rank: int = -1, **counters: float) -> CounterRecord:
    """Make an MPI-IO record."""
    return counter_record("MPI-IO", path, rank, **counters)


def stdio_record(path: str, rank: int = -1, **counters: float) -> CounterRecord:
    """Make a STDIO record."""
    return counter_record("STDIO", path, rank, **counters)


def counter_record(
    module: str, name: str, rank: int = -1, *, file: str = "", **counters: float
) -> CounterRecord:
    """Make a record of any module with counters.

    Parameters
    ----------
    module : str
        One of `summario.reading.layouts.COUNTER_MODULES`, such as "H5D".
    name : str
        The path of the file, or the name of the dataset or variable.
    rank : int
        The process.
    file : str
        The path of the file that a dataset or variable is in.
    **counters : float
        The counters that are not 0, without the module's name.

    Raises
    ------
    KeyError
        If Darshan has no such counter.
    """
    layout = layout_of(module, newest_version(module))
    assert layout is not None
    has_file = FILE_ID in layout.leading
    ids = [record_id(name), rank, *([record_id(file)] if has_file else [])]
    return CounterRecord(
        module,
        (name, file) if has_file else (name,),
        struct.pack(f"<Qq{len(ids) - 2}Q", *ids)
        + _counters(layout, {f"{module.replace('-', '')}_{k}": v for k, v in counters.items()})
        + bytes(8 * layout.trailing),
    )


def _counters(layout: Layout, values: Mapping[str, float]) -> bytes:
    unknown = values.keys() - set(layout.counters)
    if unknown:
        raise KeyError(*sorted(unknown))
    return b"".join(
        struct.pack("<d" if "_F_" in name else "<q", values.get(name, 0))
        for name in layout.counters
    )


def write_log(
    path: Path,
    records: Iterable[CounterRecord],
    *,
    nprocs: int,
    run_seconds: float = 100,
    modules: Mapping[str, tuple[int, bytes]] | None = None,
    names: Iterable[str] = (),
    partial: Iterable[str] = (),
) -> Path:
    """Write a log.

    Parameters
    ----------
    path : Path
        The log.
    records : iterable of CounterRecord
        Its records.
    nprocs : int
        The processes of the job.
    run_seconds : float
        The run time of the job.
    modules : mapping of str to (int, bytes), optional
        Version and data of further modules, such as `dxt_bytes` of `tests.support.log_bytes`.
    names : iterable of str
        The names of records in these modules that are not files, such as "heatmap:POSIX".
    partial : iterable of str
        The modules of which Darshan left out records.
    """
    records = list(records)
    data = {
        module: (
            newest_version(module),
            b"".join(each.data for each in records if each.module == module),
        )
        for module in COUNTER_MODULES
        if any(each.module == module for each in records)
    }
    return write_modules(
        path,
        {**data, **(modules or {})},
        nprocs=nprocs,
        names=dict.fromkeys((*(name for each in records for name in each.names), *names)),
        partial=partial,
        run_seconds=run_seconds,
    )
