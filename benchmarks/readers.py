"""Reads one Darshan log in one way and prints its cost as a line of JSON.

    python benchmarks/readers.py READER LOG STARTED

`extraction.py` starts it once for each measurement. Imports come before the clock starts.
`first_seconds` is the time of a process's first log, which also loads code and starts processes
of the reader. `next_seconds` is the shortest time of reading the log again, as a service or a
command over many logs does. `whole_seconds` is the time from STARTED, on the monotonic clock, to
the end of the first reading. `peak_kib` is the peak memory of this process.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

AGAIN = 3
MODULES = ("POSIX", "MPI-IO", "STDIO")

# A function that reads the log at a path and returns the number of records of MODULES.
Reader = Callable[[str], int]


def summario() -> Reader:
    read_log = importlib.import_module("summario.reading.log").read_log
    extract_phases = importlib.import_module("summario.phases.extract").extract_phases

    def read(path: str) -> int:
        log = read_log(path)
        extract_phases(log)
        return sum(len(records.words) for records in log.records.values())

    return read


def frames() -> Reader:
    """PyDarshan's pandas frames, which it makes record by record."""
    return _pydarshan("pandas", lambda records: sum(len(part["counters"]) for part in records))


def numpy() -> Reader:
    """PyDarshan's numpy arrays, two for each record."""
    return _pydarshan("numpy", len)


def _pydarshan(dtype: str, count: Callable[[Any], int]) -> Reader:
    report_of = importlib.import_module("darshan").DarshanReport

    def read(path: str) -> int:
        report = report_of(path, read_all=False)
        present = [module for module in MODULES if module in report.modules]
        for module in present:
            report.mod_read_all_records(module, dtype=dtype)
        return sum(count(report.records[module]) for module in present)

    return read


def to_df() -> Reader:
    """Everything that PyDarshan can read, and one frame for each module."""
    report_of = importlib.import_module("darshan").DarshanReport

    def read(path: str) -> int:
        report = report_of(path, read_all=True)
        present = [module for module in MODULES if module in report.records]
        return sum(len(report.records[module].to_df()["counters"]) for module in present)

    return read


READERS: dict[str, Callable[[], Reader]] = {
    "summario": summario,
    "frames": frames,
    "numpy": numpy,
    "to_df": to_df,
}


def clock(read: Reader, path: str) -> tuple[float, int]:
    start = time.perf_counter()
    records = read(path)
    return time.perf_counter() - start, records


def main(name: str, path: str, started: str) -> None:
    read = READERS[name]()
    first_seconds, records = clock(read, path)
    whole_seconds = time.monotonic() - float(started)
    cost = {
        "whole_seconds": whole_seconds,
        "first_seconds": first_seconds,
        "next_seconds": min(clock(read, path)[0] for _ in range(AGAIN)),
        "records": records,
        "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
    print(json.dumps(cost))


if __name__ == "__main__":
    main(*sys.argv[1:])
