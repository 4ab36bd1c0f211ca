"""`ioncast diagnose`: whether a run was slow, and by which cause."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ioncast.asked_data import AskedData, asked_data, needed_store
from ioncast.placement_file import placement_option, read_placement
from ioncast.warehouse.queries import query_of
from ioncast_base.command_options import complain, formats
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted
from summario.phases.streamed import stream_csv

if TYPE_CHECKING:
    import pyarrow as pa

    from ioncast.diagnosis.diagnosing import Diagnosis, History
    from ioncast.diagnosis.server_evidence import EvidenceOf
    from ioncast.diagnosis.server_times import ServerTimes
    from ioncast.diagnosis.verdict import UsualBandwidth

_MOST_ROWS = 50
# Numbers of jobs have 64 bits.
_DIGITS = 19


@click.command(
    epilog="""\b
Examples:
  ioncast diagnose app.darshan --store /srv/ioncast-store --system mysite
  ioncast diagnose 4711 --store /srv/ioncast-store --html diagnosis.html
  ioncast diagnose app.darshan --store /srv/ioncast-store --db bench.sqlite --io-nodes 4
  ioncast diagnose --store /srv/ioncast-store --format csv
  ioncast diagnose 4711 --store /srv/ioncast-store --placement nodes.csv
  ioncast diagnose --servers --store /srv/ioncast-store
