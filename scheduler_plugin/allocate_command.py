"""`ioncast allocate`: divide I/O nodes among jobs, policies side by side."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import click
from tabulate import tabulate

from ioncast_base.allocation.dividing import (
    POLICIES,
    WEIGHTS,
    Allocation,
    JobCurve,
    PolicyName,
    Share,
    WeightName,
    allocate,
    weighted,
)
from ioncast_base.allocation.job_records import read_jobs, to_record
from ioncast_base.limits import LARGEST_COUNT

_COLUMNS = ("policy", "id", "nodes", "weight", "current", "fixed", "io_nodes", "expected_mib_s")


@click.command(
    "allocate",
    epilog="""\b
Examples:
  ioncast allocate jobs.json --pool 16
  ioncast allocate jobs.json --pool 16 --policy mckp --floor 0.8 --format json
  ioncast allocate jobs.json --pool 16 --weight nodes --minimum-gain 0.1
  ioncast allocate - --pool 16 --machine-nodes 512 < jobs.json

\b
jobs.json:
  [{"id": "4711", "nodes": 8, "curve": {"0": 45.0, "2": 53.1, "4": 66.0}},
   {"id": "4712", "nodes": 2, "curve": {"0": 90.5, "2": 80.0}, "weight": 2.0},
   {"id": "4690", "nodes": 4, "current": 4, "fixed": true}]
""",
)
@click.argument("source", metavar="JOBS.json|-", type=click.Path())
@click.option(
    "--pool",
    required=True,
    type=click.IntRange(0, LARGEST_COUNT),
    metavar="N",
    help="How many I/O nodes there are, those of fixed jobs too.",
)
@click.option(
    "--policy",
    type=click.Choice([*POLICIES, "all"]),
    default="all",
    show_default=True,
    help="mckp: the highest bandwidth of all together. best: to each its own best, in the order"
    " given. static: in proportion to compute nodes. equal: to each the same.",
)
@click.option(
    "--weight",
    type=click.Choice(WEIGHTS),
    default="given",
    show_default=True,
    help="What a MiB/s of a job is worth: its weight in the file, the same for all, or its"
    " compute nodes.",
)
@click.option(
    "--floor",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="With mckp no job gets less than this share of its bandwidth with static.",
)
@click.option(
    "--minimum-gain",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="With mckp a job leaves its current I/O nodes only where more than this share of its"
    " bandwidth is gained.",
)
@click.option(
    "--machine-nodes",
    type=click.IntRange(1, LARGEST_COUNT),
    metavar="N",
    help="Compute nodes of the machine, for static; by default, and at least, those of the jobs.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="What to print.",
)
def allocate_command(
    source: str,
    pool: int,
    policy: Literal[PolicyName, "all"],
    weight: WeightName,
    floor: float,
    minimum_gain: float,
    machine_nodes: int | None,
    output_format: str,
) -> None:
    """Divide a pool of I/O nodes among jobs that share it.

    JOBS.json is a list of jobs, or an object that has one under "jobs"; - reads standard input.
    A job has an "id", its compute "nodes" and a "curve": MiB/s by number of I/O nodes, where 0
    is direct access. As a curve an answer of /v1/decisions or what `ioncast predict --format
    json` prints will do too. "weight", "current" (I/O nodes that it has) and "fixed" (it keeps
    them) may be left out.

    A job without direct access for which nothing is left waits.
    """
    jobs = weighted(read_jobs(*_read(source)), weight)
    found = [
        allocate(
            jobs,
            pool,
            policy=name,
            floor=floor,
            minimum_gain=minimum_gain,
            machine_nodes=machine_nodes,
        )
        for name in POLICIES
        if policy in {name, "all"}
    ]
    click.echo(_FORMATS[output_format](jobs, found), nl=output_format != "csv")


def _read(source: str) -> tuple[bytes, str]:
    """The content of a file, and what to call it."""
    if source == "-":
        return sys.stdin.buffer.read(), "standard input"
    return Path(source).read_bytes(), source


def _to_text(jobs: Sequence[JobCurve], found: Sequence[Allocation]) -> str:
    """What all jobs reach together, and what each gets."""
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
    return row | {one.policy: _told(one.shares[place]) for one in found}


def _told(share: Share) -> str:
    if share.io_nodes is None:
        return "waits"
    reached = "?" if share.expected_mib_s is None else f"{share.expected_mib_s:.1f}"
    return f"{share.io_nodes} ({reached})"


def _to_csv(jobs: Sequence[JobCurve], found: Sequence[Allocation]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in found:
        for job, share in zip(jobs, one.shares, strict=True):
            writer.writerow(
                (
                    *(one.policy, job.id, job.nodes, job.weight, job.current),
                    *(str(job.is_fixed).lower(), share.io_nodes, share.expected_mib_s),
                )
            )
    return text.getvalue()


def _to_json(_jobs: Sequence[JobCurve], found: Sequence[Allocation]) -> str:
    return json.dumps(to_record(found), indent=1)


_FORMATS: dict[str, Callable[[Sequence[JobCurve], Sequence[Allocation]], str]] = {
    "table": _to_text,
    "csv": _to_csv,
    "json": _to_json,
}
