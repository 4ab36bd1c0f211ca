"""Reasons why a log has no phases: the calls that it counts instead of reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS
from ioncast_base.wording import counted, listed, size
from summario.phases.settings import ExtractionSettings
from summario.phases.streams import MODULE_OF_API, MOST, Streams
from summario.reading.file_ids import is_among
from summario.reading.log import DarshanLog
from summario.reading.records import Records

# The counters of calls that use a file without a read or a write, by the noun that counts them.
_CALLS: dict[str, dict[str, tuple[str, ...]]] = {
    "POSIX": {
        "open": ("POSIX_OPENS", "POSIX_FOPENS"),
        "mmap": ("POSIX_MMAPS",),
        "stat": ("POSIX_STATS",),
    },
    "MPIIO": {"open": ("MPIIO_INDEP_OPENS", "MPIIO_COLL_OPENS")},
    "STDIO": {"open": ("STDIO_OPENS",)},
}
# Modules of programs that move their data without calls of POSIX, MPI-IO or STDIO.
_OTHER_WAYS = ("DFS", "DAOS")


def why_no_phases(
    log: DarshanLog,
    streams: Streams | None,
    system_files: NDArray[np.uint64],
    settings: ExtractionSettings,
) -> tuple[str, ...]:
    """Say why no phase is left of a log; `system_files` is empty if the system's files count."""
    ids = np.zeros(0, np.uint64) if streams is None else streams.file_id
    of_system = is_among(ids, system_files)
    if streams is not None and not of_system.all():
        counted_streams = streams.take(~of_system)
        with_bytes = counted_streams.take(counted_streams.bytes > 0)
        reasons = (
            [_other_layer(with_bytes, settings.layer)]
            if len(with_bytes)
            else [_nothing_moved(counted_streams)]
        )
    else:
        reasons = [*_touched(log, system_files), *_other_ways(log)]
    if streams is not None and len(ids) and of_system.all():
        reasons.append(_only_system_files(streams))
    first, *others = reasons or [
        "Darshan counted no call on a file, or was told to leave out the files"
    ]
    return (f"no I/O phases: {first}", *others)


def _other_layer(streams: Streams, layer: str) -> str:
    through = listed([MODULE_OF_API[APIS[api]] for api in np.unique(streams.api)])
    return f"the files were read and written through {through}, which --layer {layer} leaves out"


def _nothing_moved(streams: Streams) -> str:
    files = counted(len(np.unique(streams.file_id)), "file")
    return f"the reads and writes of {files} moved no bytes"


def _touched(log: DarshanLog, system_files: NDArray[np.uint64]) -> Iterator[str]:
    """Name the calls on files of the application, none of which was read or written."""
    told = [
        calls
        for api, module in MODULE_OF_API.items()
        if module in log.records
        and (calls := _calls(log.records[module], api, system_files)) is not None
    ]
    if told:
        yield f"Darshan counted {listed(told)}, but no reads or writes"
        yield (
            "reads and writes through mapped memory, copy_file_range or sendfile do not show in a"
            " Darshan log"
        )


def _other_ways(log: DarshanLog) -> Iterator[str]:
    used = [name for name in _OTHER_WAYS if name in log.header.modules]
    if used:
        yield f"the program used {listed(used)}, and ioncast makes no phases of their calls"


def _only_system_files(streams: Streams) -> str:
    files = counted(len(np.unique(streams.file_id)), "file")
    moved = size(int(streams.bytes.sum()))
    return (
        f"the only reads and writes are those of system files and standard streams ({files},"
        f" {moved}), which --all-files counts"
    )


def _calls(records: Records, api: str, left_out: NDArray[np.uint64]) -> str | None:
    """Count the calls on all files but some; None if there are no others."""
    rows = ~is_among(records.ids, left_out)
    if not rows.any():
        return None
    counts = {
        noun: sum(_total(records.integer(name)[rows]) for name in names)
        for noun, names in _CALLS[api].items()
    }
    calls = listed([counted(count, noun) for noun, count in counts.items() if count])
    files = counted(len(np.unique(records.ids[rows])), "file")
    return f"{calls or 'no call'} of {files} in {MODULE_OF_API[api]}"


def _total(counts: NDArray[np.int64]) -> int:
    # Darshan writes -1 for calls that it does not count.
    return int(np.clip(counts, 0, MOST).sum(dtype=np.float64))
