"""The files that moved most bytes or took most time, and the time by layer, for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ioncast.insights.facts.file_times import NO_RANK, FileTimes
from ioncast.insights.facts.values import Files, Floats
from ioncast_base.kinds import APIS


def files_record(files: Files, times: FileTimes, most: int) -> list[dict[str, Any]]:
    """Describe the files that moved most bytes, and those that took most time, in turns.

    Seconds are those of all processes together, but for `slowest_seconds`.
    """
    by_bytes, by_time = (
        np.argsort(-values, kind="stable")[:most] for values in (files.bytes, times.seconds)
    )
    rows = dict.fromkeys(np.stack([by_bytes, by_time], axis=1).ravel().tolist())
    return [_file(files, times, row) for row in rows]


def _file(files: Files, times: FileTimes, row: int) -> dict[str, Any]:
    rank = int(times.slowest_rank[row])
    return {
        "path": files.path[row],
        "layer": APIS[files.api[row]],
        "processes": int(files.processes[row]),
        "bytes_read": int(files.bytes_read[row]),
        "bytes_written": int(files.bytes_written[row]),
        "extent_bytes": int(files.extent_bytes[row]),
        "read_seconds": float(times.read_seconds[row]),
        "write_seconds": float(times.write_seconds[row]),
        "metadata_seconds": float(times.metadata_seconds[row]),
        "slowest_seconds": float(times.slowest_seconds[row]),
        "slowest_rank": None if rank == NO_RANK else rank,
    }


def layer_times_record(files: Files, times: FileTimes) -> list[dict[str, Any]]:
    """Add up the time of all files by layer; each file counts once, at its highest layer."""
    return list(_layer_times(files, times))


def _layer_times(files: Files, times: FileTimes) -> Iterator[dict[str, Any]]:
    for place, api in enumerate(APIS):
        of_layer = files.api == place
        if of_layer.any():
            yield {
                "layer": api,
                "files": int(of_layer.sum()),
                "read_seconds": _sum(times.read_seconds[of_layer]),
                "write_seconds": _sum(times.write_seconds[of_layer]),
                "metadata_seconds": _sum(times.metadata_seconds[of_layer]),
            }


def _sum(seconds: Floats) -> float:
    return float(seconds.sum())