"""
)
@click.argument("run", metavar="LOG|JOB", required=False)
@click.option(
    "--store", metavar="DIR", required=True, help="A store of `ioncast ingest`: the history."
)
@click.option("--system", help="The system of the log, or only its jobs in the store.")
@click.option("--servers", is_flag=True, help="Name slow OSTs and I/O nodes instead of slow runs.")
@click.option(
    "--db", "location", metavar="FILE|URL", help="Benchmarks that predict a short history."
)
@click.option(
    "--io-nodes", type=click.IntRange(0), metavar="N", help="The I/O nodes of the run, for --db."
)
@placement_option
@click.option(
    "--html", "page", metavar="FILE", type=click.Path(), help="Also write a page of the run."
)
@formats("table", "json", "csv", help_text="Print sentences and tables, JSON or CSV.")
def diagnose(
    run: str | None,
    store: str,
    system: str | None,
    servers: bool,
    location: str | None,
    io_nodes: int | None,
    placement: Path | None,
    page: str | None,
    output_format: str,
) -> None:
    """Tell whether a run was slow, and by which cause: configuration, application or system.

    LOG is a Darshan log, JOB a job of the store. The run is compared with other jobs of the store
    that have the same program, user, processes and about as many bytes. Without LOG|JOB, list the
    slow runs of the store. A run of the store is also compared with the samples of its servers that
    `ioncast servers import` stored: those of OSTs, or with a placement those of I/O nodes.
    """
    _check_options(run, page, servers, location, io_nodes, placement)
    nodes = {} if placement is None else read_placement(placement)
    folder = needed_store(store)
    with ExitStack() as stack:
        data = stack.enter_context(asked_data((), folder, None))
        # Only now it is known that their libraries are installed.
        from ioncast.diagnosis.diagnosing import History  # noqa: PLC0415

        rows = runs_of_store(data, store, system)
        if servers:
            query, given = query_of("files-on-servers"), {"system": system} if system else {}
            _print_servers(History(rows), data.ask(query, query.values(given)), output_format)
            return
        if run is None:
            found, history = slow_runs(data, rows, nodes)
            _print_all(found, history, output_format)
            return
        found, history, own = diagnosed_runs(
            stack, run, data, rows, system=system, nodes=nodes, location=location, io_nodes=io_nodes
        )
        shown = slowest(found)
        times = None if page is None else _server_times(data, shown.log)
    _print(found, output_format)
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.show.diagnosis import write_diagnosis  # noqa: PLC0415

        write_diagnosis(page, shown, history.compared_with(shown.log), times)
    if own.failed:
        sys.exit(InputError.exit_code)


def _check_options(
    run: str | None,
    page: str | None,
    servers: bool,
    location: str | None,
    io_nodes: int | None,
    placement: Path | None,
) -> None:
    """Reject options that do not belong together."""
    if run is None and (page or location):
        raise InputError("a page and a prediction are of a run", remedy="give LOG or JOB")
    if run is not None and servers:
        raise InputError(
            "slow servers are those of a store", where="--servers", remedy="give no LOG"
        )
    if (location is None) != (io_nodes is None):
        what = "a prediction is of a number of I/O nodes"
        raise InputError(what, where="--db", remedy="give --db and --io-nodes")
    if placement is not None and servers:
        what = "a placement is for the causes of slow runs"
        raise InputError(what, where="--placement", remedy="leave out --servers")


def runs_of_store(data: AskedData, store: str, system: str | None) -> pa.Table:
    """Read the runs of a store, or only those of a system; InputError if it has none."""
    rows = _rows(data, {"system": system} if system else {})
    if not len(rows):
        what = "it has no logs" + (f" of the system {visible(system)!r}" if system else "")
        raise InputError(what, where=store, remedy="`ioncast store info` names its systems")
    return rows


def slow_runs(
    data: AskedData, rows: pa.Table, nodes: Mapping[str, int]
) -> tuple[list[Diagnosis], History]:
    """Diagnose the slow runs of a store; `nodes` has the I/O node of each compute node."""
    from ioncast.diagnosis.diagnosing import History  # noqa: PLC0415

    history, evidence = History(rows), _evidence(data, rows, nodes)
    found = [
        history.diagnose(log, ask_run=data.ask, ask_others=data.ask, evidence=evidence)
        for log in history.slow_logs
    ]
    return found, history


def diagnosed_runs(
    stack: ExitStack,
    run: str,
    data: AskedData,
    rows: pa.Table,
    *,
    system: str | None = None,
    nodes: Mapping[str, int],
    location: str | None = None,
    io_nodes: int | None = None,
    tell: Callable[[str], object] = complain,
) -> tuple[list[Diagnosis], History, AskedData]:
    """Diagnose a log, or a job of the store; also return the data about the run."""
    from ioncast.diagnosis.diagnosing import History  # noqa: PLC0415

    evidence = _evidence(data, rows, nodes)
    own, logs, rows = _own_runs(stack, run, data, rows, system, tell)
    history = History(rows)
    found = [
        history.diagnose(
            log,
            ask_run=own.ask,
            ask_others=data.ask,
            predicted=_predicted(own, log, rows, location, io_nodes),
            evidence=evidence,
        )
        for log in logs
    ]
    return found, history, own


def slowest(found: Sequence[Diagnosis]) -> Diagnosis:
    """The diagnosis of the run that lost most time."""
    return max(found, key=lambda each: each.facts.lost_seconds or 0.0)


def _rows(data: AskedData, given: dict[str, str]) -> pa.Table:
    query = query_of("variant-runs")
    return data.ask(query, query.values(given))


def _evidence(data: AskedData, rows: pa.Table, io_nodes: Mapping[str, int]) -> EvidenceOf:
    """Find the evidence of servers about logs of the store, if it has samples of servers."""
    from ioncast.diagnosis.server_evidence import evidence_of_store  # noqa: PLC0415

    stored = set(rows["log"].to_pylist())
    evidence_of = evidence_of_store(data.ask, io_nodes=io_nodes)
    return lambda log: evidence_of(log) if log in stored else ()


def _server_times(data: AskedData, log: str) -> ServerTimes | None:
    """Find the samples of servers in the time of a log, if the store has both."""
    from ioncast.diagnosis.server_times import server_times  # noqa: PLC0415

    return server_times(data.ask, log)


def _own_runs(
    stack: ExitStack,
    run: str,
    data: AskedData,
    rows: pa.Table,
    system: str | None,
    tell: Callable[[str], object],
) -> tuple[AskedData, list[str], pa.Table]:
    """Find the logs of a job in the store, or read a log; return all rows, with those of it."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if run.isdecimal() and not Path(run).exists():
        job_id = int(run) if len(run) < _DIGITS else -1
        of_job = rows.filter(pc.equal(rows["job_id"], job_id))
        if not len(of_job):
            what = f"the store has no job {visible(run)}"
            raise InputError(what, remedy="give a job of it, or a log")
        _needed_system(of_job)
        return data, of_job["log"].to_pylist(), rows
    if system is None:
        system = _needed_system(rows)
    own = stack.enter_context(asked_data([run], None, None, system, findings=False, tell=tell))
    own_rows = _rows(own, {})
    if not len(own_rows):
        raise InputError("no log can be read", where=visible(run), remedy="give another LOG")
    logs: list[str] = own_rows["log"].to_pylist()
    others = rows.filter(pc.invert(pc.is_in(rows["log"], own_rows["log"].combine_chunks())))
    return own, logs, pa.concat_tables([others, own_rows.cast(others.schema)])


