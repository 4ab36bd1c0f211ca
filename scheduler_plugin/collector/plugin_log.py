"""The plugin's lines in slurmctld's log, counted: the plugin itself must not wait for a disk."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from ioncast_base.errors import InputError

# Names of users are between quotes, and the plugin writes no quotes in them.
_QUOTED = '"[^"]*"'
_SOURCES = ("history", "model", "default", "service", "user", "leader", "fallback")
_DECIDED = re.compile(
    rf"ioncast: mode=\w+ partition={_QUOTED} user={_QUOTED} job={_QUOTED} io_nodes=\w+"
    rf" source=(?P<source>{'|'.join(_SOURCES)}) ms=(?P<ms>[0-9]+\.[0-9]) decision=[\w-]+"
    r"(?: held=(?P<held>\w+))?(?P<paused> paused=yes)? why="
)
_COMPLAINT = re.compile(r"\] error: [^\"]*ioncast: ")
_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
# A round reads no more; the rest waits for the next one.
_MOST_BYTES = 16 << 20


class PluginLog:
    """Counts the plugin's lines from now on."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._file: BinaryIO | None = None
        self._rest = b""
        self._sources: Counter[str] = Counter(dict.fromkeys(_SOURCES, 0))
        self._buckets = [0] * (len(_BOUNDS_S) + 1)
        self._seconds = 0.0
        self._held = self._errors = 0
        self._is_paused = False

    def read(self) -> None:
        """Count the new lines."""
        try:
            if self._file is None:
                self._file = _opened(self._path)
                self._file.seek(0, os.SEEK_END)
            self._count_rest(self._file)
            if not self._is_current(self._file):
                self.close()
                self._rest, self._file = b"", _opened(self._path)
                self._count_rest(self._file)
        except OSError as error:
            self.close()
            raise InputError(
                f"slurmctld's log cannot be read: {error.strerror}",
                where=str(self._path),
                remedy="correct `watch.slurmctld_log`",
            ) from error

    def close(self) -> None:
        """Close the log."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def metrics(self) -> Iterator[Metric]:
        """The numbers for Prometheus."""
        submissions = CounterMetricFamily(
            "ioncast_plugin_submissions",
            "Submitted jobs, by the source of their I/O nodes; fallback is without an answer.",
            labels=["source"],
        )
        for source, count in self._sources.items():
            submissions.add_metric([source], count)
        yield submissions
        yield HistogramMetricFamily(
            "ioncast_plugin_seconds",
            "Time that a submission waited for the plugin.",
            buckets=list(zip(_bounds(), _running_sums(self._buckets), strict=True)),
            sum_value=self._seconds,
        )
        yield CounterMetricFamily("ioncast_plugin_held", "Jobs that the plugin held.", self._held)
        yield CounterMetricFamily(
            "ioncast_plugin_errors", "Errors of the plugin in slurmctld's log.", self._errors
        )
        yield GaugeMetricFamily(
            "ioncast_plugin_paused",
            "Whether the plugin did not ask a service for the newest job, after failed questions.",
            self._is_paused,
        )

    def _is_current(self, file: BinaryIO) -> bool:
        """Whether the log is still the file that is read, and was not cut."""
        here, there = os.fstat(file.fileno()), self._path.stat()
        return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino) and (
            here.st_size >= file.tell()
        )

    def _count_rest(self, file: BinaryIO) -> None:
        *lines, self._rest = (self._rest + file.read(_MOST_BYTES)).split(b"\n")
        self._rest = self._rest[:_MOST_BYTES]
        for line in lines:
            if b"ioncast: " in line:
                self._count(line.decode(errors="replace"))

    def _count(self, line: str) -> None:
        if match := _DECIDED.search(line):
            seconds = float(match["ms"]) / 1000
            self._sources[match["source"]] += 1
            self._buckets[sum(seconds > bound for bound in _BOUNDS_S)] += 1
            self._seconds += seconds
            self._held += match["held"] == "yes"
            self._is_paused = match["paused"] is not None
        elif _COMPLAINT.search(line):
            self._errors += 1


def _opened(path: Path) -> BinaryIO:
    # Opening a pipe would wait for a writer.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputError("this is not a file", where=str(path), remedy="correct `slurmctld_log`")
    return file


def _bounds() -> list[str]:
    return [*map(str, _BOUNDS_S), "+Inf"]


def _running_sums(counts: list[int]) -> list[float]:
    return [float(sum(counts[: place + 1])) for place in range(len(counts))]
