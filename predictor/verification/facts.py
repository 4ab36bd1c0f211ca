"""The facts of a phase that its log holds, in a form that does not depend on the run's size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS, SPATIALITIES
from summario.phases.extract import file_rows
from summario.phases.merge import FilePhases, spatialities
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.streams import MODULE_OF_API, Floats, Ints, first_accesses
from summario.phases.values import Part, Phase
from summario.reading.file_ids import is_among
from summario.reading.records import Records
from summario.runs.logs_of_run import Run

# The times of a shorter phase tell more about the start of its processes than about its I/O.
_SHORTEST_SECONDS = 0.5
_TOO_SHORT: dict[str, Any] = {"metadata": None, "busy": None, "evenness": None}
# A gap between requests is that of a phase if at least this share of the requests has it.
_MOST_REQUESTS = 0.5

# The records of one module, and the number of processes, of each log of a run.
_OfLogs = Sequence[tuple[Records, int]]


@dataclass(frozen=True)
class PhaseFacts:
    """The counters and times of a phase, or of one of its parts; None if the log does not tell.

    The POSIX counters of a phase of MPI-IO are those of its files below MPI-IO. A share is between
    0 and 1.

    Attributes
    ----------
    bytes, requests, processes : int
        Moved bytes, number of requests, and number of processes that took part.
    collective : float or None
        Share of the MPI-IO calls that are collective.
    below : float or None
        POSIX bytes per byte of MPI-IO.
    aggregators : int or None
        Number of processes that a collective phase used for POSIX.
    consecutive, sequential : float or None
        Shares of the POSIX requests that begin at the end of the request before them, or at or
        after it. First accesses are left out.
    gap_bytes : int or None
        Bytes between a POSIX request and the next one, if most requests have the same gap.
    unaligned : float or None
        Share of the POSIX requests that do not begin at a block of the file system.
    fsync : str or None
        "none", "end" or "each" (see `Phase`).
    opens : float or None
        Number of files that a process opens; a file counts each time.
    deviation_of_bytes : float or None
        Standard deviation of the processes' bytes over their mean.
    metadata, busy, evenness : float or None
        Shares of time: metadata calls in the time of the slowest process; reads or writes of the
        average process in the phase's time; the average process's time in calls in the slowest
        one's. None if the phase is shorter than 0.5 s.
    """

    bytes: int
    requests: int
    processes: int
    collective: float | None = None
    below: float | None = None
    aggregators: int | None = None
    consecutive: float | None = None
    sequential: float | None = None
    gap_bytes: int | None = None
    unaligned: float | None = None
    block_bytes: int | None = None
    fsync: str | None = None
    opens: float | None = None
    deviation_of_bytes: float | None = None
    metadata: float | None = None
    busy: float | None = None
    evenness: float | None = None

    @property
    def request_bytes(self) -> float:
        """Mean bytes of a request."""
        return self.bytes / self.requests

    def of_part(self, part: Part) -> PhaseFacts:
        """The facts of one part; its order, opens and times are those of the whole phase."""
        return replace(self, bytes=part.bytes, requests=part.requests)


def facts_of(
    run: Run, phases: Sequence[Phase], settings: ExtractionSettings = DEFAULTS
) -> list[PhaseFacts]:
    """Look up the facts of the phases of a run.

    If a file is in several phases, its counters belong to them in proportion to their requests.

    References
    ----------
    The counters are those of Darshan's POSIX, MPI-IO and STDIO modules.
    """
    if not phases:
        return []
    rows = file_rows(run, settings)
    spatiality = spatialities(rows, settings.threshold)
    return [_facts(run, phase, rows, _rows_of(phase, rows, spatiality)) for phase in phases]


def _rows_of(phase: Phase, rows: FilePhases, spatiality: Ints) -> NDArray[np.bool_]:
    """Tell which rows are of the files of a phase."""
    of_kind: NDArray[np.bool_] = (rows.api == APIS.index(phase.api)) & (
        rows.operation == OPERATIONS.index(phase.operation)
    )
    of_kind &= rows.shared == (phase.file_access == "shared")
    of_kind &= (rows.start <= phase.end_seconds) & (rows.end >= phase.start_seconds)
    # Pauses change the number of first accesses, so a piece may have another order than its file.
    alike = of_kind & (spatiality == SPATIALITIES.index(phase.spatiality))
    return alike if np.any(alike) else of_kind


def _facts(run: Run, phase: Phase, rows: FilePhases, chosen: NDArray[np.bool_]) -> PhaseFacts:
    files = rows.file_id[chosen]
    own = _records_of(run, MODULE_OF_API[phase.api], files)
    posix = _records_of(run, "POSIX", files)
    of_files = is_among(rows.file_id, files) & (rows.api == APIS.index(phase.api))
    # A phase whose requests are not known has none, and is not verified.
    opens = _opens(own, phase.api) / max(int(rows.requests[of_files].sum()), 1)
    in_phase = phase.requests / max(int(rows.requests[chosen].sum()), 1)
    facts = PhaseFacts(
        bytes=phase.bytes,
        requests=phase.requests,
        processes=phase.processes,
        fsync=phase.fsync,
        aggregators=phase.aggregators,
        opens=opens * phase.requests / phase.processes,
        **_mpiio_facts(rows, chosen, own, posix, phase),
        **_posix_facts(posix, phase.operation),
        **_shares_of_time(own, phase, in_phase),
        **_balance(own, phase.api),
    )
    elapsed = _elapsed_seconds(phase)
    return facts if elapsed >= _SHORTEST_SECONDS else replace(facts, **_TOO_SHORT)


def _elapsed_seconds(phase: Phase) -> float:
    return phase.elapsed_seconds or phase.end_seconds - phase.start_seconds


def _shares_of_time(own: _OfLogs, phase: Phase, in_phase: float) -> dict[str, Any]:
    """Compute shares of time; `in_phase` is the share of the files' requests in the phase."""
    name = f"{phase.api}_F_{phase.operation.upper()}_TIME"
    seconds = in_phase * sum(float(records.real(name).sum()) for records, _ in own)
    metadata = phase.metadata_seconds
    return {
        "metadata": None
        if metadata is None
        else _share(metadata, metadata + phase.io_time_seconds),
        "busy": _share(seconds, _elapsed_seconds(phase) * phase.processes),
    }


