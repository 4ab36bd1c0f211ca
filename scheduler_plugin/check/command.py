"""`ioncast slurm check`: whether everything beside Slurm is set up right, as rows."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from ioncast_base.command_options import format_option, in_colour
from scheduler_plugin.check.inspection import inspect
from scheduler_plugin.check.row_values import Row, Status, exit_code
from scheduler_plugin.check.watch_and_arbiter import Part

_PLACES: dict[Part, str] = {
    "watch": "/etc/ioncast/watch.toml",
    "arbiter": "/etc/ioncast/arbiter.toml",
}
_COLOURS: dict[Status, str] = {"OK": "green", "WARN": "yellow", "FAIL": "red"}
_WIDTH = 100
_INDENT = 6


@click.command(
    "check",
    epilog="""\b
Examples:
  ioncast slurm check
  ioncast slurm check --watch watch.toml --arbiter arbiter.toml
  ioncast slurm check --format json
""",
)
@click.option(
    "--watch",
    metavar="FILE.toml",
    type=click.Path(exists=True, dir_okay=False),
    help=f"The settings of the watch; without it {_PLACES['watch']}, if it exists.",
)
@click.option(
    "--arbiter",
    metavar="FILE.toml",
    type=click.Path(exists=True, dir_okay=False),
    help=f"The settings of the arbiter; without it {_PLACES['arbiter']}, if it exists.",
)
@format_option
def check(watch: str | None, arbiter: str | None, output_format: str) -> None:
    """Check plugin, hooks, watch, arbiter and service, and say what to do about each problem.

    Run it as root on slurmctld's machine; another user sees which rows only root can check. It
    changes nothing. Each row is OK, WARN or FAIL. The command exits with 1 if a row is FAIL, and
    with 2 if an option is wrong.
    """
    given: dict[Part, str | None] = {"watch": watch, "arbiter": arbiter}
    files = {part: path or _PLACES[part] for part, path in given.items()}
    rows = inspect({part: path for part, path in files.items() if Path(path).exists()})
    if output_format == "json":
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        click.echo("\n".join(_lines(rows)), color=in_colour())
    sys.exit(exit_code(rows))


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    """Write each row as a line, and its remedy below it."""
    for row in rows:
        status = click.style(f"{row.status:<{_INDENT - 1}}", fg=_COLOURS[row.status])
        yield f"{status} {row.subject}: {row.found}"
        if row.remedy:
            yield textwrap.fill(
                row.remedy,
                _WIDTH,
                initial_indent=" " * _INDENT + "→ ",
                subsequent_indent=" " * (_INDENT + 2),
                break_long_words=False,
                break_on_hyphens=False,
            )
    counts = {status: sum(row.status == status for row in rows) for status in _COLOURS}
    yield "\n" + ", ".join(f"{count} {status}" for status, count in counts.items())
