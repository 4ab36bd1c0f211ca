"""Rows of the table `jobs`: a log, with the sums of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np

from ioncast.insights.facts.file_times import file_times_of
from ioncast.insights.facts.values import Bools, RunFacts, total
from ioncast.warehouse.arrays import INDEX, Columns
from ioncast.warehouse.file_rows import FilesOfRuns
from ioncast.warehouse.schema import EXTRACTOR
from ioncast_base.files import program_of
from predictor.curve.composing import observed_mib_s
from summario.phases.values import Extraction
from summario.runs.hosts import job_nodes

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def job_rows(
    about: Sequence[Mapping[str, Any]],
    runs: Sequence[RunFacts],
    files: FilesOfRuns,
    found: Sequence[Extraction],
    have_requests: Sequence[bool],
) -> Columns:
    """Make a row of each run, with the columns of its file, `about`."""
    times = file_times_of(files.facts, files.shared)
    io_seconds = times.read_seconds + times.write_seconds
    use_mpiio, use_collective = _mpiio_uses(files, len(runs))
    rows = []
    for index, (of_file, run, extraction) in enumerate(zip(about, runs, found, strict=True)):
        of_run = slice(files.edges[index], files.edges[index + 1])
        rows.append(
            {
                INDEX: index,
                **of_file,
                **_job(run, extraction, float(io_seconds[of_run].sum())),
                "read_bytes": total(files.facts.files.bytes_read[of_run]),
                "written_bytes": total(files.facts.files.bytes_written[of_run]),
                "metadata_seconds": float(times.metadata_seconds[of_run].sum()),
                "files": of_run.stop - of_run.start,
                "uses_mpiio": bool(use_mpiio[index]),
                "uses_collective": bool(use_collective[index]),
                "has_requests": have_requests[index],
                "extractor": EXTRACTOR,
            }
        )
    return {name: [row[name] for row in rows] for name in rows[0]}


def _mpiio_uses(files: FilesOfRuns, runs: int) -> tuple[Bools, Bools]:
    """Tell which runs have MPI-IO records, and which have collective calls."""
    use_mpiio, use_collective = np.zeros((2, runs), bool)
    layer = files.facts.layers.get("MPIIO")
    if layer is not None:
        run = files.run[layer.file]
        reads, writes = layer.reads, layer.writes
        use_mpiio[run] = True
        is_collective = (reads.collective + reads.split) != 0
        is_collective |= (writes.collective + writes.split) != 0
        use_collective[run[is_collective]] = True
    return use_mpiio, use_collective


def _job(run: RunFacts, extraction: Extraction, io_seconds: float) -> dict[str, Any]:
    most = run.processes * run.run_seconds
    is_capped = 0 < most < io_seconds
    start, nodes = _start(run.start_seconds), job_nodes(None, extraction.nodes)
    try:
        bandwidth = observed_mib_s(extraction.phases)
    except ValueError:
        bandwidth = None
    return {
        "job_id": run.job_id,
        "user_id": run.uid,
        "program": program_of(run.command.split(maxsplit=1)[0]) if run.command.strip() else None,
        "command": run.command,
        "processes": run.processes,
        "compute_nodes": nodes.number if nodes else None,
        "start_us": round(run.start_seconds * 1e6) if start else None,
        "month": f"{start:%Y-%m}" if start else None,
        "run_seconds": run.run_seconds,
        "darshan_version": run.darshan,
        "modules": ",".join(module.name for module in run.modules),
        "partial": any(module.is_partial for module in run.modules),
        "io_seconds": most if is_capped else io_seconds,
        "capped": is_capped,
        "bandwidth_mib_s": bandwidth,
    }


def _start(seconds: float) -> datetime | None:
    """A Unix time as a date; None if there is no such date."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None
