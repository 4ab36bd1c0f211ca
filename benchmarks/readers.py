"""Reads Darshan logs in one way and prints its cost as a line of JSON.

    python benchmarks/readers.py WAY REPEAT LOG...

`extraction.py` starts it once for each turn. `shortest` has the shortest of REPEAT times for each
log, in seconds, `cpu_seconds` the time of all of them together, `records` the number of records of
each log. Imports and a first log come before the clocks start.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

MODULES = ("POSIX", "MPI-IO", "STDIO")
FOREVER = float("inf")

# A function that reads the log at a path and returns the number of records of MODULES.
Reader = Callable[[str], int]


def summario() -> Reader:
    return lambda path: _count(_read_log()(path))


def phases() -> Reader:
    extract = importlib.import_module("summario.phases.extract").extract
    read_log = _read_log()

    def read(path: str) -> int:
        log = read_log(path)
        extract(log)
        return _count(log)

    return read


def _read_log() -> Callable[[str], Any]:
    return importlib.import_module("summario.reading.log").read_log


def _count(log: Any) -> int:
    return sum(len(records.words) for records in log.records.values())


def numpy() -> Reader:
    """PyDarshan's numpy arrays, two for each record."""
    report_of = importlib.import_module("darshan").DarshanReport

    def read(path: str) -> int:
        report = report_of(path, read_all=False)
        present = [module for module in MODULES if module in report.modules]
        for module in present:
            report.mod_read_all_records(module, dtype="numpy")
        return sum(len(report.records[module]) for module in present)

    return read


def to_df() -> Reader:
    """Everything that PyDarshan can read, and one frame for each module."""
    report_of = importlib.import_module("darshan").DarshanReport
    # In the garbage collector, the end of a report may wait for a lock that its own thread has.
    gc.disable()

    def read(path: str) -> int:
        report = report_of(path, read_all=True)
        present = [module for module in MODULES if module in report.records]
        return sum(len(report.records[module].to_df()["counters"]) for module in present)

    return read


READERS: dict[str, Callable[[], Reader]] = {
    "summario": summario,
    "phases": phases,
    "numpy": numpy,
    "to_df": to_df,
}


def main(way: str, repeat: str, *paths: str) -> None:
    read = READERS[way]()
    read(paths[0])
    # Otherwise the garbage collector goes through all objects of the imports again and again.
    gc.freeze()
    shortest = dict.fromkeys(paths, FOREVER)
    cpu = time.process_time()
    records = dict.fromkeys(paths, 0)
    for _ in range(int(repeat)):
        for path in paths:
            start = time.perf_counter()
            records[path] = read(path)
            shortest[path] = min(shortest[path], time.perf_counter() - start)
    cpu_seconds = time.process_time() - cpu
    cost = {
        "shortest": list(shortest.values()),
        "cpu_seconds": cpu_seconds,
        "records": list(records.values()),
    }
    print(json.dumps(cost))


if __name__ == "__main__":
    main(*sys.argv[1:])
