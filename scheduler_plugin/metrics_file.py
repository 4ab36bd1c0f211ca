"""Numbers of the watch and the arbiter for Prometheus, in a file for node_exporter."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest, registry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ioncast_base.errors import InputError
from scheduler_plugin.rounds import Failures

# A disk that takes longer hangs. Until then the next text waits for the next round.
_PATIENCE_S = 60.0
_AT_END_S = 5.0


class MetricsFile:
    """A file that is replaced as a whole; a full disk or one that hangs delays nobody.

    Parameters
    ----------
    path : str or None
        The file; with None nothing is written.
    """

    def __init__(self, path: str | None, log: logging.Logger) -> None:
        self._path = None if path is None else Path(path)
        self._failures = Failures(log)
        self._thread = threading.Thread()
        self._began_s = 0.0
        self._error: OSError | None = None

    def write(self, metrics: Iterable[Metric]) -> None:
        """Begin to write, unless the last text is still being written."""
        if self._path is None:
            return
        self._failures.attempt("writing metrics", self._check)
        if not self._thread.is_alive():
            arguments = (self._path, _in_text(metrics))
            self._thread = threading.Thread(target=self._try, args=arguments, daemon=True)
            self._began_s = time.monotonic()
            self._thread.start()

    def close(self) -> None:
        """Wait a little for the last text."""
        if self._thread.is_alive():
            self._thread.join(_AT_END_S)

    def _check(self) -> None:
        """Raise the problem of the last text, if it has one."""
        where = str(self._path)
        if self._thread.is_alive() and time.monotonic() - self._began_s > _PATIENCE_S:
            raise InputError("the disk does not answer", where=where, remedy="correct `metrics`")
        if self._error is not None:
            what = f"this file cannot be written: {self._error.strerror}"
            raise InputError(what, where=where, remedy="correct `metrics`, or the folder's rights")

    def _try(self, path: Path, text: bytes) -> None:
        try:
            _replace(path, text)
            self._error = None
        except OSError as error:
            self._error = error


def _replace(path: Path, text: bytes) -> None:
    # Nobody can put a pipe or a link in the place of a file that must be new.
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC)
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(text)
        # node_exporter's user reads it, whatever the umask of the daemon is.
        new.chmod(0o644)
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


class _Once(registry.Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _in_text(metrics: Iterable[Metric]) -> bytes:
    registered = CollectorRegistry(auto_describe=False)
    registered.register(_Once(metrics))
    return generate_latest(registered)


def common_metrics(
    part: str, errors: Mapping[str, int], worked_s: float | None, token_ends_s: float
) -> Iterator[Metric]:
    """The numbers that watch and arbiter both have."""
    build = GaugeMetricFamily(f"ioncast_{part}_build_info", "The version.", labels=["version"])
    build.add_metric([version("ioncast")], 1)
    yield build
    failed = CounterMetricFamily(
        f"ioncast_{part}_errors", "Failures, by the step that failed.", labels=["step"]
    )
    for step, count in errors.items():
        failed.add_metric([step], count)
    yield failed
    if worked_s is not None:
        name = f"ioncast_{part}_last_round_timestamp_seconds"
        yield GaugeMetricFamily(name, "When a round last worked.", worked_s)
    name = f"ioncast_{part}_slurm_token_expiry_timestamp_seconds"
    yield GaugeMetricFamily(name, "When the token of Slurm expires.", token_ends_s)
