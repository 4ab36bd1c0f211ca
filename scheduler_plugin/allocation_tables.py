"""Output of `ioncast allocate`: an allocation as a text table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from ioncast_base.allocation_records import to_record
from ioncast_base.knapsack import Allocation, JobCurve, Share
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import as_cell

_HEADERS = ("job", "nodes", "weight", "I/O nodes", "MiB/s", "of own best")
_COLUMNS = ("id", "nodes", "weight", "current", "fixed", "io_nodes", "expected_mib_s")


def _to_table(jobs: Sequence[JobCurve], allocation: Allocation) -> str:
    """A row for each job, and one for all."""
    waiting = sum(share.io_nodes is None for share in allocation.shares)
    total = [
        f"all, {waiting} waiting" if waiting else "all",
        sum(job.nodes for job in jobs),
        "",
        f"{allocation.io_nodes} of {allocation.pool}",
        f"{allocation.expected_mib_s:.1f}",
        "" if allocation.of_own_best is None else f"{allocation.of_own_best:.1%}",
    ]
    rows = [*map(_row, jobs, allocation.shares), total]
    table = text_table([dict(zip(_HEADERS, row, strict=True)) for row in rows])
    return f"{table}\n"


def _row(job: JobCurve, share: Share) -> tuple[object, ...]:
    weight = f"{job.weight:g}"
    if share.io_nodes is None:
        return job.id, job.nodes, weight, "waits", "", ""
    if share.expected_mib_s is None:
        return job.id, job.nodes, weight, share.io_nodes, "?", ""
    expected, best = share.expected_mib_s, max(job.curve.values())
    return job.id, job.nodes, weight, share.io_nodes, f"{expected:.1f}", f"{expected / best:.1%}"


def _to_csv(jobs: Sequence[JobCurve], allocation: Allocation) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for job, share in zip(jobs, allocation.shares, strict=True):
        row = as_cell(job.id), job.nodes, job.weight, job.current, str(job.is_fixed).lower()
        writer.writerow((*row, share.io_nodes, share.expected_mib_s))
    return text.getvalue()


def _to_json(_jobs: Sequence[JobCurve], allocation: Allocation) -> str:
    return f"{json.dumps(to_record(allocation), indent=1)}\n"


FORMATS: dict[str, Callable[[Sequence[JobCurve], Allocation], str]] = {
    "table": _to_table,
    "csv": _to_csv,
    "json": _to_json,
}
