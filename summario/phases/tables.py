"""Phases as CSV, JSON and text, and readers of CSV and JSON."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ioncast_base.errors import InputError
from ioncast_base.kinds import APIS, FILE_ACCESSES, FSYNCS, OPERATIONS, ORDERS, SPATIALITIES
from ioncast_base.limits import LARGEST_BYTES
from ioncast_base.sizes import integral
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import size
from summario.phases import streamed
from summario.phases.periods import Period, find_periods, in_words, period_of_each
from summario.phases.values import Part, Phase

# SummarIO's columns, in its order.
COLUMNS = (
    "job",
    "start",
    "end",
    "type",
    "rank",
    "bytes",
    "time",
    "api",
    "requests",
    "spatiality",
    "files",
    "n_files",
    "mode_processes",
)
EXTRA_COLUMNS = (
    "processes",
    "nprocs",
    "parts",
    "partial",
    "log",
    "metadata_time",
    "fsync",
    "order",
    "aggregators",
    "elapsed",
    "largest_process",
    "largest_node",
    "nodes",
    "block_requests",
    "amplification",
)
_AS_WRITTEN = "write it as `ioncast phases --format json` does"


def to_record(phase: Phase) -> dict[str, Any]:
    """Convert a phase to a record with the names of columns; `parts` is a list of objects."""
    return {
        "job": phase.job,
        "start": phase.start_seconds,
        "end": phase.end_seconds,
        "type": phase.operation,
        "rank": phase.ranks,
        "bytes": phase.bytes,
        "time": phase.io_time_seconds,
        "api": phase.api,
        "requests": phase.requests or None,
        "spatiality": phase.spatiality,
        "files": phase.file_access,
        "n_files": phase.n_files,
        "mode_processes": phase.mode_processes,
        "processes": phase.processes,
        "nprocs": phase.nprocs,
        "parts": [
            {
                "request_bytes": whole(part.request_bytes),
                "requests": part.requests,
                "bytes": part.bytes,
            }
            for part in phase.parts
        ],
        "partial": phase.partial,
        "log": phase.log,
        "metadata_time": phase.metadata_seconds,
        "fsync": phase.fsync,
        "order": phase.order,
        "aggregators": phase.aggregators,
        "elapsed": phase.elapsed_seconds,
        "largest_process": phase.largest_process_bytes,
        "largest_node": phase.largest_node_bytes,
        "nodes": phase.nodes,
        "block_requests": phase.block_requests,
        "amplification": phase.amplification,
    }


def to_json(phases: Iterable[Phase]) -> str:
    """Write phases as a JSON list of objects."""
    return "".join(stream_json([phases]))


def to_csv(phases: Iterable[Phase]) -> str:
    """Write phases as CSV with a header; parts are written as `SIZExREQUESTS;…`."""
    return "".join(stream_csv([phases]))


def stream_json(batches: Iterable[Iterable[Phase]]) -> Iterator[str]:
    """Yield the JSON list of `to_json` in pieces, one for each batch of phases."""
    return streamed.stream_json(map(_with_periods, batches))


def _with_periods(phases: Iterable[Phase]) -> Iterator[dict[str, Any]]:
    phases = list(phases)
    periods = period_of_each(phases)
    for place, phase in enumerate(phases):
        yield {**to_record(phase), "period": period_record(periods.get(place))}


def period_record(period: Period | None) -> dict[str, Any] | None:
    """Convert how phases repeat to an object for JSON; None for a phase that does not repeat."""
    if period is None:
        return None
    return {
        "times": len(period.phases),
        "seconds": period.seconds,
        "pause_seconds": period.pause_seconds,
    }


def stream_csv(batches: Iterable[Iterable[Phase]]) -> Iterator[str]:
    """Yield the CSV of `to_csv` in pieces: the header, then one for each batch of phases."""
    columns = (*COLUMNS, *EXTRA_COLUMNS)
    return streamed.stream_csv(columns, (map(_row, phases) for phases in batches))


def _row(phase: Phase) -> dict[str, Any]:
    return {**to_record(phase), "parts": text_of_parts(phase.parts), "partial": int(phase.partial)}


def to_text(phases: Iterable[Phase]) -> str:
    """Write phases as a table for people, with the logs if there are several, and repetitions."""
    phases = list(phases)
    several = len({phase.log for phase in phases}) > 1
    mostly_metadata = any(phase.is_mostly_metadata for phase in phases)
    ordered = any(phase.order != phase.spatiality for phase in phases)
    synced = any(phase.fsync != "none" for phase in phases)
    aggregated = any(phase.aggregators not in (None, phase.processes) for phase in phases)
    rows = [
        {
            "phase": index,
            **({"log": visible(Path(phase.log).name)} if several else {}),
            "start s": f"{phase.start_seconds:.2f}",
            "end s": f"{phase.end_seconds:.2f}",
            "type": phase.operation,
            "api": phase.api,
            "spatiality": phase.spatiality,
            **({"order": phase.order or "unknown"} if ordered else {}),
            **({"aggregators": phase.aggregators} if aggregated else {}),
            "files": f"{phase.n_files} {phase.file_access}",
            "ranks": phase.ranks if phase.rank is None else f"rank {phase.rank}",
            "size": size(phase.bytes),
            "requests": " + ".join(
                f"{part.requests} × {size(part.request_bytes)}" for part in phase.parts
            )
            or "unknown",
            "I/O time s": _seconds(phase.io_time_seconds),
            **({"fsync": phase.fsync or "unknown"} if synced else {}),
            **({"metadata s": _seconds(phase.metadata_seconds)} if mostly_metadata else {}),
        }
        for index, phase in enumerate(phases)
    ]
    if not rows:
        return "no I/O phases"
    repeated = "\n".join(map(in_words, find_periods(phases)))
    return "\n\n".join(
        [
            text_table(rows, optional=["requests", "api", "end s", "ranks"]),
            *([repeated] if repeated else []),
        ]
    )


def _seconds(time: float | None) -> str:
    if time is None:
        return "unknown"
    # Opening hundreds of files takes hundredths of a second, and one small request much less.
    return f"{time:.2f}" if time >= 0.1 else f"{time:.4f}"


def read_csv(path: str | Path) -> list[Phase]:
    """Read phases from CSV, ours or SummarIO's with 13 columns; errors name line and column."""
    where = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(error.strerror or str(error), where=where) from error
    except UnicodeDecodeError as error:
        raise InputError("not a text file", where=where) from error
    reader = csv.DictReader(io.StringIO(text))
    phases = []
    try:
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise InputError(
                f"column {missing[0]!r} is missing",
                where=where,
                remedy=f"the columns are {','.join(COLUMNS)}",
            )
        for row in reader:
            if None in row:
                raise ValueError("there are more cells than columns")
            phases.append(_from_row(row))
    except (ValueError, KeyError, TypeError, ArithmeticError, csv.Error) as error:
        raise InputError(
            f"line {reader.line_num} is not a phase: {error}",
            where=where,
            remedy="write it as `ioncast phases --format csv` does",
        ) from error
    return phases


