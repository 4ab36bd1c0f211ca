"""Parts of several commands: options, types of values, groups, and coloured warnings and errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from math import isnan
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from ioncast_base.text_tables import show_wide

Item = TypeVar("Item")

# Characters. A first sentence is shorter.
_LONGEST_SENTENCE = 300

DATABASE_VARIABLE = "IONCAST_DB"
database_option = click.option(
    "--db",
    "location",
    envvar=DATABASE_VARIABLE,
    show_envvar=True,
    metavar="FILE|URL",
    help="The benchmark database: an SQLite file or a SQLAlchemy URL.",
)

wide_option = click.option(
    "--wide",
    is_flag=True,
    expose_value=False,
    callback=show_wide,
    help="Print all columns, also those that have no room on the terminal.",
)


def formats(
    *choices: str, help_text: str, default: str = "table", has_tables: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--format`, the parameter `output_format`, and `--wide` for tables, to a command."""
    option = click.option(
        "--format",
        "output_format",
        type=click.Choice(choices),
        default=default,
        show_default=True,
        help=help_text,
    )
    return lambda command: option(wide_option(command) if has_tables else command)


format_option = formats(
    *("table", "json"),
    help_text="Print a text for people or JSON for programs.",
    has_tables=False,
)
table_format_option = formats(
    "table", "json", help_text="Print a table for people or JSON for programs."
)
report_format_option = formats(
    *("table", "markdown", "json"),
    help_text="Print tables for people, the same in Markdown, or JSON for programs.",
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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands; click imports each command for its help, for seconds."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*map(CompletionItem, names), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the commands, and what each does."""
        rows = [(name, self.first_sentence(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def first_sentence(self, ctx: click.Context, name: str) -> str:
        """Return the first sentence of a command's help."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_LONGEST_SENTENCE) if command else ""


def warn(sentence: str, start: str = "") -> None:
    """Print a warning; `start` clears a line of progress before it."""
    _say(f"{start}ioncast: {click.style('warning:', fg='yellow', bold=True)} {sentence}")


def complain(sentence: str, start: str = "") -> None:
    """Print an error; `start` clears a line of progress before it."""
    # Clearing is no colour, so NO_COLOR does not count for it.
    click.echo(start, nl=False, err=True, color=True)
    _say(f"{click.style('ioncast:', fg='red', bold=True)} {sentence}")


def suggest(sentence: str) -> None:
    """Print a next step, less visible than the output of the command."""
    _say(click.style(f"ioncast: next: {sentence}", dim=True))


def with_progress(items: Iterable[Item], number: int, *, shows_progress: bool) -> Iterator[Item]:
    """Yield items, which come from so many logs, with a progress bar on standard error."""
    with click.progressbar(
        items, length=number, label="reading logs", file=sys.stderr, hidden=not shows_progress
    ) as shown:
        yield from shown


def emphasised(text: str) -> str:
    """Mark the most important line of an output; `in_colour` says whether it is printed so."""
    return click.style(text, fg="green", bold=True)


def in_colour() -> bool | None:
    """Never, if NO_COLOR (https://no-color.org) is set; else None: only on a terminal."""
    return False if os.environ.get("NO_COLOR") else None


def _say(line: str) -> None:
    click.echo(line, err=True, color=in_colour())
