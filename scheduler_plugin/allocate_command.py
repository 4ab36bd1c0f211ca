"""`ioncast allocate`: divide I/O nodes among jobs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ioncast_base import allocation_texts as option_texts
from ioncast_base.allocation_records import read_jobs
from ioncast_base.command_options import Number, WholeNumber, formats
from ioncast_base.knapsack import (
    OBJECTIVES,
    WEIGHTS,
    ObjectiveName,
    WeightName,
    allocate,
    weighted,
)
from ioncast_base.limits import LARGEST_COUNT
from scheduler_plugin.allocation_tables import FORMATS


@click.command(
    "allocate",
    epilog="""\b
Examples:
  ioncast allocate jobs.json --pool 16
  ioncast allocate jobs.json --pool 16 --format json
  ioncast allocate jobs.json --pool 16 --objective proportional
  ioncast allocate jobs.json --pool 16 --weight nodes --minimum-gain 0.1
  ioncast allocate - --pool 16 < jobs.json

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
    type=WholeNumber(0, LARGEST_COUNT),
    metavar="N",
    help=option_texts.POOL,
)
@click.option(
    "--weight",
    type=click.Choice(WEIGHTS),
    default="given",
    show_default=True,
    help=option_texts.WEIGHT,
)
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default="sum",
    show_default=True,
    help=option_texts.OBJECTIVE,
)
@click.option(
    "--minimum-gain",
    type=Number(0, 1),
    default=0.0,
    show_default=True,
    help=option_texts.MINIMUM_GAIN,
)
@formats(*FORMATS, help_text="The form of the output.")
def allocate_command(
    source: str,
    pool: int,
    weight: WeightName,
    objective: ObjectiveName,
    minimum_gain: float,
    output_format: str,
) -> None:
    """Divide a pool of I/O nodes among several jobs.

    JOBS.json is a list of jobs, or an object with this list under "jobs"; - reads standard input.
    A job has an "id", its number of compute "nodes" and a "curve": MiB/s by number of I/O nodes,
    where 0 is direct access. A curve may also be an answer of /v1/decisions or the output of
    `ioncast predict --format json`. "weight", "current" (I/O nodes that the job has) and "fixed"
    (it keeps them) are optional.

    The sum of all bandwidths is as high as possible. No job waits for the others: only a job whose
    curve has no direct access waits, if too few I/O nodes are left. "of own best" is the share of
    its own highest bandwidth that a job gets, and on average.
    """
    jobs = weighted(read_jobs(*_read(source)), weight)
    allocation = allocate(jobs, pool, objective=objective, minimum_gain=minimum_gain)
    click.echo(FORMATS[output_format](jobs, allocation), nl=False)


def _read(source: str) -> tuple[bytes, str]:
    """The content of a file, and its name for errors."""
    if source == "-":
        return sys.stdin.buffer.read(), "standard input"
    return Path(source).read_bytes(), source