def from_record(record: Mapping[str, Any]) -> Phase:
    """Read a record that `to_record` may have written, or raise InputError: nothing is trusted."""
    try:
        job = integral(record["job"])
        if not isinstance(job, int | str):
            raise ValueError("the job is neither a number nor a text")
        row = {name: _cell(record[name]) for name in COLUMNS}
        row |= {name: _cell(record.get(name)) for name in EXTRA_COLUMNS if name != "parts"}
        parts = [Part(_whole(part["requests"]), _whole(part["bytes"])) for part in record["parts"]]
        return replace(_from_row(row, parts), job=job)
    except KeyError as error:
        raise InputError(f"not a phase: {error} is missing", remedy=_AS_WRITTEN) from error
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InputError(f"not a phase: {error}", remedy=_AS_WRITTEN) from error


def _cell(value: object) -> str:
    return "" if value is None else str(integral(value))


def _whole(value: object) -> int:
    return _count(_cell(value))


def _from_row(row: Mapping[str, str], parts: Sequence[Part] | None = None) -> Phase:
    moved, requests = _count(row["bytes"]), _count(row["requests"] or "0")
    n_files, mode_processes = _count(row["n_files"]), _count(row["mode_processes"])
    metadata, elapsed = row.get("metadata_time"), row.get("elapsed")
    times = [row["start"], row["end"], row["time"], metadata or 0, elapsed or 0]
    if not all(math.isfinite(float(time)) for time in times):
        raise ValueError("a time is not a finite number")
    nprocs = _count(row["nprocs"]) if row.get("nprocs") else None
    processes = _processes(row, n_files, mode_processes, nprocs)
    parts = parts_of_text(row.get("parts") or "", moved, requests) if parts is None else parts
    if any(min(part.requests, part.bytes) < 1 for part in parts):
        raise ValueError("a part has no requests or no bytes")
    if (parts or requests) and sum(part.bytes for part in parts) != moved:
        raise ValueError("the bytes of the parts do not add up to those of the phase")
    return Phase(
        job=int(row["job"]) if row["job"].isdecimal() else row["job"],
        start_seconds=float(row["start"]),
        end_seconds=float(row["end"]),
        operation=_one_of(row["type"], *OPERATIONS),
        rank=int(row["rank"]) if processes == 1 and row["rank"] != "all" else None,
        processes=processes,
        nprocs=nprocs,
        bytes=moved,
        io_time_seconds=float(row["time"]),
        api=_one_of(row["api"], *APIS),
        requests=requests,
        spatiality=_one_of(row["spatiality"], *SPATIALITIES),
        file_access=_one_of(row["files"], *FILE_ACCESSES),
        n_files=n_files,
        mode_processes=mode_processes,
        parts=tuple(parts),
        partial=row.get("partial") in ("1", "True", "true"),
        log=row.get("log") or "",
        metadata_seconds=float(metadata) if metadata else None,
        fsync=_one_of(row["fsync"], *FSYNCS) if row.get("fsync") else None,
        order=_one_of(row["order"], *ORDERS) if row.get("order") else None,
        block_requests=_at_least(row, "block_requests", 1),
        aggregators=_count(row["aggregators"]) if row.get("aggregators") else None,
        amplification=_at_least(row, "amplification", 0),
        elapsed_seconds=float(elapsed) if elapsed else None,
        largest_process_bytes=_share(row, "largest_process", moved),
        largest_node_bytes=_share(row, "largest_node", moved),
        nodes=_share(row, "nodes", processes),
    )


