"""`ioncast survey`: describe the I/O of all jobs of a site."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ioncast.warehouse.queries import query_of
from ioncast.warehouse.survey import CSV_COLUMNS, Survey, survey_of, to_json, to_rows
from ioncast.warehouse.survey_texts import to_text
from ioncast_base.command_options import complain, formats
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible
from summario.phases.streamed import stream_csv
from summario.reading.sources import find_sources

if TYPE_CHECKING:
    import pyarrow as pa


@click.command(
    epilog="""\b
Examples:
  ioncast survey /logs/2026 --html survey.html
  ioncast survey /logs --month 2026-01-2026-03
  ioncast survey '/logs/2026/*/*.darshan' --system mysite --format json
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@click.option("--system", help="The system of these logs, which the survey names.")
@click.option(
    "--month",
    metavar="FROM-TO",
    help="Only jobs that started in these months (UTC), such as 2026-01-2026-03, or in one.",
)
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@formats("table", "json", "csv", help_text="Print tables for people, JSON or CSV.")
def survey(
    logs: tuple[str, ...],
    system: str | None,
    month: str | None,
    page: str | None,
    output_format: str,
) -> None:
    """Describe the I/O of all jobs: users, programs, files, MPI-IO, slow runs.

    LOG is a file, a folder or a quoted pattern. Each number is the answer of a query that
    `ioncast sql --list` names. A log that cannot be read is a line on standard error, and counts as
    unusable; the exit code is then 2.
    """
    tables = _tables(logs, system)
    failed = tables["failed"].to_pylist()
    for each in failed:
        complain(f"{visible(str(each['path']))}: {each['reason']}")
    found = _survey(tables, system, month)
    if output_format == "json":
        click.echo(json.dumps(to_json(found), indent=1))
    elif output_format == "csv":
        for text in stream_csv(CSV_COLUMNS, [to_rows(found)]):
            click.echo(text, nl=False)
    else:
        click.echo(to_text(found))
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.show.survey import write_survey  # noqa: PLC0415

        write_survey(page, found)
    if failed:
        sys.exit(InputError.exit_code)


def _tables(logs: Sequence[str], system: str | None) -> dict[str, pa.Table]:
    """Make the tables of logs."""
    try:
        from ioncast.warehouse.rows import tables_of  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"a survey needs {error.name}", remedy="pip install 'ioncast[warehouse]'"
        ) from error
    return tables_of(find_sources(logs), system=system)


def _survey(tables: Mapping[str, pa.Table], system: str | None, month: str | None) -> Survey:
    from ioncast.warehouse.engine import answer  # noqa: PLC0415

    def ask(name: str, given: Mapping[str, str]) -> list[dict[str, Any]]:
        query = query_of(name)
        rows: list[dict[str, Any]] = answer(tables, query, query.values(given)).to_pylist()
        return rows

    return survey_of(ask, system=system, month=month)
