"""The host names in APMPI, the MPI module of AutoPerf.

The module has one record of the job, then one for each process: 5 KB of counters, which nothing
here needs, and the name of its host. The layout is that of darshan-apmpi-log-format.h.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from summario.reading.inflate import InflateError, inflate
from summario.reading.names import name_in

MODULE = "APMPI"
VERSION = 1
_JOB_BYTES = 48
_ID_AND_RANK_BYTES = 16
_COUNTERS_BYTES = 5088
_HOST_BYTES = 128
_PROCESS_BYTES = _ID_AND_RANK_BYTES + _COUNTERS_BYTES + _HOST_BYTES


def inflate_hosts(region: bytes, method: int, max_bytes: int) -> bytes:
    """Keep each process' id, rank and host, and drop counters (340 MB for 64,000 processes)."""
    return b"".join(_kept(inflate(region, method, max_bytes)))


def _kept(streams: Iterator[bytes]) -> Iterator[bytes]:
    begin = _JOB_BYTES
    for stream in streams:
        if (len(stream) - begin) % _PROCESS_BYTES:
            raise InflateError
        for place in range(begin, len(stream), _PROCESS_BYTES):
            end = place + _PROCESS_BYTES
            yield stream[place : place + _ID_AND_RANK_BYTES]
            yield stream[end - _HOST_BYTES : end]
        begin = 0


def hosts_by_rank(data: bytes, byte_order: str) -> list[tuple[int, str]]:
    """List the rank and the host name of each process, from the answer of `inflate_hosts`."""
    record = np.dtype(
        [("id", f"{byte_order}u8"), ("rank", f"{byte_order}i8"), ("host", f"V{_HOST_BYTES}")]
    )
    records = np.frombuffer(data, record)
    hosts = [name_in(host.tobytes()) for host in records["host"]]
    return list(zip(records["rank"].tolist(), hosts, strict=True))
