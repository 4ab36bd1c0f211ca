"""`ioncast sql`: ask about the facts of logs in SQL."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from ioncast.warehouse.queries import Query, queries, query_of, text_query
from ioncast_base.command_options import complain, formats
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import in_digits
from summario.phases.streamed import stream_csv
from summario.reading.sources import find_sources


@click.command(
    epilog="""\b
Examples:
  ioncast sql --list
  ioncast sql /logs/2026/11 programs limit=5
  ioncast sql app.darshan file path=%.h5
  ioncast sql app.darshan --text 'select api, sum(reads) as reads from files group by api'
"""
)
@click.argument("words", metavar="LOG... QUERY [NAME=VALUE]...", nargs=-1)
@click.option("--list", "shows_list", is_flag=True, help="List the named queries, and exit.")
@click.option("--text", metavar="SQL", help="Ask this instead of a named query.")
@formats("table", "csv", "json", help_text="Print a table for people, CSV or JSON.")
def sql(words: tuple[str, ...], shows_list: bool, text: str | None, output_format: str) -> None:
    """Ask about the facts of Darshan logs in SQL.

    LOG is a file, a folder or a quoted pattern. QUERY is the name of a query, and NAME=VALUE sets a
    parameter of it, :NAME in its text. The tables are jobs, files, file_servers, phases,
    request_sizes, requests, findings and failed; docs/insights.md describes them.

    A log that cannot be read is a row of the table failed, and a line on standard error; then the
    exit code is 2, but the others are asked.
    """
    if shows_list:
        click.echo(_list())
        return
    logs, query, given = _parted(words, text)
    values = query.values(given)
    try:
        from ioncast.warehouse.engine import answer  # noqa: PLC0415
        from ioncast.warehouse.rows import tables_of  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"SQL needs {error.name}", remedy="pip install 'ioncast[warehouse]'"
        ) from error
    tables = tables_of(find_sources(logs))
    failed = tables["failed"].to_pylist()
    for each in failed:
        complain(f"{visible(str(each['path']))}: {each['reason']}")
    found = answer(tables, query, values)
    _print(found.column_names, found.to_pylist(), output_format)
    if failed:
        sys.exit(2)


def _parted(words: tuple[str, ...], text: str | None) -> tuple[list[str], Query, dict[str, str]]:
    """Divide the arguments into logs, a query, and values of parameters."""
    plain = list(words)
    given: dict[str, str] = {}
    while plain and "=" in plain[-1]:
        name, _, value = plain.pop().partition("=")
        given[name] = value
    query = None if text is None else text_query(text)
    if query is None and plain:
        query = query_of(plain.pop())
    if query is None or not plain:
        raise InputError("a log and a query are needed", remedy="say LOG QUERY; --list lists them")
    return plain, query, given


def _list() -> str:
    rows = [
        {
            "query": query.name,
            "title": query.title,
            "parameters": " ".join(
                each.name + (f"={each.usual}" if each.usual else "=…") for each in query.parameters
            ),
        }
        for query in queries()
    ]
    return text_table(rows)


def _print(names: list[str], rows: list[dict[str, Any]], output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps(rows, indent=2))
    elif output_format == "csv":
        for part in stream_csv(tuple(names), [rows]):
            click.echo(part, nl=False)
    elif rows:
        numbers = {name for name in names if isinstance(rows[0][name], int | float)}
        click.echo(text_table([_shown(row) for row in rows], right=numbers))
    else:
        click.echo("no rows")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _cell(value) for name, value in row.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() else in_digits(value)
    return visible(value) if isinstance(value, str) else value
