"""The servers of a run's files in its time: bytes at OSTs, and loads of metadata servers.

Source: Harrington, figure 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ioncast.diagnosis.server_evidence import RunAtServers, run_at_servers
from ioncast.warehouse.engine import Ask
from ioncast.warehouse.interference import bytes_by_time
from ioncast.warehouse.queries import query_of

Floats = NDArray[np.float64]
_MIB, _US = 1 << 20, 1_000_000
_MOST_BINS, _MOST_PERIODS = 300, 100
# Before and after the periods: a part of their time, and so many samples at least.
_MARGIN, _SAMPLES_OF_MARGIN = 0.1, 3
# Servers without samples in more of a bin could have moved more than the others.
_LEAST_COVERED = 0.8


class FilePeriod(NamedTuple):
    """The time from the first to the last request of a file, in seconds since the run's start."""

    file: str
    operation: Literal["read", "write"]
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True, eq=False)
class ServerTimes:
    """The servers of a run's files around its periods, in bins of time.

    Attributes
    ----------
    periods : tuple of FilePeriod
        The longest ones.
    edges : ndarray of shape (bins + 1,)
        Seconds since the run's start.
    osts : int
        The OSTs of the run's files.
    moved_mib_s, own_mib_s : ndarray of shape (bins,)
        The bandwidth of these OSTs together, by their samples, and that of the run's job there, by
        its logs. NaN where fewer than 80 % of the samples are known.
    mds_percent : ndarray of shape (bins,)
        The highest CPU load of a metadata server; NaN without samples.
    """

    periods: tuple[FilePeriod, ...]
    edges: Floats
    osts: int
    moved_mib_s: Floats
    own_mib_s: Floats
    mds_percent: Floats


def server_times(ask: Ask, log: str) -> ServerTimes | None:
    """Find the samples of servers in the time of a run; None without periods or samples of OSTs.

    Parameters
    ----------
    ask : callable
        Asks a store with the log and with samples.
    log : str
        SHA-256 of the log.
    """
    run = run_at_servers(ask, log)
    if run is None or not run.samples:
        return None
    start_us = run.periods[0]["start_us"]
    periods = [
        FilePeriod(
            row["file"],
            row["operation"],
            *((row[name] - start_us) / _US for name in ("start", "end")),
        )
        for row in sorted(run.periods, key=lambda row: row["start"] - row["end"])
    ]
    edges_us = _edges_us(run)
    servers = sorted({server for row in run.periods for server in row["shares"]})
    bin_us = float(edges_us[1] - edges_us[0])
    moved, covered, own = np.zeros((3, len(edges_us) - 1))
    for server in servers:
        if (samples := run.samples.get(server)) is not None:
            moved += bytes_by_time(samples, edges_us)
            covered += bytes_by_time(_lengths(samples), edges_us)
        if (requests := run.requests.get(server)) is not None:
            own += bytes_by_time(requests, edges_us)
    share = covered / (bin_us * len(servers))
    is_known = share >= _LEAST_COVERED
    if not is_known.any():
        return None
    of_us = _US / _MIB / bin_us
    with np.errstate(divide="ignore", invalid="ignore"):
        moved_mib_s = np.where(is_known, moved / share * of_us, np.nan)
    values = {"from_us": int(edges_us[0]), "to_us": int(edges_us[-1])}
    loads = ask(query_of("mds-loads"), {"system": run.periods[0]["system"] or "", **values})
    return ServerTimes(
        tuple(periods[:_MOST_PERIODS]),
        (edges_us - start_us) / _US,
        len(servers),
        moved_mib_s,
        np.where(is_known, own * of_us, np.nan),
        _highest(loads, edges_us),
    )


def _edges_us(run: RunAtServers) -> Floats:
    """Divide the time of all periods, with some time around it, into bins of at least a sample."""
    first, last = (min(row["start"] for row in run.periods), max(row["end"] for row in run.periods))
    margin_us = max(_MARGIN * (last - first), _SAMPLES_OF_MARGIN * run.step_us)
    first, last = first - margin_us, last + margin_us
    bins = min(ceil((last - first) / run.step_us), _MOST_BINS)
    edges: Floats = np.linspace(first, last, bins + 1)
    return edges


def _lengths(intervals: Floats) -> Floats:
    """Put the lengths of intervals in the place of their bytes."""
    return np.array((intervals[0], intervals[1], intervals[1] - intervals[0]))


def _highest(loads: pa.Table, edges_us: Floats) -> Floats:
    """Find the highest of the mean loads of servers in each bin."""
    highest = np.full(len(edges_us) - 1, np.nan)
    names = loads["server"].to_numpy()
    starts, ends, percent = (
        loads[name].to_numpy().astype(np.float64)
        for name in ("time_start_us", "time_end_us", "cpu_percent")
    )
    for name in np.unique(names):
        times = np.array((starts, ends, ends - starts))[:, names == name]
        loaded = np.array((times[0], times[1], times[2] * percent[names == name]))
        covered = bytes_by_time(times, edges_us)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(covered > 0, bytes_by_time(loaded, edges_us) / covered, np.nan)
        highest = np.fmax(highest, mean)
    return highest
