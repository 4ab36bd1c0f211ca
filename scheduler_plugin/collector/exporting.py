"""The watch's numbers for Prometheus, after each round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from scheduler_plugin.collector.plugin_log import PluginLog
from scheduler_plugin.metrics_file import MetricsFile, common_metrics
from scheduler_plugin.rounds import Failures


class Exporter:
    """Writes the numbers of the watch, and those of the plugin's lines in slurmctld's log.

    Parameters
    ----------
    plugin_log : PluginLog or None
        The plugin's lines; None if the log is not known.
    """

    def __init__(
        self, file: MetricsFile, plugin_log: PluginLog | None, token_ends_s: Callable[[], float]
    ) -> None:
        self._file = file
        self._plugin_log = plugin_log
        self._token_ends_s = token_ends_s

    def write(
        self, counted: Mapping[str, int], waiting: int, failures: Failures, worked_s: float | None
    ) -> None:
        """Write all numbers.

        Parameters
        ----------
        counted : mapping of str to int
            Jobs that are done and those of them without a log, sent traces and outcomes, and logs
            that the service rejected, all since the start.
        """
        if self._plugin_log is not None:
            failures.attempt("reading the plugin's lines", self._plugin_log.read)
        self._file.write(
            [
                *common_metrics("watch", failures.counts, worked_s, self._token_ends_s()),
                *_own(counted, waiting),
                *(self._plugin_log.metrics() if self._plugin_log is not None else ()),
            ]
        )

    def close(self) -> None:
        """Wait a little for the last text."""
        self._file.close()
        if self._plugin_log is not None:
            self._plugin_log.close()


def _own(counted: Mapping[str, int], waiting: int) -> Iterator[Metric]:
    jobs = CounterMetricFamily(
        "ioncast_watch_jobs", "Ended jobs, with or without a Darshan log.", labels=["log"]
    )
    jobs.add_metric(["yes"], counted["done"] - counted["without"])
    jobs.add_metric(["no"], counted["without"])
    yield jobs
    sent = CounterMetricFamily("ioncast_watch_sent", "Runs that were sent.", labels=["kind"])
    for kind in ("trace", "outcome"):
        sent.add_metric([kind], counted[kind])
    yield sent
    yield CounterMetricFamily(
        "ioncast_watch_rejected", "Logs that the service rejected.", counted["refused"]
    )
    yield GaugeMetricFamily(
        "ioncast_watch_waiting_logs", "Logs that wait for the service.", waiting
    )
