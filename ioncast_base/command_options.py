"""Options of several commands, types of their values, and the form of a group's help."""

from __future__ import annotations

from math import isnan
from typing import Any

import click

# Characters. A first sentence is shorter.
_LONGEST_SENTENCE = 300

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


class WholeNumber(click.IntRange):
    """A whole number within limits; click calls it an "integer range" in errors and help."""

    name = "whole number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        """Return the placeholder in the help."""
        return "N"


class Number(click.FloatRange):
    """A number within limits, which may have decimals."""

    name = "number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        """Return the placeholder in the help."""
        return "NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Reject nan too, which no comparison with a limit rejects."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return number


class CommandGroup(click.Group):
    """A group whose help shows the first sentence of each command as a whole; click cuts it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the commands, and what each does."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(_LONGEST_SENTENCE))
                    for name, command in commands
                    if command and not command.hidden
                ]
            )
