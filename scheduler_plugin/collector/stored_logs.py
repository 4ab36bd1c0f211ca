"""The logs that a store of `ioncast ingest` knows, wherever they are, by job and start."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

from ioncast_base.errors import InputError
from scheduler_plugin.collector.darshan_logs import FoundLogs, span_of_run


class StoredLogs:
    """The logs of a system in a store; members of tar files are left out, and counted."""

    def __init__(self, store: Path, system: str) -> None:
        self._logs: dict[int, list[tuple[float, Path]]] = defaultdict(list)
        self.in_tar_files = 0
        self.number = 0
        for row in _jobs(store, system):
            path = Path(row["path"])
            if not path.is_file():
                self.in_tar_files += ".tar" in row["path"]
            elif row["start_us"] is not None:
                self._logs[row["job_id"]].append((row["start_us"] / 1e6, path))
                self.number += 1

    def logs_of(
        self,
        job_id: int,
        started_s: float,
        ended_s: float,
        *,
        after_s: float | None = None,
        before_s: float | None = None,
        known_s: float = math.inf,
    ) -> FoundLogs:
        """The logs of one run of a job; see `LogFolder.logs_of`."""
        since_s, until_s = span_of_run(
            started_s, ended_s, after_s=after_s, before_s=before_s, known_s=known_s
        )
        logs = self._logs.get(job_id, ())
        paths = {path for start_s, path in logs if since_s <= start_s < until_s}
        return FoundLogs(tuple(sorted(paths)), is_writing=False)


def _jobs(store: Path, system: str) -> list[dict[str, Any]]:
    try:
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"a store needs {error.name}", remedy="pip install 'ioncast[warehouse]'"
        ) from error
    files = sorted(store.glob("bundle=*/jobs.parquet"))
    if not files:
        raise InputError(
            "this folder is not a store", where=str(store), remedy="`ioncast ingest` makes one"
        )
    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            table = pq.ParquetFile(file).read(["path", "job_id", "start_us", "system"])
        except (OSError, ValueError) as error:
            raise InputError(f"this file cannot be read: {error}", where=str(file)) from error
        rows += [row for row in table.to_pylist() if row["system"] == system]
    return rows