def _processes(
    row: Mapping[str, str], n_files: int, mode_processes: int, nprocs: int | None
) -> int:
    """Count the processes that took part.

    SummarIO's `rank` is a rank or a number of ranks. Without our own column `processes`, it is a
    rank if one process used one file.
    """
    if row.get("processes"):
        return _count(row["processes"])
    if row["rank"] == "all":
        return nprocs or (mode_processes if row["files"] == "shared" else n_files)
    return 1 if mode_processes == n_files == 1 else _count(row["rank"])


def whole(value: float) -> float:
    """Convert a whole number to an integer, for JSON."""
    return int(value) if value == int(value) else value


def text_of_parts(parts: Iterable[Part]) -> str:
    """Write parts as `SIZExREQUESTS;…`, with sizes in bytes."""
    return ";".join(f"{part.request_bytes:.17g}x{part.requests}" for part in parts)


def parts_of_text(text: str, moved: int, requests: int) -> tuple[Part, ...]:
    """Read `text_of_parts`; without a text all requests have the same size.

    Parameters
    ----------
    moved, requests : int
        The bytes and the requests of the phase, for an empty text.

    Raises
    ------
    ValueError
        When the text is not of this form.
    """
    if not text:
        return (Part(requests, moved),) if moved and requests else ()
    pairs = [part.split("x") for part in text.split(";")]
    return tuple(Part(int(count), round(float(size) * int(count))) for size, count in pairs)


def _count(text: str | None) -> int:
    """Read a count; other programs write it as 1024.0."""
    if text is None:
        raise ValueError("there are fewer cells than columns")
    count = int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    if count < 0:
        raise ValueError(f"a count is negative: {text}")
    if not count <= LARGEST_BYTES or count != int(count):
        raise ValueError(f"{text} is not a count")
    return int(count)


def _at_least(row: Mapping[str, str], name: str, lowest: float) -> float | None:
    """Read a finite number; None if its cell is empty."""
    if not row.get(name):
        return None
    number = float(row[name])
    if not lowest <= number <= LARGEST_BYTES:
        raise ValueError(f"{name} is {row[name]}, not a number from {lowest:g} on")
    return number


def _share(row: Mapping[str, str], name: str, whole_count: int) -> int | None:
    """Read a count that is a part of another one; None if its cell is empty."""
    if not row.get(name):
        return None
    count = _count(row[name])
    if not 1 <= count <= whole_count:
        raise ValueError(f"{name} is {count}, not 1 to {whole_count}")
    return count


def _one_of(value: str, *choices: str) -> str:
    if value not in choices:
        raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
    return value
