"""Ingest: processes of this machine, or of Spark, write the bundles of new logs into a store."""

from __future__ import annotations

import gc
import random
import resource
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from ioncast.warehouse.bundles import (
    NEW,
    IngestOptions,
    Written,
    divided,
    write_bundle,
)
from ioncast.warehouse.copies import unique_tables_of
from ioncast.warehouse.engine import open_bundles
from ioncast.warehouse.inputs import LogFile, sources_of
from ioncast.warehouse.schema import EXTRACTOR
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.workers import Killed, results_in_order

_DAY_SECONDS = 86_400
# A log with a trace whose requests are not stored is read again if they are asked for.
_KNOWN = """
select path, size_bytes, modified_ns from raw_jobs
where system = $system and extractor = $extractor
    and (has_requests or not $requests or modules not like '%DXT_%')
union all
select path, size_bytes, modified_ns from raw_copies where system = $system
union all
select path, size_bytes, modified_ns from raw_failed
where system = $system and extractor = $extractor and not $retry
"""
_SAMPLES, _LOGS_OF_A_SAMPLE = 10, 20
# Of Student's t distribution with 9 degrees of freedom: 80 % of the values lie within.
_T_80 = 1.383


@dataclass(frozen=True)
class IngestCost:
    """The time and the disk that an ingest needs: means with intervals of 80 %.

    The time is of one process. Neither is known exactly without all logs.
    """

    logs: int
    seconds: float
    seconds_margin: float
    stored_bytes: float
    stored_bytes_margin: float


def open_store(path: str) -> Path:
    """Make the folder of a store, for its owner and group, and remove what old ingests left."""
    if "://" in path:
        raise InputError(
            "a store is a folder of a POSIX file system", where=path, remedy="give a folder"
        )
    store = Path(path).absolute()
    try:
        if not store.exists():
            store.mkdir(mode=0o750, parents=True)
        for left in store.glob(f"{NEW}*"):
            if time.time() - left.stat().st_mtime > _DAY_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise InputError(error.strerror or str(error), where=path) from error
    return store


def new_logs(files: Sequence[LogFile], options: IngestOptions, *, retry: bool) -> list[LogFile]:
    """Leave out the logs that the store knows by path, size and time."""
    names = [file.name.encode(errors="replace").decode() for file in files]
    given = pa.table(
        {
            "number": pa.array(range(len(files)), pa.int64()),
            "path": pa.array(names, pa.string()),
            "size_bytes": pa.array([file.size_bytes for file in files], pa.int64()),
            "modified_ns": pa.array([file.modified_ns for file in files], pa.int64()),
        }
    )
    values = {
        "system": options.system,
        "extractor": EXTRACTOR,
        "requests": options.requests,
        "retry": retry,
    }
    # Processes are forked later, so no thread of DuckDB may live on.
    with duckdb.connect(":memory:") as database:
        open_bundles(database, options.store)
        database.register("given", given)
        found = database.execute(
            f"with known as ({_KNOWN}) select number from given"
            " where not exists (select 1 from known where known.path = given.path"
            " and known.size_bytes = given.size_bytes"
            " and known.modified_ns = given.modified_ns) order by number",
            values,
        ).fetchall()
    return [files[number] for [number] in found]


def ingest(
    files: Sequence[LogFile],
    options: IngestOptions,
    workers: int,
    memory_mib: int | None = None,
) -> Iterator[tuple[tuple[LogFile, ...], Written]]:
    """Write the bundles of logs with processes of this machine; yield each with its logs.

    Raises
    ------
    InputError
        If the store cannot be written, or no process can read the logs. Bundles that were yielded
        stay.
    """
    bundles = divided(files, workers)
    write = partial(_write_within, options=options, memory_mib=memory_mib)
    for bundle, result in zip(bundles, results_in_order(write, bundles, workers), strict=True):
        yield bundle, _settled(result, bundle, options, memory_mib)


def written_safely(
    bundle: Sequence[LogFile], options: IngestOptions, memory_mib: int | None
) -> Written:
    """Write a bundle in a process of its own, because a log may kill its reader."""
    write = partial(_write_within, options=options, memory_mib=memory_mib)
    [result] = results_in_order(write, [bundle], 1)
    return _settled(result, bundle, options, memory_mib)


