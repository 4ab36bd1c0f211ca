"""`ioncast interference`: jobs that disturb each other on servers and I/O nodes."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

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
    if not logs and job is None:
        assert folder is not None  # noqa: S101
        _print_pairs(folder, system, output_format)
        return
    places = None if placement is None else _placement(placement)
    with ExitStack() as stack:
        source = asked_data(logs, None if logs else folder, None, system, io_nodes=places)
        data = stack.enter_context(source)
        failed = data.failed
        jobs = _rows(data, "jobs-together", {} if job is None else {"job": str(job)})
        if len(jobs) < 2:
            raise InputError("one job cannot be disturbed", remedy="give the logs of two jobs")
        times: dict[str, TimeAlone] = {}
        if location is not None and system is not None and io_nodes is not None:
            times |= _predicted(data, jobs, location, system, io_nodes)
        if folder is not None:
            history = stack.enter_context(asked_data((), folder, None)) if logs else data
            times |= _from_history(history, jobs)
        if alone:
            lonely = stack.enter_context(asked_data(alone, None, None, system, io_nodes=places))
            failed += lonely.failed
            times |= _from_lonely(lonely, jobs)
        _report(data, jobs, times, page, output_format)
    if failed:
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
        click.echo(json.dumps(texts.to_json(found), indent=1))
    elif output_format == "csv":
        for text in stream_csv(texts.CSV_COLUMNS, [list(texts.to_rows(found))]):
            click.echo(text, nl=False)
    else:
        click.echo("\n".join(texts.sentences(found)))
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.show.interference import write_interference  # noqa: PLC0415

        write_interference(page, found, jobs, uses)


def _rows(data: AskedData, name: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
    query = query_of(name)
    rows: list[dict[str, Any]] = data.ask(query, query.values(given)).to_pylist()
    return rows


def _placement(path: Path) -> dict[str, int]:
    """Read the I/O node of each compute node."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {node.strip(): int(place) for node, place in csv.reader(file)}
    except (ValueError, csv.Error) as error:
        what = "each line must be NODE,NUMBER"
        raise InputError(what, where=visible(str(path)), remedy="write n12,0") from error


def _is_alike(job: Row, other: Row) -> bool:
    """Whether two logs moved about as many bytes."""
    least, most = sorted((job["moved_bytes"] or 0, other["moved_bytes"] or 0))
    return bool(other["log"] != job["log"] and other["run_seconds"] and most <= _LIKE_BYTES * least)


def _from_lonely(data: AskedData, jobs: Sequence[Row]) -> dict[str, TimeAlone]:
    """Find the runs alone of the same programs, with as many processes and bytes."""
    from ioncast.warehouse.interference import TimeAlone, largest_server_seconds  # noqa: PLC0415

    lonely, query = _rows(data, "jobs-together", {}), query_of("server-uses")
    found = {}
    for job in jobs:
        variant = job["program"], job["processes"]
        alike = [
            each
            for each in lonely
            if (each["program"], each["processes"]) == variant and _is_alike(job, each)
        ]
        if not alike:
            warn(f"{visible(job['path'])}: no log of --alone is of this program, size and bytes")
            continue
        busy = [largest_server_seconds(data.ask(query, {"log": each["log"]})) for each in alike]
        found[job["log"]] = TimeAlone(
            "alone",
            median(each["run_seconds"] for each in alike),
            len(alike),
            None if None in busy else median(filter(None, busy)),
        )
    return found


def _from_history(data: AskedData, jobs: Sequence[Row]) -> dict[str, TimeAlone]:
    """Find the usual time of the same variants in a store."""
    from ioncast.warehouse.interference import TimeAlone  # noqa: PLC0415

    query, found = query_of("variant-runs"), {}
    for job in jobs:
        if job["program"] is None or job["processes"] is None:
            continue
        names = {"program": job["program"], "processes": job["processes"], "system": job["system"]}
        rows = data.ask(query, {**names, "user": job["user_id"]}).to_pylist()
        alike = {row["job_id"]: row for row in rows if _is_alike(job, row)}
        if len(alike) >= _FEWEST_JOBS:
            usual = median(row["run_seconds"] for row in alike.values())
            found[job["log"]] = TimeAlone("history", usual, len(alike))
    return found


def _predicted(
    data: AskedData, jobs: Sequence[Row], location: str, system: str, io_nodes: int
) -> dict[str, TimeAlone]:
    """Predict the time of each job; its time outside of I/O stays as it was."""
    # The predictor takes much longer to import than a few logs take to read.
    from ioncast.warehouse.coverage import jobs_of  # noqa: PLC0415
    from ioncast.warehouse.interference import TimeAlone  # noqa: PLC0415
    from predictor.commands import command_line  # noqa: PLC0415
    from predictor.curve.asking import PredictionRequest, ask  # noqa: PLC0415

    request = PredictionRequest(system, io_nodes=(io_nodes,), ran_with=io_nodes)
    chosen = {job["log"]: job for job in jobs}
    phases = [row for row in _rows(data, "phases", {}) if row["log"] in chosen]
    found = {}
    for log, extraction in zip(
        dict.fromkeys(row["log"] for row in phases), jobs_of(phases), strict=True
    ):
        predicted = ask(command_line(location), request, extraction)
        own, expected, run_seconds = (
            predicted.own_run,
            predicted.uncorrected,
            chosen[log]["run_seconds"],
        )
        if own is None or expected is None or run_seconds is None:
            continue
        lost_s = expected.total_mib / own.bandwidth_mib_s - predicted.curve[0].time_s
        found[log] = TimeAlone("prediction", run_seconds - lost_s, 0)
    return found


def _print_pairs(store: Path, system: str | None, output_format: str) -> None:
    from dataclasses import asdict, fields  # noqa: PLC0415

    from ioncast.warehouse.interference_texts import pair_texts  # noqa: PLC0415
    from ioncast.warehouse.pairs import DisturbingPair, pairs_of  # noqa: PLC0415

    query = query_of("run-places")
    with asked_data((), store, None) as data:
        pairs = pairs_of(data.ask(query, query.values({"system": system} if system else {})))
    if output_format == "table":
        if pairs:
            click.echo(text_table(pair_texts(pairs)))
        else:
            click.echo("no two applications ran 5 times together and 5 times apart")
        return
    rows = [{**asdict(pair), "is_disturbing": pair.is_disturbing} for pair in pairs]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    names = (*(each.name for each in fields(DisturbingPair)), "is_disturbing")
    for text in stream_csv(names, [rows]):
        click.echo(text, nl=False)
