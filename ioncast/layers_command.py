"""`ioncast layers`: ask how long MPI-IO calls take in each layer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ioncast.asked_data import asked_data
from ioncast.sql_command import print_answer
from ioncast.warehouse.queries import Query, queries, text_query
from ioncast_base.command_options import formats, warn
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.visible_text import visible
from ioncast_base.wording import alike_first

if TYPE_CHECKING:
    import pyarrow as pa

    from ioncast.warehouse.engine import Ask

_SUMMARY = "layers"
_TRACED = text_query(
    "select count(*) as requests, count(case when api = 'MPIIO' then 1 end) as calls from requests"
)
_SERVERS = text_query(
    "select count(*) as places, count(case when own_times then 1 end) as timed"
    " from request_servers where server_kind = :kind"
)
# Of these, a row is about the processes or the servers of the view, not about pairs of them.
_BY_VIEW = ("energy", "latency-mean", "throughput")
_OTHER = {"process": "server", "server": "process"}
# Null in these columns is IOPro's -1: no known server, no call that was found, no collective call.
_NUMBERS = ("call_number", "instance", "fragment", "server")


@click.command(
    epilog="""\b
Examples:
  ioncast layers app.darshan
  ioncast layers app.darshan latency-exclusive process=0-3 call=1-10
  ioncast layers app.darshan latency-max --view server --time 10-20
  ioncast layers app.darshan throughput server=0 --format csv
  ioncast layers app.darshan energy active_w=13 inactive_w=9
  ioncast layers app.darshan --html layers.html
"""
)
@click.argument("log", metavar="LOG", type=click.Path())
@click.argument("words", metavar="[QUERY] [NAME=VALUE]...", nargs=-1)
@click.option(
    "--view",
    type=click.Choice(list(_OTHER)),
    help="Look from the processes or from the servers. The query has its usual view.",
)
@click.option("--time", metavar="A-B", help="Only calls that start in these seconds of the run.")
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@formats(
    *("table", "csv", "json", "parquet"),
    help_text="Print a table for people, CSV, JSON or Parquet.",
)
def layers(
    log: str,
    words: tuple[str, ...],
    view: str | None,
    time: str | None,
    page: str | None,
    output_format: str,
) -> None:
    """Tell how long MPI-IO calls take in each layer, and at which servers.

    LOG is a Darshan log with a trace (DXT) of MPI-IO and POSIX. QUERY is one of IOPro's: latency-
    inclusive, -exclusive, -list, -max, -min, -mean, throughput, energy, calls, critical,
    participants; without it, layers sums up each process. NAME=VALUE selects processes, calls,
    fragments (the POSIX requests of a call) and servers: process=0-3 call=1 kind=ION. -1 is an
    unknown server, or no call.
    """
    query, given = _asked(words)
    given |= {name: value for name, value in (("view", view), ("time", time)) if value is not None}
    values = query.values(given)
    with asked_data([log], None, None, findings=False) as data:
        if data.failed:
            sys.exit(2)
        _check_trace(data.ask, log)
        answer = data.ask(query, values)
        if not _have_times(data.ask, values["kind"]):
            warn(
                "the log has no times of servers: a request lasts equally long at all its servers,"
                " and server_seconds are not known"
            )
        if page is not None:
            # Only the page needs Jinja.
            from ioncast.show.layers import write_layers  # noqa: PLC0415

            write_layers(page, data.ask, given, visible(log))
    print_answer(_as_iopro(answer, query, values), output_format)


def _asked(words: tuple[str, ...]) -> tuple[Query, dict[str, str]]:
    """Find the query and the values of its parameters."""
    known = {query.name: query for query in queries() if "calls" in query.parts}
    names = [word for word in words if "=" not in word] or [_SUMMARY]
    if len(names) > 1 or names[0] not in known:
        raise UnknownNameError(
            f"there is no query {visible(' '.join(names))!r} about layers",
            remedy=f"there are {alike_first(names[0], known)}",
        )
    pairs = (word.partition("=") for word in words if "=" in word)
    return known[names[0]], {name: value for name, _, value in pairs}


def _check_trace(ask: Ask, log: str) -> None:
    """InputError without traced requests, or without MPI-IO among them."""
    [found] = ask(_TRACED, {}).to_pylist()
    if not found["requests"]:
        remedy = "set DXT_ENABLE_IO_TRACE while the program runs"
        raise InputError("there is no trace", where=visible(log), remedy=remedy)
    if not found["calls"]:
        remedy = "`ioncast timeline` draws its requests"
        raise InputError("the trace has no MPI-IO call", where=visible(log), remedy=remedy)


def _have_times(ask: Ask, kind: str) -> bool:
    """Whether all requests have times of their own at servers."""
    [found] = ask(_SERVERS, {"kind": kind}).to_pylist()
    return bool(0 < found["places"] == found["timed"])


def _as_iopro(answer: pa.Table, query: Query, values: dict[str, Any]) -> pa.Table:
    """Leave out columns that say nothing about one log, and write -1 for unknown numbers."""
    import pyarrow.compute as pc  # noqa: PLC0415

    left_out = {"log"} | ({_OTHER[values["view"]]} if query.name in _BY_VIEW else set())
    answer = answer.drop_columns([name for name in answer.column_names if name in left_out])
    for name in _NUMBERS:
        if name not in answer.column_names:
            continue
        column = answer[name].fill_null(-1)
        if name == "call_number" and "sum_of" in answer.column_names:
            # A sum is of all calls, so that it has no number.
            column = pc.if_else(pc.equal(answer["sum_of"], "call"), column, answer[name])
        answer = answer.set_column(answer.column_names.index(name), name, column)
    return answer
