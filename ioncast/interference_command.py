"""`ioncast interference`: jobs that disturb each other on servers and I/O nodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ioncast.asked_data import AskedData, asked_data, needed_store
from ioncast.placement_file import placement_option, read_placement
from ioncast.warehouse.queries import query_of
from ioncast_base.command_options import formats, warn
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from summario.phases.streamed import stream_csv

if TYPE_CHECKING:
    from ioncast.warehouse.interference import Interference, TimeAlone

    Row = Mapping[str, Any]


@click.command(
    epilog="""\b
Examples:
  ioncast interference a.darshan b.darshan --alone a-alone.darshan --html both.html
  ioncast interference a.darshan b.darshan --placement nodes.csv --format json
  ioncast interference a.darshan b.darshan --store /srv/ioncast-store --system mysite
  ioncast interference --store /srv/ioncast-store --job 4711
  ioncast interference --store /srv/ioncast-store
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, type=click.Path())
@click.option(
    "--alone",
    metavar="LOG",
    multiple=True,
    type=click.Path(),
    help="A log of the same program that ran alone; may be repeated.",
)
@click.option(
    "--store",
    metavar="DIR",
    help="A store of `ioncast ingest`: the history of the logs; without logs, test all pairs.",
)
@click.option("--job", type=int, metavar="ID", help="Instead of logs: this job of the store.")
@click.option("--system", help="The system of the logs, or only its jobs in a store.")
@click.option("--db", "location", metavar="FILE|URL", help="Benchmarks that predict times alone.")
@click.option(
    "--io-nodes", type=click.IntRange(0), metavar="N", help="The I/O nodes of each job, for --db."
)
@placement_option
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@formats("table", "json", "csv", help_text="Print sentences and tables, JSON or CSV.")
def interference(
    logs: tuple[str, ...],
    alone: tuple[str, ...],
    store: str | None,
    job: int | None,
    system: str | None,
    location: str | None,
    io_nodes: int | None,
    placement: Path | None,
    page: str | None,
    output_format: str,
) -> None:
    """Tell which jobs disturb each other on servers and I/O nodes.

    LOG is the Darshan log of a job, with DXT. The slowdown of a job is its time beside its time
    alone: of a log of --alone, else the median of other runs in the store, else the prediction.
    With a store alone, all pairs of applications are tested that ran at least 5 times together and
    5 times apart.
    """
    if job is not None and (logs or store is None):
        raise InputError("a job is in a store", where="--job", remedy="give --store, and no LOG")
    if not logs and store is None:
        raise InputError("no logs", remedy="give at least two LOG, or --store DIR")
    if placement is not None and not logs:
        raise InputError("a placement is of logs", where="--placement", remedy="give LOG")
    prediction = None
    if location is not None:
        if system is None or io_nodes is None:
            what = "a prediction is of a system and a number of I/O nodes"
            raise InputError(what, where="--db", remedy="give --system and --io-nodes")
        prediction = location, system, io_nodes
    folder = None if store is None else needed_store(store)
    if folder is not None and not logs and job is None:
        _print_pairs(folder, system, output_format)
        return
    nodes = None if placement is None else read_placement(placement)
    with ExitStack() as stack:

        def opened(logs: Sequence[str], store: Path | None) -> AskedData:
            source = asked_data(logs, store, None, system, findings=False, io_nodes=nodes)
            return stack.enter_context(source)

        data = opened(logs, None if logs else folder)
        lonely = opened(alone, None) if alone else None
        history = data if not logs else opened((), folder) if folder else None
        # Only now it is known that their libraries are installed.
        from pyarrow import concat_tables  # noqa: PLC0415

        from ioncast.warehouse.interference import interference_of  # noqa: PLC0415

        query = query_of("jobs-together")
        jobs = data.ask(query, {"job": job, "system": None if logs else system}).to_pylist()
        if len(jobs) < 2:
            remedy = "give the logs of two jobs"
            if job is not None:
                which = "other job of its time" if jobs else f"job {job}"
                remedy = f"the store has no {which}"
            raise InputError("one job cannot be disturbed", remedy=remedy)
        times = {each["log"]: _time_alone(each, data, lonely, history, prediction) for each in jobs}
        query = query_of("server-uses")
        uses = concat_tables([data.ask(query, {"log": each["log"]}) for each in jobs])
        found = interference_of(jobs, uses, {log: each for log, each in times.items() if each})
    _print(found, output_format)
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.show.interference import write_interference  # noqa: PLC0415

        write_interference(page, found)
    if data.failed or (lonely is not None and lonely.failed):
        sys.exit(InputError.exit_code)


def _time_alone(
    job: Row,
    data: AskedData,
    lonely: AskedData | None,
    history: AskedData | None,
    prediction: tuple[str, str, int] | None,
) -> TimeAlone | None:
    """Find the time of a job without others: of its runs alone, its history, or predicted."""
    from ioncast.warehouse.times_alone import predicted_time, usual_time  # noqa: PLC0415

    if lonely is not None:
        if (found := usual_time(lonely.ask, job, "alone")) is not None:
            return found
        what = "no log of --alone is of this program, size and bytes"
        warn(f"{visible(job['path'])}: {what}")
    if history is not None and (found := usual_time(history.ask, job, "history")) is not None:
        return found
    return None if prediction is None else predicted_time(data.ask, job, *prediction)


def _print(found: Interference, output_format: str) -> None:
    from ioncast.warehouse import interference_texts as texts  # noqa: PLC0415

    if output_format == "json":
        click.echo(json.dumps(texts.plain(found), indent=1))
    elif output_format == "csv":
        _print_csv(texts.CSV_COLUMNS, texts.to_rows(found))
    else:
        click.echo("\n".join(texts.sentences(found)))


def _print_csv(names: Sequence[str], rows: Iterable[Row]) -> None:
    for text in stream_csv(names, [rows]):
        click.echo(text, nl=False)


def _print_pairs(store: Path, system: str | None, output_format: str) -> None:
    from ioncast.warehouse.interference_texts import pair_texts  # noqa: PLC0415
    from ioncast.warehouse.pairs import DisturbingPair, pairs_of  # noqa: PLC0415

    query = query_of("run-places")
    with asked_data((), store, None) as data:
        pairs = pairs_of(data.ask(query, query.values({"system": system} if system else {})))
    rows = [{**asdict(pair), "is_disturbing": pair.is_disturbing} for pair in pairs]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
    elif output_format == "csv":
        _print_csv((*(each.name for each in fields(DisturbingPair)), "is_disturbing"), rows)
    elif pairs:
        click.echo(text_table(pair_texts(pairs)))
    else:
        click.echo("no two applications ran 5 times together and 5 times apart")
