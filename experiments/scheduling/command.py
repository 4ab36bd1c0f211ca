"""`ioncast experiment scheduling`: policies side by side on a queue of jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from click.core import ParameterSource

from experiments.scheduling.comparison import Settings, compare_policies
from experiments.scheduling.curves import shipped_curves, stored_curves
from experiments.scheduling.policies import POLICIES, chosen_policies
from experiments.scheduling.printing import FORMATS, Format, printed
from experiments.scheduling.queues import Job, poisson_queue
from experiments.scheduling.replayed_machine import check_pool
from experiments.scheduling.sacct import COMMAND, read_extract
from experiments.scheduling.workload import workload
from ioncast_base.command_options import database_option
from ioncast_base.errors import InputError

_JOBS, _LOAD = 10_000, 0.8


@click.command(
    "scheduling",
    epilog=f"""\b
Examples:
  ioncast experiment scheduling
  ioncast experiment scheduling --jobs 2000 --load 0.9 --pool 8 --output report.html
  ioncast experiment scheduling queue.txt --nodes 256 --pool 16 --system mysite
  ioncast experiment scheduling queue.txt --policy static --policy mckp --format csv

\b
A queue from Slurm:
  {COMMAND[0]} \\
      {COMMAND[1]} > queue.txt

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
    type=click.Choice(FORMATS),
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
    output_format: Format,
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
    settings = Settings(
        queue=queue,
        load=None if queue else load or _LOAD,
        seed=seed,
        nodes=nodes,
        pool=pool,
        direct=direct,
        io_share=io_share,
        system=system,
    )
    curves = shipped_curves() if system is None else stored_curves(location, system)
    check_pool(curves, settings.machine)
    policies = chosen_policies(names, curves)
    jobs = _jobs(settings, count, load)
    work = workload(jobs, curves, settings.machine, io_share=io_share, seed=seed)
    if work.overlong:
        _warn(f"jobs with more Bytes than fit into their run times, so longer: {work.overlong:,}")
    with click.progressbar(
        length=len(work) * len(policies),
        label="replaying",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        compared = compare_policies(settings, work, policies, bar.update)
    if output is not None:
        # Importing Plotly takes longer than replaying a short queue.
        from experiments.scheduling.page import write_html  # noqa: PLC0415

        write_html(output, compared)
    click.echo(printed(compared, output_format))


def _jobs(settings: Settings, count: int | None, load: float | None) -> Sequence[Job]:
    """Read the queue, or make a synthetic one of `count` jobs."""
    if settings.queue is None:
        return poisson_queue(
            count or _JOBS,
            load=load or _LOAD,
            machine_nodes=settings.nodes,
            seed=settings.seed,
        )
    for option, value in (("--jobs", count), ("--load", load)):
        if value is not None:
            raise InputError(
                "a queue that is given has its own", where=option, remedy="leave one of them out"
            )
    extract = read_extract(settings.queue)
    if extract.left_out:
        _warn(f"{settings.queue}: left out are {extract.left_out_in_words}")
    return extract.jobs


def _warn(message: str) -> None:
    click.echo(f"ioncast: warning: {message}", err=True)