def estimated(files: Sequence[LogFile], options: IngestOptions) -> IngestCost:
    """Estimate from a random sample of at most 200 logs what all of them need."""
    sample = random.Random(0).sample(files, min(len(files), _SAMPLES * _LOGS_OF_A_SAMPLE))  # noqa: S311
    parts = [part for part in (sample[start::_SAMPLES] for start in range(_SAMPLES)) if part]
    seconds, stored = [], []
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = replace(options, store=Path(folder))
        # A bundle of 20 logs has as many files as one of 2,000.
        empty = write_bundle([], elsewhere).stored_bytes
        for part in parts:
            begin = time.monotonic()
            written = write_bundle(part, elsewhere)
            seconds.append((time.monotonic() - begin) / len(part))
            stored.append((written.stored_bytes - empty) / len(part))
    return IngestCost(len(files), *_total(seconds, len(files)), *_total(stored, len(files)))


def _total(of_a_log: list[float], logs: int) -> tuple[float, float]:
    """The sum of all logs and its margin; without two samples the margin is the sum."""
    if len(of_a_log) < 2:
        total = logs * sum(of_a_log)
        return total, total
    margin = _T_80 * statistics.stdev(of_a_log) / len(of_a_log) ** 0.5
    return logs * statistics.fmean(of_a_log), logs * margin


def _write_within(
    bundle: Sequence[LogFile],
    options: IngestOptions,
    memory_mib: int | None,
    reasons: Mapping[str, str] | None = None,
) -> Written | Killed | IoncastError:
    """Write a bundle within the memory that a process may use."""
    _limit(memory_mib)
    # The garbage collector takes a tenth of the time, and a bundle leaves few cycles.
    gc.disable()
    try:
        return write_bundle(bundle, options, reasons)
    except MemoryError:
        return Killed(signal.SIGKILL)
    except OSError as error:
        what = error.strerror or str(error)
        return InputError(what, where=str(options.store), remedy="mend this, and ingest again")
    finally:
        gc.collect()


def _limit(memory_mib: int | None) -> None:
    if memory_mib is not None:
        # Arrow's own allocators reserve more than they use.
        pa.set_memory_pool(pa.system_memory_pool())
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (memory_mib << 20, hard))


def _settled(
    result: Written | Killed | IoncastError,
    bundle: Sequence[LogFile],
    options: IngestOptions,
    memory_mib: int | None,
) -> Written:
    """Write a bundle without the logs that killed its process, and raise its error."""
    if isinstance(result, Killed):
        reasons = _culprits(bundle, options, memory_mib)
        write = partial(_write_within, options=options, memory_mib=memory_mib, reasons=reasons)
        [result] = results_in_order(write, [bundle], 1)
    if isinstance(result, IoncastError):
        raise result
    if isinstance(result, Killed):
        raise InputError(
            f"the process that read {len(bundle)} logs was killed, but none of them alone does it",
            where=bundle[0].name,
            remedy="give the processes more memory, and ingest again",
        )
    return result


def _culprits(
    files: Sequence[LogFile], options: IngestOptions, memory_mib: int | None
) -> dict[str, str]:
    """Find the logs that kill the process that reads them, by halves, with reasons."""
    [result] = results_in_order(
        partial(_read_within, options=options, memory_mib=memory_mib), [files], 1
    )
    if not isinstance(result, Killed):
        return {}
    if len(files) == 1:
        return {files[0].name: _reason(result)}
    half = len(files) // 2
    return {
        name: reason
        for part in (files[:half], files[half:])
        for name, reason in _culprits(part, options, memory_mib).items()
    }


def _read_within(
    files: Sequence[LogFile], options: IngestOptions, memory_mib: int | None
) -> Killed | None:
    _limit(memory_mib)
    try:
        unique_tables_of(sources_of(files), system=options.system, requests=options.requests)
    except MemoryError:
        return Killed(signal.SIGKILL)
    return None


def _reason(killed: Killed) -> str:
    if killed.signal == signal.SIGKILL:
        return "the memory is not enough to read it"
    return f"its reader ended by signal {killed.signal}" if killed.signal else "its reader failed"
