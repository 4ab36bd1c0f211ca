"""The applications of Inria RR-9366 as Darshan logs, and their phases by its tables.

The tables describe each phase as a whole. Its distribution over ranks is made up here, with the
right sums and extremes, and with counters that agree with each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.applications.darshan_writer import Record, write_log
from experiments.studies import rr9366
from experiments.studies.rr9366 import ReportedApplication, ReportedPhase

PAUSE_SECONDS = 10.0
_JOB_START_SECONDS = 1_580_000_000
_OPEN_SECONDS = 0.0004
_CLOSE_SECONDS = 0.0001
_META_SECONDS = 0.0005
_KIB = 1024
_MIB = 1024**2
# Upper edges in bytes, inclusive, of Darshan's histogram of request sizes.
_SIZE_BINS = (
    (100, "0_100"),
    (_KIB, "100_1K"),
    (10 * _KIB, "1K_10K"),
    (100 * _KIB, "10K_100K"),
    (_MIB, "100K_1M"),
    (4 * _MIB, "1M_4M"),
    (10 * _MIB, "4M_10M"),
    (100 * _MIB, "10M_100M"),
    (1024 * _MIB, "100M_1G"),
    (math.inf, "1G_PLUS"),
)


@dataclass(frozen=True)
class Application:
    """One application of the report.

    `request_counts` has the number of requests of one process in one phase by request size in
    bytes, the most common size first. `pattern` has the counters of one record that depend on the
    order of its requests.
    """

    reported: ReportedApplication
    request_counts: Mapping[int, int]
    pattern: Mapping[str, int]
    opens_per_process: int = 1

    @property
    def name(self) -> str:
        return self.reported.name

    @property
    def processes(self) -> int:
        return self.reported.processes

    @property
    def phases(self) -> tuple[ReportedPhase, ...]:
        """The phases of the whole run; the report prints only the first one."""
        first = self.reported.phase
        period = first.end - first.start + PAUSE_SECONDS
        return tuple(
            replace(first, start=first.start + k * period, end=first.end + k * period)
            for k in range(self.reported.n_phases)
        )

    @property
    def records(self) -> tuple[Record, ...]:
        """Darshan's records: for each phase a shared file, or a file for each process."""
        return tuple(
            record
            for number, phase in enumerate(self.phases)
            for record in _phase_records(self, phase, f"/scratch/{self.name.lower()}/data.{number}")
        )


def write(application: Application, path: Path) -> Path:
    """Write the log of a run of an application."""
    return write_log(
        path,
        nprocs=application.processes,
        records=application.records,
        exe=f"/opt/{application.name.lower()}",
        start=(_JOB_START_SECONDS, 0),
        end=(_JOB_START_SECONDS + math.ceil(application.phases[-1].end + 1), 0),
        mounts=(("/scratch", "lustre"), ("/", "ext4")),
    )


def _phase_records(application: Application, phase: ReportedPhase, path: str) -> tuple[Record, ...]:
    if phase.files == "shared":
        return (_shared_record(application, phase, path),)
    return tuple(
        _unique_record(application, phase, f"{path}.{rank:08d}", rank)
        for rank in range(application.processes)
    )


def _shared_record(application: Application, phase: ReportedPhase, path: str) -> Record:
    """Make the record of all ranks; their times grow evenly from rank 0 to the last rank."""
    n_ranks = application.processes
    slowest = phase.end - phase.start
    fastest = 2 * phase.time - slowest
    step = (slowest - fastest) / (n_ranks - 1)
    bytes_per_rank = phase.bytes // n_ranks
    counters = _counters(application, n_ranks) | {
        "POSIX_FASTEST_RANK": 0,
        "POSIX_FASTEST_RANK_BYTES": bytes_per_rank,
        "POSIX_SLOWEST_RANK": n_ranks - 1,
        "POSIX_SLOWEST_RANK_BYTES": bytes_per_rank,
    }
    fcounters = _fcounters(
        phase.start, phase.end, phase.time * n_ranks, _META_SECONDS * n_ranks
    ) | {
        "POSIX_F_CLOSE_START_TIMESTAMP": phase.start + fastest,
        "POSIX_F_MAX_WRITE_TIME": 2 * slowest * n_ranks / phase.requests,
        "POSIX_F_FASTEST_RANK_TIME": fastest + _META_SECONDS,
        "POSIX_F_SLOWEST_RANK_TIME": slowest + _META_SECONDS,
        "POSIX_F_VARIANCE_RANK_TIME": step**2 * (n_ranks**2 - 1) / 12,
    }
    return Record("POSIX", path, -1, counters, fcounters)


