"""`ioncast experiment scheduling`: policies side by side on a queue of jobs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from click.core import ParameterSource
from tabulate import tabulate

from experiments.scheduling.curves import IoCurve, shipped_curves, stored_curves
from experiments.scheduling.measure_tables import table
from experiments.scheduling.measures import Measures, measure
from experiments.scheduling.policies import POLICIES, chosen_policies
from experiments.scheduling.queues import Job, poisson_queue
from experiments.scheduling.replay import Schedule, replay
from experiments.scheduling.replayed_machine import Machine, check_pool
from experiments.scheduling.sacct import read_extract
from experiments.scheduling.workload import Workload, workload
from ioncast_base.command_options import database_option
from ioncast_base.errors import InputError

_JOBS, _LOAD = 10_000, 0.8


@click.command(
    "scheduling",
    epilog="""\b
Examples:
  ioncast experiment scheduling
  ioncast experiment scheduling --jobs 2000 --load 0.9 --pool 8 --output report.html
  ioncast experiment scheduling queue.txt --nodes 256 --pool 16 --system mysite
  ioncast experiment scheduling queue.txt --policy static --policy mckp --format csv

\b
A queue from Slurm:
  sacct --allusers --parsable2 --starttime=2026-01-01 \\
      --format=JobID,User,JobName,Submit,Start,End,NNodes,Timelimit > queue.txt

\b
Policies, and what a job gets:
"""
    + "\n".join(f"  {policy.name:<7} {policy.meaning}" for policy in POLICIES.values()),
)
@click.argument("queue", metavar="[QUEUE.txt]", required=False, type=click.Path())
@click.option(
    "--jobs",
    "count",
    type=click.IntRange(1, 10_000_000),
    help=f"Jobs of a synthetic queue.  [default: {_JOBS}]",
)
@click.option(
    "--load",
    type=click.FloatRange(0, 10, min_open=True),
    help=f"Share of the machine that a synthetic queue would keep busy.  [default: {_LOAD}]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Of all that is drawn at random.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 10_000_000),
    default=128,
    show_default=True,
    help="Compute nodes of the machine.",
)
@click.option(
    "--pool",
    type=click.IntRange(1, 100_000),
    default=16,
    show_default=True,
    help="I/O nodes of the machine.",
)
@click.option(
    "--io-share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    nargs=2,
    default=(0.1, 0.3),
    show_default=True,
    metavar="LEAST MOST",
    help="Share of I/O in run times.",
)
@click.option(
    "--direct", is_flag=True, help="Jobs may do without I/O nodes, where that was measured."
)
@click.option(
    "--policy",
    "names",
    multiple=True,
    type=click.Choice(list(POLICIES)),
    help="Only this one; may be given several times.",
)
@click.option(
    "--system", help="The system whose curves to use.  [default: the testbed that is shipped]"
)
@click.option(
    "--output", metavar="FILE.html", type=click.Path(), help="Write a report with plots as well."
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "csv", "json"]),
    default="text",
    show_default=True,
    help="What to print.",
)
@database_option
@click.pass_context
def scheduling(
    context: click.Context,
    queue: str | None,
    count: int | None,
    load: float | None,
    seed: int,
    nodes: int,
    pool: int,
    io_share: tuple[float, float],
    direct: bool,
    names: tuple[str, ...],
    system: str | None,
    output: str | None,
    output_format: str,
    location: str | None,
) -> None:
    """Replay a queue of jobs with a pool of I/O nodes, by one policy after the other.

    QUEUE.txt is what sacct printed (see below); without one, jobs come as a Poisson process.

    A job needs its compute nodes and its I/O nodes from start to end, as licences in Slurm:
    where either is missing it waits, first come, first served, with EASY backfill. It runs for
    its compute time and its bytes over the bandwidth that its curve has with its I/O nodes;
    how many these are is decided once, by the policy (see below).

    Accounting does not know what jobs do for I/O. It is assumed: jobs of one user and name
    follow one of the curves that were measured on a number of nodes near to theirs, drawn at
    random, and their recorded run time holds with static allocation, of which a share, drawn
    too, was I/O. Columns Curve (its name; of a database, the configuration's id) and Bytes
    tell what is known.

    The global bandwidth is all bytes over the sum of the times that the jobs' I/O takes.
    """
    if system is None and context.get_parameter_source("location") is ParameterSource.COMMANDLINE:
        raise InputError("it has no use without a system", where="--db", remedy="add --system NAME")
    if io_share[0] > io_share[1]:
        raise InputError("the least is more than the most", where="--io-share")
    machine = Machine(nodes, pool, direct)
    settings = {
        "queue": queue,
        "load": None if queue else load or _LOAD,
        "seed": seed,
        "nodes": nodes,
        "pool": pool,
        "direct": direct,
        "io_share": io_share,
        "system": system,
    }
    curves = shipped_curves() if system is None else stored_curves(location, system)
    check_pool(curves, machine)
    policies = chosen_policies(names, curves)
    jobs = _jobs(queue, count, load, seed, machine)
    work = workload(jobs, curves, machine, io_share=io_share, seed=seed)
    if work.overlong:
        _warn(f"jobs with more Bytes than fit into their run times, so longer: {work.overlong:,}")
    schedules: dict[str, Schedule] = {}
    with click.progressbar(
        length=len(work) * len(policies),
        label="replaying",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        for policy in policies:
            schedules[policy.name] = replay(work, machine, policy, bar.update)
    results = [measure(name, work, found, machine) for name, found in schedules.items()]
    if output is not None:
        # Plotly takes longer to import than a short queue to replay.
        from experiments.scheduling.page import write_html  # noqa: PLC0415

        write_html(output, _described(settings, work), work, schedules, results, machine)
    click.echo(_shown(results, output_format, settings, curves))


def _described(settings: Mapping[str, Any], work: Workload) -> str:
    """What was replayed, in words."""
    queue = settings["queue"] or f"A synthetic queue (load {settings['load']:g})"
    least, most = settings["io_share"]
    return (
        f"{queue} with {len(work):,} jobs; curves of {settings['system'] or 'the shipped testbed'};"
        f" share of I/O {least:.0%} to {most:.0%}; seed {settings['seed']}"
    )


def _jobs(
    queue: str | None, count: int | None, load: float | None, seed: int, machine: Machine
) -> Sequence[Job]:
    if queue is None:
        return poisson_queue(
            count or _JOBS,
            load=load or _LOAD,
            machine_nodes=machine.nodes,
            seed=seed,
        )
    for option, value in (("--jobs", count), ("--load", load)):
        if value is not None:
            raise InputError(
                "a queue that is given has its own", where=option, remedy="leave one of them out"
            )
    extract = read_extract(queue)
    if extract.left_out:
        listed = ", ".join(f"{reason} ({number:,})" for reason, number in extract.left_out.items())
        _warn(f"{queue}: left out are {listed}")
    return extract.jobs


def _warn(message: str) -> None:
    click.echo(f"ioncast: warning: {message}", err=True)


def _shown(
    results: Sequence[Measures],
    output_format: str,
    settings: Mapping[str, Any],
    curves: Sequence[IoCurve],
) -> str:
    rows = [asdict(result) for result in results]
    if output_format == "json":
        used = [{"name": curve.name, "mib_s": curve.mib_s} for curve in curves]
        return json.dumps({**settings, "policies": rows, "curves": used}, indent=1)
    if output_format == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().rstrip("\n")
    return tabulate(table(results), headers="keys", disable_numparse=True, stralign="right")
