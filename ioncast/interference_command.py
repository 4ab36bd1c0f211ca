"""`ioncast interference`: jobs that disturb each other on servers and I/O nodes."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import click

from ioncast.asked_data import AskedData, asked_data, needed_store
from ioncast.warehouse.queries import query_of
from ioncast_base.command_options import formats, warn
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from summario.phases.streamed import stream_csv

if TYPE_CHECKING:
    from ioncast.warehouse.interference import TimeAlone

    Row = Mapping[str, Any]

# A usual time needs so many other jobs, whose bytes are within this ratio.
_FEWEST_JOBS, _LIKE_BYTES = 5, 2.0


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
@click.option(
    "--placement",
    metavar="FILE.csv",
    type=click.Path(path_type=Path),
    help="Lines NODE,NUMBER: the I/O node of each compute node of the logs.",
)
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
    if location is not None and (system is None or io_nodes is None):
        what = "a prediction is of a system and a number of I/O nodes"
        raise InputError(what, where="--db", remedy="give --system and --io-nodes")
    folder = None if store is None else needed_store(store)
    if folder is not None and not logs and job is None:
        _print_pairs(folder, system, output_format)
        return
    nodes = None if placement is None else _placement(placement)
    with ExitStack() as stack:

        def opened(logs: Sequence[str], store: Path | None) -> AskedData:
            return stack.enter_context(asked_data(logs, store, None, system, io_nodes=nodes))

        data = opened(logs, None if logs else folder)
        query = query_of("jobs-together")
        jobs = data.ask(query, {"job": job, "system": None if logs else system}).to_pylist()
        if len(jobs) < 2:
            raise InputError("one job cannot be disturbed", remedy="give the logs of two jobs")
        lonely = opened(alone, None) if alone else None
        history = data if not logs else opened((), folder) if folder else None
        times: dict[str, TimeAlone] = {}
        for each in jobs:
            found = _usual_time(lonely, each, "alone") or _usual_time(history, each, "history")
            if found is None and location and system and io_nodes is not None:
                found = _predicted_time(data, each, location, system, io_nodes)
            if found is not None:
                times[each["log"]] = found
            if alone and (found is None or found.basis != "alone"):
                what = "no log of --alone is of this program, size and bytes"
                warn(f"{visible(each['path'])}: {what}")
        _report(data, jobs, times, page, output_format)
    if data.failed or (lonely is not None and lonely.failed):
        sys.exit(InputError.exit_code)


def _report(
    data: AskedData,
    jobs: Sequence[Row],
    times: Mapping[str, TimeAlone],
    page: str | None,
    output_format: str,
) -> None:
    import pyarrow as pa  # noqa: PLC0415

    from ioncast.warehouse import interference_texts as texts  # noqa: PLC0415
    from ioncast.warehouse.interference import interference_of  # noqa: PLC0415

    query = query_of("server-uses")
    uses = pa.concat_tables([data.ask(query, {"log": job["log"]}) for job in jobs])
    found = interference_of(jobs, uses, times)
    if output_format == "json":
        click.echo(json.dumps(texts.plain(found), indent=1))
    elif output_format == "csv":
        _print_csv(texts.CSV_COLUMNS, texts.to_rows(found))
    else:
        click.echo("\n".join(texts.sentences(found)))
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.show.interference import write_interference  # noqa: PLC0415

        write_interference(page, found)


def _print_csv(names: Sequence[str], rows: Iterable[Row]) -> None:
    for text in stream_csv(names, [rows]):
        click.echo(text, nl=False)


def _placement(path: Path) -> dict[str, int]:
    """Read the I/O node of each compute node."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {node.strip(): int(place) for node, place in csv.reader(file)}
    except (ValueError, csv.Error) as error:
        what = "each line must be NODE,NUMBER"
        raise InputError(what, where=visible(str(path)), remedy="write n12,0") from error


def _usual_time(
    data: AskedData | None, job: Row, basis: Literal["alone", "history"]
) -> TimeAlone | None:
    """Find the median time of other jobs of the program, with as many processes and bytes."""
    from ioncast.warehouse.interference import TimeAlone, server_uses  # noqa: PLC0415

    if data is None or job["program"] is None or job["processes"] is None:
        return None
    is_history = basis == "history"
    variant = {"program": job["program"], "processes": job["processes"]}
    user = {"system": job["system"], "user": job["user_id"]} if is_history else {}
    values = {"system": None, "user": None, **variant, **user}
    alike: dict[Any, Row] = {}
    for row in data.ask(query_of("variant-runs"), values).to_pylist():
        least, most = sorted((job["moved_bytes"] or 0, row["moved_bytes"] or 0))
        is_other = row["job_id"] != job["job_id"] if is_history else row["log"] != job["log"]
        if is_other and most <= _LIKE_BYTES * least and (row["run_seconds"] or 0) > 0:
            # Logs of one job saw the same weather, so they count once.
            alike[row["job_id"] if is_history else row["log"]] = row
    if len(alike) < (_FEWEST_JOBS if is_history else 1):
        return None
    busy_seconds = []
    for row in () if is_history else alike.values():
        uses = data.ask(query_of("server-uses"), {"log": row["log"]})
        found = server_uses([{**row, "start_us": 0, "system": None}], uses)
        busy_seconds += [max(use.busy_seconds for use in found)] if found else []
    usual_s = median(row["run_seconds"] for row in alike.values())
    return TimeAlone(basis, usual_s, len(alike), median(busy_seconds) if busy_seconds else None)


def _predicted_time(
    data: AskedData, job: Row, location: str, system: str, io_nodes: int
) -> TimeAlone | None:
    """Predict the time of a job; its time outside of I/O stays as it was."""
    # The predictor takes much longer to import than a few logs take to read.
    from ioncast.warehouse.coverage import jobs_of  # noqa: PLC0415
    from ioncast.warehouse.interference import TimeAlone  # noqa: PLC0415
    from predictor.commands import command_line  # noqa: PLC0415
    from predictor.curve.asking import PredictionRequest, ask  # noqa: PLC0415

    query = query_of("phases")
    rows = data.ask(query, query.values({"log": job["log"]})).to_pylist()
    request = PredictionRequest(system, io_nodes=(io_nodes,), ran_with=io_nodes)
    for phases in jobs_of(rows):
        predicted = ask(command_line(location), request, phases)
        own, expected = predicted.own_run, predicted.uncorrected
        if own is not None and expected is not None and job["run_seconds"] is not None:
            lost_s = expected.total_mib / own.bandwidth_mib_s - predicted.curve[0].time_s
            return TimeAlone("prediction", job["run_seconds"] - lost_s, 0)
    return None


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
