"""`ioncast worth`: what I/O nodes would be worth for a centre's own queue."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ioncast.asked_data import asked_data, needed_store
from ioncast.warehouse.queries import query_of
from ioncast.worth.sacct import COMMAND, read_extract
from ioncast_base.command_options import WholeNumber, database_option, formats, warn
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

if TYPE_CHECKING:
    from ioncast.worth.logged_io import LoggedIo
    from ioncast.worth.valuing import QueueWorth
    from ior_configs import IorConfig
    from predictor.model.system_model import SystemModel


def _pools(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """Parse sizes of a pool such as 4,8,16."""
    from ioncast.worth.replayed_machine import pool_sizes  # noqa: PLC0415

    try:
        return pool_sizes(value)
    except InputError as error:
        raise click.BadParameter(error.what) from error


@click.command(
    epilog=f"""\b
Examples:
  ioncast worth --store /srv/ioncast-store --jobs queue.txt --db bench.sqlite \\
      --system mysite --pool 4,8,16
  ioncast worth --store /srv/ioncast-store --jobs queue.txt --db bench.sqlite \\
      --system mysite --curves-of other-site --pool 8 --html worth.html

\b
The jobs, from Slurm's accounting:
  {COMMAND[0]} \\
      {COMMAND[1]} > queue.txt
"""
)
@click.option("--store", required=True, metavar="DIR", help="A store of `ioncast ingest`.")
@click.option(
    "--jobs",
    "queue",
    required=True,
    metavar="FILE",
    type=click.Path(),
    help="The recorded jobs: the output of sacct (see below).",
)
@click.option("--system", required=True, help="The system of the logs and the jobs.")
@click.option(
    "--pool",
    "pools",
    required=True,
    metavar="N,N,...",
    callback=_pools,
    help="Numbers of I/O nodes that the machine might have.",
)
@click.option(
    "--ran-with",
    type=WholeNumber(0, 100_000),
    default=0,
    show_default=True,
    help="The number of I/O nodes that the recorded jobs had.",
)
@click.option(
    "--curves-of",
    metavar="SYSTEM",
    help="Assume that I/O nodes would do what they do on this system, which was measured.",
)
@click.option(
    "--nodes",
    type=WholeNumber(1, 10_000_000),
    help="Compute nodes of the machine.  [default: as many as the jobs had at once]",
)
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@formats("table", "json", "csv", help_text="Print tables for people, JSON or CSV.")
@database_option
def worth(
    store: str,
    queue: str,
    system: str,
    pools: tuple[int, ...],
    ran_with: int,
    curves_of: str | None,
    nodes: int | None,
    page: str | None,
    output_format: str,
    location: str | None,
) -> None:
    """Tell what I/O nodes would be worth for a centre's own queue.

    The recorded jobs are replayed with each pool of I/O nodes that the centre might have. A job has
    the bytes and the I/O time of its logs, found by its number. Its other time stays as it was
    recorded. With another number of I/O nodes, its bytes move at the predicted bandwidth of its
    application. Jobs of which less than half of the bytes are known keep their recorded time.

    Four arms: all jobs with direct access; a static share for each job; the decisions of ioncast
    with its arbiter; and the best number for each job, never short of I/O nodes. Intervals hold
    nine of ten replays, with bandwidths and days drawn at random.
    """
    extract = read_extract(queue)
    if extract.left_out:
        warn(f"{queue}: left out: {extract.left_out_in_words}")
    logs = _logged(store, system, curves_of or system, ran_with, location)
    # Only now it is known that their libraries are installed.
    from ioncast.worth.in_words import to_text  # noqa: PLC0415
    from ioncast.worth.valued_queue import joined  # noqa: PLC0415
    from ioncast.worth.valuing import replayed_jobs, worth_of  # noqa: PLC0415

    jobs = joined(extract.jobs, logs)
    with click.progressbar(
        length=replayed_jobs(len(jobs), len(pools)),
        label="replaying",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        found = worth_of(
            jobs,
            pools,
            system=system,
            curves_of=curves_of or system,
            ran_with=ran_with,
            nodes=nodes,
            progress=bar.update,
        )
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.show.worth import write_worth  # noqa: PLC0415

        write_worth(page, found)
    if output_format == "table":
        click.echo(to_text(found))
    elif output_format == "json":
        click.echo(json.dumps(asdict(found), indent=1))
    else:
        _print_csv(found)


def _logged(
    store: str, system: str, curves_of: str, ran_with: int, location: str | None
) -> list[LoggedIo]:
    """Read the logs of a system from a store, and predict their applications."""
    folder = needed_store(store)
    queries = [query_of("logged-jobs"), query_of("phases")]
    with asked_data((), folder, None, system, queries=queries) as data:
        jobs, phases = (data.ask(each, each.values({"system": system})) for each in queries)
    if not len(jobs):
        raise InputError(
            f"it has no logs of the system {visible(system)!r}",
            where=store,
            remedy="`ioncast store info` names its systems",
        )
    from ioncast.worth.logged_io import logged_io  # noqa: PLC0415
    from predictor.commands import command_line  # noqa: PLC0415
    from predictor.curve.asking import read_knowledge  # noqa: PLC0415

    def knowledge_of(wanted: Sequence[IorConfig]) -> SystemModel:
        knowledge, _, warnings = read_knowledge(command_line(location), curves_of, wanted)
        for warning in warnings:
            warn(warning)
        return knowledge

    with click.progressbar(
        length=len(jobs), label="predicting", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        return logged_io(jobs, phases, knowledge_of, curves_of, ran_with, bar.update)


def _print_csv(found: QueueWorth) -> None:
    rows = csv.writer(sys.stdout, lineterminator="\n")
    values = ("io_hours", "hours", "waiting_hours", "saved_io_hours", "saved_hours")
    rows.writerow(
        ["pool", "arm", *(each + end for each in values for end in ("", "_low", "_high"))]
    )
    for arm in found.arms:
        known = [asdict(arm)[each] or {"": None, "low": None, "high": None} for each in values]
        rows.writerow([arm.pool, arm.arm, *(end for each in known for end in each.values())])