def _records_of(run: Run, module: str, files: NDArray[np.uint64]) -> _OfLogs:
    return [
        (replace(records, words=records.words[is_among(records.ids, files)]), log.job.nprocs)
        for log in run.logs
        if (records := log.records.get(module)) is not None
    ]


def _total(of_logs: _OfLogs, *names: str) -> int:
    return sum(int(records.integer(name).sum()) for records, _ in of_logs for name in names)


def _share(part: float, whole: float) -> float | None:
    return min(part / whole, 1.0) if whole > 0 else None


def _opens(records: _OfLogs, api: str) -> int:
    if api == "MPIIO":
        return _total(records, "MPIIO_INDEP_OPENS", "MPIIO_COLL_OPENS")
    # Darshan counts FILENOS and DUPS as opens of POSIX too.
    copies = _total(records, "POSIX_FILENOS", "POSIX_DUPS") if api == "POSIX" else 0
    return _total(records, f"{api}_OPENS") - copies


def _mpiio_facts(
    rows: FilePhases,
    chosen: NDArray[np.bool_],
    own: _OfLogs,
    posix: _OfLogs,
    phase: Phase,
) -> dict[str, Any]:
    if phase.api != "MPIIO":
        return {}
    calls = int(rows.counted[chosen].sum())
    moved = _total(own, "MPIIO_BYTES_READ", "MPIIO_BYTES_WRITTEN")
    below = _total(posix, "POSIX_BYTES_READ", "POSIX_BYTES_WRITTEN")
    return {
        "collective": _share(int(rows.collective[chosen].sum()), calls),
        "below": below / moved if below and moved else None,
    }


