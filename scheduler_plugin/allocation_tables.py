"""Output of `ioncast allocate`: allocations by several policies as text tables, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from tabulate import tabulate

from ioncast_base.allocation.dividing import Allocation, JobCurve, Share
from ioncast_base.allocation.job_records import to_record
from ioncast_base.visible_text import as_cell

_COLUMNS = ("policy", "id", "nodes", "weight", "current", "fixed", "io_nodes", "expected_mib_s")


def _to_text(jobs: Sequence[JobCurve], found: Sequence[Allocation]) -> str:
    """A table of the sums by policy, and a table of the jobs."""
    is_weighted = any(job.weight != 1 for job in jobs)
    totals = [_total(one, found, is_weighted) for one in found]
    rows = [_row(job, place, found, is_weighted) for place, job in enumerate(jobs)]
    blocks = [tabulate(each, headers="keys", disable_numparse=True) for each in (totals, rows)]
    return "\n\n".join(block for block in blocks if block)


def _total(
    allocation: Allocation, found: Sequence[Allocation], is_weighted: bool
) -> dict[str, str]:
    row = {"policy": allocation.policy, "MiB/s": f"{allocation.expected_mib_s:.1f}"}
    if is_weighted:
        row["weighted"] = f"{allocation.weighted_mib_s:.1f}"
    if len(found) > 1:
        first = found[0]
        share = allocation.weighted_mib_s / (first.weighted_mib_s or 1)
        row[f"of {first.policy}"] = f"{share:.1%}"
    if allocation.of_own_best is not None:
        row["of own best"] = f"{allocation.of_own_best:.1%}"
    waiting = sum(one.io_nodes is None for one in allocation.shares)
    return row | {
        "I/O nodes": f"{allocation.io_nodes} of {allocation.pool}",
        "jobs that wait": str(waiting),
    }


def _row(
    job: JobCurve, place: int, found: Sequence[Allocation], is_weighted: bool
) -> dict[str, str]:
    row = {"job": job.id, "nodes": str(job.nodes)}
    if is_weighted:
        row["weight"] = f"{job.weight:g}"
    return row | {one.policy: _cell(one.shares[place]) for one in found}


def _cell(share: Share) -> str:
    if share.io_nodes is None:
        return "waits"
    expected = "?" if share.expected_mib_s is None else f"{share.expected_mib_s:.1f}"
    return f"{share.io_nodes} ({expected})"


def _to_csv(jobs: Sequence[JobCurve], found: Sequence[Allocation]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in found:
        for job, share in zip(jobs, one.shares, strict=True):
            writer.writerow(
                (
                    *(one.policy, as_cell(job.id), job.nodes, job.weight, job.current),
                    *(str(job.is_fixed).lower(), share.io_nodes, share.expected_mib_s),
                )
            )
    return text.getvalue()


def _to_json(_jobs: Sequence[JobCurve], found: Sequence[Allocation]) -> str:
    return f"{json.dumps(to_record(found), indent=1)}\n"


def _to_lines(jobs: Sequence[JobCurve], found: Sequence[Allocation]) -> str:
    return f"{_to_text(jobs, found)}\n"


FORMATS: dict[str, Callable[[Sequence[JobCurve], Sequence[Allocation]], str]] = {
    "table": _to_lines,
    "csv": _to_csv,
    "json": _to_json,
}
