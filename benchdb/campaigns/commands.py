"""`ioncast campaign status|report`: show campaigns and their measurements.

`plan`, `run` and `resume` are in the predictor, which knows what measurements are worth.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from benchdb.campaigns import folder as folders
from benchdb.campaigns.campaign_formats import (
    left_out_lines,
    report_to_json,
    report_to_text,
    status_to_json,
    status_to_text,
)
from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.platform_file import Platform
from benchdb.campaigns.progress_lines import progress_text
from benchdb.campaigns.standing import status_of
from ioncast_base.command_options import (
    CommandGroup,
    format_option,
    table_format_option,
    warn,
)
from ior_configs import IorConfig, MdtestConfig

platform_option = click.option(
    "--platform",
    "platform_file",
    metavar="FILE.toml",
    required=True,
    type=click.Path(),
    help="The platform file; see docs/platform.md.",
)
engine_option = click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    help="The benchmark program; by default ior if it is found, else fio.",
)
directory_argument = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast campaign plan laptop --platform mysite.toml
  ioncast campaign run laptop --platform mysite.toml
  ioncast campaign status laptop-mysite
""",
)
def campaign() -> None:
    """Run benchmarks in random order, and store every result in the database."""


@campaign.command(epilog="\b\nExample:\n  ioncast campaign status laptop-mysite --format json")
@directory_argument
@format_option
def status(directory: Path, output_format: str) -> None:
    """Show the progress of the campaign in DIR, and which runs failed and why.

    Equal errors are one line with the number of their runs. The exit code is 1 if runs failed and
    no run succeeded, else 0.
    """
    folder = folders.read(directory)
    found = status_of(folder)
    if output_format == "json":
        click.echo(json.dumps(status_to_json(folder, found), indent=1))
    else:
        click.echo(status_to_text(folder, found))
    sys.exit(1 if found.state == "failed" else 0)


@campaign.command(
    epilog="""\b
Examples:
  ioncast campaign report laptop-mysite
  ioncast campaign report laptop-mysite --html report.html
""",
)
@directory_argument
@table_format_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Also draw the curves.")
def report(directory: Path, output_format: str, html: str | None) -> None:
    """Show the measurements of the campaign in DIR so far: a curve for each configuration."""
    # Only the page needs Jinja.
    from benchdb.campaigns.report import rows_of, write_html  # noqa: PLC0415

    folder = folders.read(directory)
    rows = rows_of(folder)
    if html is not None:
        write_html(folder, rows, html, progress_text(status_of(folder).progress))
    if output_format == "json":
        click.echo(json.dumps(report_to_json(folder, rows), indent=1))
    else:
        click.echo(report_to_text(folder, rows))


def show_left_out(
    configs: Iterable[IorConfig | MdtestConfig], platform: Platform, engine: str
) -> None:
    """Warn about configurations that platform or engine cannot run."""
    for line in left_out_lines(configs, platform, engine):
        warn(line)
