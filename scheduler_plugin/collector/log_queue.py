"""Note in the state which logs of a run are to be sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.collector.state import JobRun, Kind, WatchState
from scheduler_plugin.collector.stored_logs import StoredLogs

# The service accepts more logs and, by default, more bytes.
_MOST_LOGS = 900
MOST_BYTES = 128 << 20


def note_logs(
    state: WatchState,
    logs: LogFolder | StoredLogs,
    run: JobRun,
    *,
    known_s: float,
    wait_s: float,
    now_s: float,
) -> int | None:
    """Find the logs of an ended run, and note those that were not found before.

    The caller opens the transaction.

    Returns
    -------
    int or None
        Number of the run's logs; None as long as more may appear.
    """
    assert run.ended_s is not None  # noqa: S101
    before_s, after_s = state.neighbours(run)
    found = logs.logs_of(
        run.id,
        run.started_s,
        run.ended_s,
        after_s=before_s,
        before_s=after_s,
        known_s=known_s,
    )
    # While Slurm is away, the job may have been started again, and its logs would seem late.
    is_over = known_s > run.ended_s + wait_s
    # The outcome comes from the log that moved most bytes, so wait until all are complete.
    if found.is_writing and not is_over:
        return None
    known = state.paths_of(run)
    if not known.issuperset(found.paths):
        _note(state, run, found.paths, known, now_s)
    if not is_over:
        return None
    state.close_run(run, now_s)
    return len(known.union(found.paths))


def _note(
    state: WatchState, run: JobRun, paths: tuple[Path, ...], known: set[Path], now_s: float
) -> None:
    is_outcome = not known and run.io_nodes is not None
    # A late log may be a part of a run that was sent before.
    rejected = state.rejected_paths_of(run)
    logs = [path for path in paths if path not in rejected]
    for batch in batches(logs):
        kind: Kind = "outcome" if is_outcome and len(batch) == len(logs) else "trace"
        state.add_delivery(run, kind, batch, now_s)


def batches(paths: list[Path]) -> Iterator[list[Path]]:
    """Divide the logs of a job among requests, as few as the service's limits allow."""
    batch: list[Path] = []
    total = 0
    for path in paths:
        size = _size(path)
        if batch and (len(batch) == _MOST_LOGS or total + size > MOST_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(path)
        total += size
    if batch:
        yield batch


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
