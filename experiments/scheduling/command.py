"""`ioncast experiment scheduling`: compares policies on a queue of jobs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from click.core import ParameterSource

from experiments.scheduling.comparison import Settings, compare_policies
from experiments.scheduling.curves import shipped_curves
from experiments.scheduling.printing import FORMATS, Format, printed
from experiments.scheduling.queues import poisson_queue
from ioncast.worth.io_curves import stored_curves
from ioncast.worth.policies import POLICIES, chosen_policies
from ioncast.worth.queued_jobs import QueuedJob
from ioncast.worth.replayed_machine import check_pool
from ioncast.worth.sacct import COMMAND, read_extract
from ioncast.worth.workload import workload
from ioncast_base.command_options import Number, WholeNumber, database_option, formats, warn
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
Policies, and the I/O nodes that a job gets:
"""
    + "\n".join(f"  {policy.name:<7} {policy.meaning}" for policy in POLICIES.values()),
)
@click.argument("queue", metavar="[QUEUE.txt]", required=False, type=click.Path())
@click.option(
    "--jobs",
    "count",
    type=WholeNumber(1, 10_000_000),
    help=f"Jobs of a synthetic queue.  [default: {_JOBS}]",
)
@click.option(
    "--load",
    type=Number(0, 10, min_open=True),
    help=f"Share of the machine that a synthetic queue would keep busy.  [default: {_LOAD}]",
)
@click.option(
    "--seed",
    type=WholeNumber(min=0),
    default=1,
    show_default=True,
    help="Seed of everything that is drawn at random.",
)
@click.option(
    "--nodes",
    type=WholeNumber(1, 10_000_000),
    default=128,
    show_default=True,
    help="Compute nodes of the machine.",
)
@click.option(
    "--pool",
    type=WholeNumber(1, 100_000),
    default=16,
    show_default=True,
    help="I/O nodes of the machine.",
)
@click.option(
    "--io-share",
    type=Number(0, 1, min_open=True, max_open=True),
    nargs=2,
    default=(0.1, 0.3),
    show_default=True,
    metavar="LEAST MOST",
    help="Share of I/O in run times.",
)
@click.option("--direct", is_flag=True, help="Jobs may use direct access, if it was measured.")
@click.option(
    "--policy",
    "names",
    multiple=True,
    type=click.Choice(list(POLICIES)),
    help="Only this policy; may be given several times.",
)
@click.option("--system", help="The system whose curves are used.  [default: the shipped testbed]")
@click.option(
    "--output", metavar="FILE.html", type=click.Path(), help="Also write a report with plots."
)
@formats(*FORMATS, default="text", help_text="What to print.")
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
    """Replay a queue of jobs with a pool of I/O nodes, with one policy after the other.

    QUEUE.txt is the output of sacct (see below). Without it, the queue is synthetic: jobs
    arrive as a Poisson process.

    A job needs its compute nodes and its I/O nodes from start to end, as licences in Slurm.
    It waits while either are missing: first come, first served, with EASY backfill. Its run
    time is its compute time plus its bytes over the bandwidth of its curve with its I/O nodes.
    The policy (see below) decides once on the number of I/O nodes.

    Accounting does not know the I/O of jobs. It is assumed: jobs of one user and name follow
    one curve, drawn from those that were measured on a number of nodes near to theirs. A
    share of the recorded run time, drawn too, was I/O with static allocation. If the I/O of a
    job is known, give it in the columns Curve (the name of a pattern, or with --system the id
    of a configuration) and Bytes.

    The global bandwidth is the bytes of all jobs over the sum of their I/O times.
    """
    if system is None and context.get_parameter_source("location") is ParameterSource.COMMANDLINE:
        raise InputError(
            "a database is used only with a system", where="--db", remedy="add --system NAME"
        )
    if io_share[0] > io_share[1]:
        raise InputError("LEAST is more than MOST", where="--io-share")
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
        _warn(
            "jobs that run longer because their Bytes do not fit into their run times:"
            f" {work.overlong:,}"
        )
    with click.progressbar(
        length=len(work) * len(policies),
        label="replaying",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        compared = compare_policies(settings, work, policies, bar.update)
    if output is not None:
        # Only the page needs Jinja.
        from experiments.scheduling.page import write_html  # noqa: PLC0415

        write_html(output, compared)
    click.echo(printed(compared, output_format))


def _jobs(settings: Settings, count: int | None, load: float | None) -> Sequence[QueuedJob]:
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
                "only for synthetic queues", where=option, remedy="leave it out, or QUEUE.txt"
            )
    extract = read_extract(settings.queue)
    if extract.left_out:
        _warn(f"{settings.queue}: left out: {extract.left_out_in_words}")
    return extract.jobs


def _warn(message: str) -> None:
    warn(message)