def _needed_system(rows: pa.Table) -> str | None:
    """Return the system of runs, which must be one."""
    systems: list[str | None] = rows["system"].unique().to_pylist()
    if len(systems) > 1:
        names = ", ".join(visible(str(each)) for each in systems[:5])
        raise InputError(f"the store has several systems: {names}", remedy="give --system")
    return systems[0] if systems else None


def _predicted(
    own: AskedData, log: str, rows: pa.Table, location: str | None, io_nodes: int | None
) -> UsualBandwidth | None:
    """Predict the bandwidth of a log; None without benchmarks."""
    if location is None or io_nodes is None:
        return None
    import pyarrow.compute as pc  # noqa: PLC0415

    from ioncast.diagnosis.verdict import UsualBandwidth  # noqa: PLC0415
    from ioncast.warehouse.times_alone import predicted_bandwidth  # noqa: PLC0415

    [system] = rows.filter(pc.equal(rows["log"], log))["system"].to_pylist()
    if system is None:
        raise InputError("a prediction is of a system", where="--db", remedy="give --system")
    found = predicted_bandwidth(own.ask, log, location, system, io_nodes)
    if found is None:
        return None
    p10, middle, p90 = found
    return UsualBandwidth("prediction", middle, p10, p90)


def _print(found: Sequence[Diagnosis], output_format: str) -> None:
    from ioncast.diagnosis import diagnosis_texts as texts  # noqa: PLC0415

    if output_format == "json":
        click.echo(json.dumps([texts.to_record(each) for each in found], indent=1))
    elif output_format == "csv":
        _print_csv([texts.row_of(each) for each in found], texts.ROW_COLUMNS)
    else:
        click.echo("\n".join(map(texts.text_of, found)))


def _print_all(found: Sequence[Diagnosis], history: History, output_format: str) -> None:
    from ioncast.diagnosis.diagnosis_texts import row_of  # noqa: PLC0415
    from ioncast.warehouse.survey_texts import cell  # noqa: PLC0415

    if output_format != "table":
        _print(found, output_format)
        return
    runs = history.compared_runs
    click.echo(f"{len(found):,} of {runs:,} runs with a usual bandwidth are slow.")
    if others := history.all_runs - runs:
        click.echo(f"{counted(others, 'run')} cannot be compared: fewer than 5 other jobs.")
    names = (
        "program",
        "job_id",
        "start_us",
        "verdict",
        "slowdown",
        "lost_seconds",
        "class",
        "reason",
    )
    shown = [
        {name: cell(name, row[name]) for name in names} for row in map(row_of, found[:_MOST_ROWS])
    ]
    if shown:
        click.echo(text_table(shown))
    if len(found) > _MOST_ROWS:
        click.echo(f"{len(found) - _MOST_ROWS:,} more: --format csv")


def _print_servers(history: History, places: pa.Table, output_format: str) -> None:
    from ioncast.diagnosis.diagnosis_texts import server_text  # noqa: PLC0415
    from ioncast.diagnosis.slow_servers import SlowServer  # noqa: PLC0415

    found = history.slow_servers(places)
    rows = [asdict(each) for each in found]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
    elif output_format == "csv":
        _print_csv(rows, [each.name for each in fields(SlowServer)])
    else:
        click.echo("\n".join(map(server_text, found)) or "No server is surely slower than others.")


def _print_csv(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> None:
    for text in stream_csv(columns, [rows]):
        click.echo(text, nl=False)
