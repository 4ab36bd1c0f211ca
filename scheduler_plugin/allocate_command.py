"""`ioncast allocate`: divide I/O nodes among jobs and compare policies."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from ioncast_base.allocation import option_texts
from ioncast_base.allocation.dividing import (
    OBJECTIVES,
    POLICIES,
    WEIGHTS,
    ObjectiveName,
    PolicyName,
    WeightName,
    allocate,
    weighted,
)
from ioncast_base.allocation.job_records import read_jobs
from ioncast_base.command_options import Number, WholeNumber
from ioncast_base.limits import LARGEST_COUNT
from scheduler_plugin.allocation_tables import FORMATS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _choice_option(name: str, choices: Sequence[str], *, default: str, text: str) -> Decorator:
    chosen = click.Choice(choices)
    return click.option(name, type=chosen, default=default, show_default=True, help=text)


def _share_option(name: str, *, text: str) -> Decorator:
    return click.option(name, type=Number(0, 1), default=0.0, show_default=True, help=text)


@click.command(
    "allocate",
    epilog="""\b
Examples:
  ioncast allocate jobs.json --pool 16
  ioncast allocate jobs.json --pool 16 --policy mckp --floor 0.8 --format json
  ioncast allocate jobs.json --pool 16 --objective proportional
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
    type=WholeNumber(0, LARGEST_COUNT),
    metavar="N",
    help=option_texts.POOL,
)
@_choice_option("--policy", [*POLICIES, "all"], default="all", text=option_texts.POLICY)
@_choice_option("--weight", WEIGHTS, default="given", text=option_texts.WEIGHT)
@click.option(
    "--everyone/--no-everyone",
    default=True,
    show_default=True,
    help=option_texts.EVERYONE,
)
@_choice_option("--objective", OBJECTIVES, default="sum", text=option_texts.OBJECTIVE)
@_share_option("--floor", text=option_texts.FLOOR)
@_share_option("--minimum-gain", text=option_texts.MINIMUM_GAIN)
@click.option(
    "--machine-nodes",
    type=WholeNumber(1, LARGEST_COUNT),
    metavar="N",
    help=option_texts.MACHINE_NODES,
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(FORMATS)),
    default="table",
    show_default=True,
    help="The form of the output.",
)
def allocate_command(
    source: str,
    pool: int,
    policy: Literal[PolicyName, "all"],
    weight: WeightName,
    everyone: bool,
    objective: ObjectiveName,
    floor: float,
    minimum_gain: float,
    machine_nodes: int | None,
    output_format: str,
) -> None:
    """Divide a pool of I/O nodes among several jobs.

    JOBS.json is a list of jobs, or an object with this list under "jobs"; - reads standard input.
    A job has an "id", its number of compute "nodes" and a "curve": MiB/s by number of I/O nodes,
    where 0 is direct access. A curve may also be an answer of /v1/decisions or the output of
    `ioncast predict --format json`. "weight", "current" (I/O nodes that the job has) and "fixed"
    (it keeps them) are optional.

    A job whose curve has no direct access waits if no I/O nodes are left for it. "of own best" is
    the mean share of their own highest bandwidth that jobs get.
    """
    jobs = weighted(read_jobs(*_read(source)), weight)
    found = [
        allocate(
            jobs,
            pool,
            policy=name,
            everyone=everyone,
            objective=objective,
            floor=floor,
            minimum_gain=minimum_gain,
            machine_nodes=machine_nodes,
        )
        for name in POLICIES
        if policy in {name, "all"}
    ]
    click.echo(FORMATS[output_format](jobs, found), nl=False)


def _read(source: str) -> tuple[bytes, str]:
    """The content of a file, and its name for errors."""
    if source == "-":
        return sys.stdin.buffer.read(), "standard input"
    return Path(source).read_bytes(), source
