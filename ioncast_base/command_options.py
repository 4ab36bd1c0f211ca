"""Options that several commands share."""

from __future__ import annotations

import click

database_option = click.option(
    "--db",
    "location",
    envvar="IONCAST_DB",
    show_envvar=True,
    metavar="FILE|URL",
    help="The benchmark database: an SQLite file or a SQLAlchemy URL.",
)

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Print a table for people or JSON for programs.",
)

system_option = click.option("--system", help="Show only this system.")