def _unique_record(application: Application, phase: ReportedPhase, path: str, rank: int) -> Record:
    """Make the record of one rank; rank 0 starts first, the last rank ends last and is slowest."""
    last = application.processes - 1
    idle = phase.end - phase.start - phase.time
    ahead = 0.25 * phase.time * (last - rank) / application.processes
    fcounters = _fcounters(
        phase.start + idle * rank / last, phase.end - ahead, phase.time - ahead, _META_SECONDS
    )
    return Record("POSIX", path, rank, _counters(application, 1), fcounters)


def _counters(application: Application, n_ranks: int) -> dict[str, int]:
    counts = {size: count * n_ranks for size, count in application.request_counts.items()}
    n_requests = sum(counts.values())
    n_bytes = sum(size * count for size, count in counts.items())
    counters = {
        "POSIX_OPENS": n_ranks * application.opens_per_process,
        "POSIX_WRITES": n_requests,
        "POSIX_SEEKS": n_requests,
        "POSIX_MMAPS": -1,
        "POSIX_MODE": 0o664,
        "POSIX_BYTES_WRITTEN": n_bytes,
        "POSIX_MAX_BYTE_WRITTEN": n_bytes - 1,
        "POSIX_MEM_ALIGNMENT": 8,
        "POSIX_FILE_ALIGNMENT": 4096,
        "POSIX_MAX_WRITE_TIME_SIZE": max(counts),
        **application.pattern,
    }
    for number, (size, count) in enumerate(counts.items(), start=1):
        counters[f"POSIX_ACCESS{number}_ACCESS"] = size
        counters[f"POSIX_ACCESS{number}_COUNT"] = count
        histogram = f"POSIX_SIZE_WRITE_{_size_bin(size)}"
        counters[histogram] = counters.get(histogram, 0) + count
    return counters


def _size_bin(size_bytes: int) -> str:
    return next(name for edge, name in _SIZE_BINS if size_bytes <= edge)


def _fcounters(start: float, end: float, write: float, meta: float) -> dict[str, float]:
    return {
        "POSIX_F_OPEN_START_TIMESTAMP": start - _OPEN_SECONDS,
        "POSIX_F_OPEN_END_TIMESTAMP": start,
        "POSIX_F_WRITE_START_TIMESTAMP": start,
        "POSIX_F_WRITE_END_TIMESTAMP": end,
        "POSIX_F_CLOSE_START_TIMESTAMP": end,
        "POSIX_F_CLOSE_END_TIMESTAMP": end + _CLOSE_SECONDS,
        "POSIX_F_WRITE_TIME": write,
        "POSIX_F_META_TIME": meta,
    }


SINGLE_A = Application(
    rr9366.SINGLE_A,
    request_counts={2 * _MIB: 64},
    pattern={"POSIX_CONSEC_WRITES": 8192 - 128, "POSIX_SEQ_WRITES": 8191},
)

SINGLE_B = Application(
    rr9366.SINGLE_B,
    request_counts={4 * _MIB: 16},
    pattern={"POSIX_CONSEC_WRITES": 15, "POSIX_SEQ_WRITES": 15},
)

PERIODIC_A = Application(
    rr9366.PERIODIC_A,
    request_counts={512 * _KIB: 256},
    pattern={
        "POSIX_SEQ_WRITES": 6143,
        "POSIX_STRIDE1_STRIDE": 23 * 512 * _KIB,
        "POSIX_STRIDE1_COUNT": 6144 - 24,
    },
)

PERIODIC_B = Application(
    rr9366.PERIODIC_B,
    request_counts={4 * _KIB: 32768},
    pattern={"POSIX_CONSEC_WRITES": 32767, "POSIX_SEQ_WRITES": 32767},
)

# Nine arrays behind the place of the header, then the header at offset 0. The first array is
# sequential, because it starts after offset 0. The header is neither sequential nor consecutive.
# A real run of HACC-IO has the same counters.
HACC_IO = Application(
    rr9366.HACC_IO,
    request_counts={400_000: 7, 25_165_824: 1, 800_000: 1, 200_000: 1},
    pattern={
        "POSIX_CONSEC_WRITES": 8,
        "POSIX_SEQ_WRITES": 9,
        "POSIX_FILE_NOT_ALIGNED": 8,
    },
    opens_per_process=2,
)

APPLICATIONS = (SINGLE_A, SINGLE_B, PERIODIC_A, PERIODIC_B, HACC_IO)
