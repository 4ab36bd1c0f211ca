"""`ioncast sql`: ask about the facts of logs in SQL."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ioncast.asked_data import asked_data, store_at
from ioncast.warehouse.queries import Query, queries, query_of, text_query
from ioncast_base.command_options import formats
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import in_digits
from summario.phases.streamed import stream_csv

if TYPE_CHECKING:
    import pyarrow as pa


QUERIES_VARIABLE = "IONCAST_QUERIES"


@click.command(
    epilog="""\b
Examples:
  ioncast sql --list
  ioncast sql /logs/2026/11 programs limit=5
  ioncast sql app.darshan file path=%.h5
  ioncast sql /srv/ioncast-store users limit=10 --format parquet > users.parquet
  ioncast sql app.darshan --text 'select api, sum(reads) as reads from files group by api'
"""
)
@click.argument("words", metavar="STORE|LOG... QUERY [NAME=VALUE]...", nargs=-1)
@click.option("--list", "shows_list", is_flag=True, help="List the named queries, and exit.")
@click.option("--text", metavar="SQL", help="Ask this instead of a named query.")
@click.option(
    *("--queries", "folder"),
    type=click.Path(path_type=Path),
    envvar=QUERIES_VARIABLE,
    show_envvar=True,
    metavar="DIR",
    help="A folder of named queries of your own.",
)
@click.option("--spark", "master", metavar="MASTER", help="Let Spark answer, such as local[4].")
@formats(
    *("table", "csv", "json", "parquet"),
    help_text="Print a table for people, CSV, JSON or Parquet.",
)
def sql(
    words: tuple[str, ...],
    shows_list: bool,
    text: str | None,
    folder: Path | None,
    master: str | None,
    output_format: str,
) -> None:
    """Ask about the facts of Darshan logs in SQL.

    `ioncast ingest` fills a STORE. LOG is a file, a folder or a quoted pattern. QUERY is the name
    of a query, and NAME=VALUE sets a parameter of it, :NAME in its text. The tables are jobs,
    files, file_servers, file_osts, phases, request_sizes, requests, request_servers, findings,
    server_samples, failed and copies; docs/insights.md describes them.

    A log that cannot be read is a row of the table failed, and a line on standard error; then the
    exit code is 2, but the others are asked.
    """
    if shows_list:
        click.echo(_list(folder))
        return
    if output_format == "parquet" and sys.stdout.isatty():
        raise InputError("Parquet is not for a terminal", remedy="send it to a file: > FILE")
    logs, query, given = _parted(words, text, folder)
    values = query.values(given)
    store = store_at(logs[0]) if len(logs) == 1 else None
    with asked_data(logs, store, master) as data:
        answer = data.ask(query, values)
    print_answer(answer, output_format)
    if data.failed:
        sys.exit(2)


def _parted(
    words: tuple[str, ...], text: str | None, folder: Path | None
) -> tuple[list[str], Query, dict[str, str]]:
    """Divide the arguments into logs, a query, and values of parameters."""
    plain = list(words)
    given: dict[str, str] = {}
    while plain and "=" in plain[-1]:
        name, _, value = plain.pop().partition("=")
        given[name] = value
    query = None if text is None else text_query(text)
    if query is None and plain:
        query = query_of(plain.pop(), folder)
    if query is None or not plain:
        raise InputError(
            "a store or a log, and a query are needed",
            remedy="say STORE QUERY; --list lists the queries",
        )
    return plain, query, given


def _list(folder: Path | None) -> str:
    rows = [
        {
            "query": query.name,
            "title": query.title,
            "parameters": " ".join(
                each.name + (f"={each.usual}" if each.usual else "=…") for each in query.parameters
            ),
        }
        for query in queries(folder)
    ]
    return text_table(rows)


def print_answer(answer: pa.Table, output_format: str) -> None:
    """Print an answer as a table, CSV, JSON or Parquet."""
    if output_format == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415

        content = io.BytesIO()
        pq.write_table(answer, content)
        click.echo(content.getvalue(), nl=False)
        return
    names, rows = answer.column_names, answer.to_pylist()
    if output_format == "json":
        click.echo(json.dumps(rows, indent=2))
    elif output_format == "csv":
        for part in stream_csv(tuple(names), [rows]):
            click.echo(part, nl=False)
    elif rows:
        import pyarrow.types as kinds  # noqa: PLC0415

        are_numbers = (kinds.is_integer, kinds.is_floating)
        numbers = {each.name for each in answer.schema if any(of(each.type) for of in are_numbers)}
        click.echo(text_table([_shown(row) for row in rows], right=numbers))
    else:
        click.echo("no rows")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _cell(value) for name, value in row.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else in_digits(value)
    return visible(value) if isinstance(value, str) else value
