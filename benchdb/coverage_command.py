"""`ioncast bench coverage`: the number, spread and age of the measurements of each cell."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import click

from benchdb.command_database import reading_database
from benchdb.measurements.coverage import STALE_AFTER_DAYS, coverage
from benchdb.measurements.measurement_formats import coverage_to_json, coverage_to_text
from ioncast_base.command_options import database_option, system_option, table_format_option
from ioncast_base.times import parse_duration


@click.command(
    "coverage",
    epilog="""\b
Examples:
  ioncast bench coverage --system mysite
  ioncast bench coverage --system mysite --stale-after 90d --html coverage.html
""",
)
@system_option
@click.option(
    "--stale-after",
    default=f"{STALE_AFTER_DAYS}d",
    show_default=True,
    metavar="TIME",
    help="A cell is stale if its newest repetition is older than TIME, such as 90d or 12h.",
)
@table_format_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Also draw a heat map.")
@database_option
def coverage_command(
    system: str | None,
    stale_after: str,
    output_format: str,
    html: str | None,
    location: str | None,
) -> None:
    """Show the measured configurations, with their repetitions for each number of I/O nodes.

    A cell of the table has the number of repetitions and their spread (coefficient of variation).
    Marks show cells with outliers, cells with two modes, and stale cells. Outliers stay in the
    curves.
    """
    stale_after_s = parse_duration(stale_after)
    now = datetime.now(timezone.utc)
    with reading_database(location) as connection:
        rows = coverage(connection, system, now=now, stale_after_s=stale_after_s)
    if html is not None:
        from benchdb.measurements.coverage_page import write_html  # noqa: PLC0415

        write_html(rows, html, now=now, stale_after=stale_after)
    if output_format == "json":
        click.echo(json.dumps(coverage_to_json(rows, stale_after_s), indent=1))
    else:
        click.echo(coverage_to_text(rows, stale_after))