def _posix_facts(posix: _OfLogs, operation: str) -> dict[str, Any]:
    plural = f"{operation.upper()}S"
    ordered = _total(posix, f"POSIX_{plural}") - sum(
        int(_first_accesses(records, nprocs, operation).sum()) for records, nprocs in posix
    )
    both = _total(posix, "POSIX_READS", "POSIX_WRITES")
    blocks = {
        size for records, _ in posix for size in records.integer("POSIX_FILE_ALIGNMENT").tolist()
    }
    return {
        "consecutive": _share(_total(posix, f"POSIX_CONSEC_{plural}"), ordered),
        "sequential": _share(_total(posix, f"POSIX_SEQ_{plural}"), ordered),
        "gap_bytes": _common_gap(posix, both),
        "unaligned": _share(_total(posix, "POSIX_FILE_NOT_ALIGNED"), both),
        "block_bytes": blocks.pop() if len(blocks) == 1 else None,
    }


def _first_accesses(records: Records, nprocs: int, operation: str) -> Ints:
    processes = np.where(records.ranks < 0, nprocs, 1)
    requests = records.integer(f"POSIX_{operation.upper()}S")
    return first_accesses(records, "POSIX", operation, requests, processes)


def _common_gap(posix: _OfLogs, requests: int) -> int | None:
    """Find the gap that most requests have; Darshan counts the four most common ones of a file."""
    gaps: Counter[int] = Counter()
    for records, _ in posix:
        for number in range(1, 5):
            names = (f"POSIX_STRIDE{number}_STRIDE", f"POSIX_STRIDE{number}_COUNT")
            for gap, count in records.integers(*names).tolist():
                gaps[gap] += count
    [(gap, count)] = gaps.most_common(1) or [(0, 0)]
    return gap if gap and count >= _MOST_REQUESTS * requests else None


def _balance(own: _OfLogs, api: str) -> dict[str, Any]:
    """Compare the processes: by the largest reduced record, or by records of single processes."""
    reduced = [
        (moved, balance)
        for records, nprocs in own
        for moved, balance in _balances_of_reduced(records, nprocs, api)
    ]
    by_process = [_sums_by_process(records, api) for records, _ in own]
    moved = np.concatenate([sums[0] for sums in by_process])
    seconds = np.concatenate([sums[1] for sums in by_process])
    largest = max(reduced, key=lambda pair: pair[0], default=None)
    if largest and largest[0] >= moved.sum():
        return largest[1]
    if len(moved) < 2:
        return {}
    return {
        "deviation_of_bytes": float(moved.std() / moved.mean()) if moved.sum() else None,
        "evenness": _share(float(seconds.mean()), float(seconds.max())),
    }


def _balances_of_reduced(
    records: Records, nprocs: int, api: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    shared = replace(records, words=records.words[records.ranks < 0])
    moved, seconds = _moved(shared, api), _seconds(shared, api)
    slowest = shared.real(f"{api}_F_SLOWEST_RANK_TIME")
    variance = shared.real(f"{api}_F_VARIANCE_RANK_BYTES")
    for row, total in enumerate(moved.tolist()):
        deviation = math.sqrt(max(float(variance[row]), 0)) if np.isfinite(variance[row]) else None
        yield (
            total,
            {
                "deviation_of_bytes": None
                if deviation is None or not total
                else deviation * nprocs / total,
                "evenness": _share(float(seconds[row]) / nprocs, float(slowest[row])),
            },
        )


def _sums_by_process(records: Records, api: str) -> tuple[Ints, Floats]:
    """Add up the bytes and the seconds of each process that has records of its own."""
    own = replace(records, words=records.words[records.ranks >= 0])
    processes, place = np.unique(own.ranks, return_inverse=True)
    moved = np.zeros(len(processes), np.int64)
    np.add.at(moved, place, _moved(own, api))
    seconds = np.zeros(len(processes))
    np.add.at(seconds, place, _seconds(own, api))
    return moved, seconds


def _moved(records: Records, api: str) -> Ints:
    return records.integer(f"{api}_BYTES_READ") + records.integer(f"{api}_BYTES_WRITTEN")


def _seconds(records: Records, api: str) -> Floats:
    names = ("READ", "WRITE", "META")
    seconds: Floats = np.add.reduce([records.real(f"{api}_F_{name}_TIME") for name in names])
    return seconds
