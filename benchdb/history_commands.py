"""`ioncast history`: delete runs and users from the history of applications."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from tabulate import tabulate

from benchdb.command_database import reading_database
from benchdb.history.deleting_belongings import (
    Belongings,
    belongings_of_run,
    belongings_of_user,
    delete_some,
)
from benchdb.store.database import opened_database, transaction
from benchdb.store.writes import KINDS, WriteKind, by_command, note_write, writes
from ioncast_base.command_options import (
    CommandGroup,
    WholeNumber,
    database_option,
    format_option,
)
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast history delete --run 17
  ioncast history delete --user alice --yes
  ioncast history writes
""",
)
def history() -> None:
    """Change the history of applications, which decisions rest on, and see who changed it."""


@history.command(
    "delete",
    epilog="""\b
Examples:
  ioncast history delete --run 17 --yes
  ioncast history delete --user alice
""",
)
@click.option("--run", type=WholeNumber(0), help="Delete the run with this id, and its outcome.")
@click.option("--user", help="Delete the runs, outcomes and decisions of this user.")
@click.option("--yes", is_flag=True, help="Delete; without it only show the numbers.")
@database_option
def delete(run: int | None, user: str | None, yes: bool, location: str | None) -> None:
    """Delete a run, or everything of a user, for ever.

    A running service forgets them in its answers within seconds.
    """
    if (run is None) == (user is None):
        raise InputError("give either --run or --user")
    with opened_database(location, create=False) as engine:
        with transaction(engine) as connection:
            found = (
                belongings_of_user(connection, user)
                if user is not None
                else belongings_of_run(connection, run or 0)
            )
        if not yes:
            click.echo(f"would delete {_numbers(found)}")
            click.echo("ioncast: nothing was deleted; add --yes to delete them", err=True)
            return
        with transaction(engine, write=True) as connection:
            of = f"run {run}" if user is None else "a user"
            note_write(connection, by_command(), "deletion", f"{of}: {_numbers(found)}")
            left = delete_some(connection, found)
        while left:
            with transaction(engine, write=True) as connection:
                left = delete_some(connection, left)
    click.echo(f"deleted {_numbers(found)}")


@history.command(
    "writes",
    epilog="""\b
Examples:
  ioncast history writes
  ioncast history writes --by "token watch" --kind run
  ioncast history writes --limit 1000 --format json
""",
)
@click.option("--by", metavar="WRITER", help="Only of `token NAME` or `command of USER`.")
@click.option("--kind", type=click.Choice(KINDS), help="Only changes of this kind.")
@click.option(
    "--limit", type=WholeNumber(1), default=20, show_default=True, help="At most so many changes."
)
@format_option
@database_option
def list_writes(
    by: str | None, kind: WriteKind | None, limit: int, output_format: str, location: str | None
) -> None:
    """List who wrote what, the newest changes first.

    The changes are new runs and outcomes, changed ones, measurements, deletions and tokens.
    """
    with reading_database(location) as connection:
        rows = [asdict(each) for each in writes(connection, by=by, kind=kind, limit=limit)]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    table = [row | {"what": visible(row["what"])} for row in rows]
    click.echo(tabulate(table, headers="keys", disable_numparse=True) or "no changes")


def _numbers(found: Belongings) -> str:
    return (
        f"{counted(len(found.runs), 'run')}, {counted(len(found.outcomes), 'outcome')} and"
        f" {counted(len(found.decisions), 'decision')}"
    )
