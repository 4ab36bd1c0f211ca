"""Logs of runs whose compute nodes are known: DXT names the host of each traced process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.applications.darshan_writer import Dxt, Record, write_log

BYTES = 24 << 20
"""The bytes that each process writes to its own file, with one request."""


def traced_log(path: Path, hosts: Sequence[str], *, nprocs: int | None = None) -> Path:
    """Write the log of a run whose rank i ran on `hosts[i]`.

    Each rank writes a file of its own. All ranks from `len(hosts)` to `nprocs` - 1 do no I/O, so
    the log does not name their hosts.
    """
    records, traces = [], []
    for rank, host in enumerate(hosts):
        file = f"/data/{rank}"
        counters = {
            "POSIX_WRITES": 1,
            "POSIX_BYTES_WRITTEN": BYTES,
            "POSIX_ACCESS1_ACCESS": BYTES,
            "POSIX_ACCESS1_COUNT": 1,
            "POSIX_SIZE_WRITE_10M_100M": 1,
        }
        times = {
            "POSIX_F_WRITE_START_TIMESTAMP": 0.0,
            "POSIX_F_WRITE_END_TIMESTAMP": 1.0,
            "POSIX_F_WRITE_TIME": 1.0,
        }
        records.append(Record("POSIX", file, rank, counters, times))
        traces.append(Dxt("DXT_POSIX", file, rank, host, [(0, BYTES, 0.0, 1.0)]))
    return write_log(path, nprocs=nprocs or len(hosts), records=records, dxt=traces)
