"""Counts of a process that answers schedulers, in a file that the web process can read.

The file has all its blocks before anybody counts, because the kernel ends a process that touches a
mapped page for which the disk has no block (SIGBUS). The next process goes on counting where the
last one ended, because Prometheus would take a smaller sum of all processes for a new beginning and
add it once more. `ioncast.service.web.metrics` adds the counts of all processes.
"""

from __future__ import annotations

import logging
import mmap
import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from ioncast.service.decide.answers import SOURCES

# Endpoints: questions for a program, and those with a job script.
ASK, ASK_WITH_SCRIPT = "decisions.ask", "decisions.ask_with_script"
_LOG = logging.getLogger("ioncast.service")
# Upper limits of a histogram's buckets, in seconds; the last bucket has no limit.
BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 60)
# The endpoint of requests at another address or with another method.
NO_ENDPOINT = "decisions.none"

_STATUSES = (200, 204, 308, 400, 401, 403, 404, 405, 413, 415, 422, 429, 500, 503)
_OTHER_STATUS = 0
_BUCKETS = len(BUCKETS_S) + 1
# The numbers of a series: its buckets, and the sum of its seconds.
_SERIES = {
    which: place * (_BUCKETS + 1)
    for place, which in enumerate(
        (endpoint, status)
        for endpoint in (ASK, ASK_WITH_SCRIPT, NO_ENDPOINT)
        for status in (*_STATUSES, _OTHER_STATUS)
    )
}
_DECISIONS = len(_SERIES) * (_BUCKETS + 1)
_UNRECORDED = _DECISIONS + len(SOURCES)
_BYTES = 8 * (_UNRECORDED + 1)


class RequestCount(NamedTuple):
    """Requests to an endpoint with one status; 0 for all without a series of their own.

    `buckets` count those that took at most the time of each of `BUCKETS_S`, and all.
    """

    endpoint: str
    status: int
    buckets: list[float]
    seconds: float


def counts_files(folder: Path, number: int) -> list[int]:
    """Open the files of so many processes; return their descriptors."""
    return [counts_file(folder / f"decisions-{place}.counts") for place in range(number)]


def counts_file(path: Path) -> int:
    """Open a file of counts, a new one with zeros; return its descriptor.

    Without room in its folder counts are in memory, where only their process can read them.
    """
    descriptor = -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileNotFoundError):
            if path.stat().st_size != _BYTES:
                # Another version made it, or a kill came before it had its blocks.
                path.unlink()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.posix_fallocate(descriptor, 0, _BYTES)
    except OSError as error:
        _LOG.error("decisions are not counted in /metrics: %s: %s", path, error.strerror)
        if descriptor >= 0:
            os.close(descriptor)
            path.unlink()
        return new_memory()
    return descriptor


def new_memory() -> int:
    """Make memory for counts, all zeros; return its descriptor."""
    descriptor = os.memfd_create("ioncast decisions")
    os.posix_fallocate(descriptor, 0, _BYTES)
    return descriptor


def counts_in(folder: Path) -> list[DecisionCounts]:
    """Open the files of all processes; one of another version is left out."""
    found = []
    for path in sorted(folder.glob("decisions-*.counts")):
        with suppress(OSError), path.open("r+b") as file:
            if os.fstat(file.fileno()).st_size == _BYTES:
                found.append(DecisionCounts(file.fileno()))
    return found


class DecisionCounts:
    """Counts in the memory or file of a descriptor; one process counts, any process may read."""

    def __init__(self, descriptor: int) -> None:
        self._numbers = memoryview(mmap.mmap(descriptor, _BYTES)).cast("d")
        self._lock = Lock()

    @classmethod
    def sum_of(cls, several: Sequence[DecisionCounts]) -> DecisionCounts:
        """Add up the counts of several processes."""
        total = cls(-1)
        for place in range(len(total._numbers)):
            total._numbers[place] = sum(each._numbers[place] for each in several)
        return total

    def answered(self, endpoint: str, status: int, began_s: float) -> None:
        """Count and time a request; `began_s` is a time of `time.perf_counter`."""
        seconds = time.perf_counter() - began_s
        place = _SERIES.get((endpoint, status))
        if place is None:
            place = _SERIES[endpoint, _OTHER_STATUS]
        with self._lock:
            self._numbers[place + bisect_left(BUCKETS_S, seconds)] += 1
            self._numbers[place + _BUCKETS] += seconds

    def decided(self, source: str) -> None:
        """Count a decision by its source."""
        self._add(_DECISIONS + SOURCES.index(source))

    def could_not_record(self) -> None:
        """Count a decision that was answered but could not be stored."""
        self._add(_UNRECORDED)

    def decisions(self) -> dict[str, float]:
        """Return the number of decisions of each source that had any."""
        numbers = zip(SOURCES, self._numbers[_DECISIONS:_UNRECORDED], strict=True)
        return {source: number for source, number in numbers if number}

    def unrecorded(self) -> float:
        """Return the number of decisions that could not be stored."""
        return self._numbers[_UNRECORDED]

    def requests(self) -> Iterator[RequestCount]:
        """Return the counts of each endpoint and status that had any request."""
        for (endpoint, status), place in _SERIES.items():
            *each, seconds = self._numbers[place : place + _BUCKETS + 1]
            buckets = list(accumulate(each))
            if buckets[-1]:
                yield RequestCount(endpoint, status, buckets, seconds)

    def _add(self, place: int) -> None:
        with self._lock:
            self._numbers[place] += 1
