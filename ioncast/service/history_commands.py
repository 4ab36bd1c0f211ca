"""`ioncast history`: delete runs and users from the history of applications."""

from __future__ import annotations

import click

from benchdb.store.database import opened_database, transaction
from benchdb.store.writes import tell_syslog
from ioncast.service.store.deleting_belongings import (
    Belongings,
    belongings_of_run,
    belongings_of_user,
    delete_some,
)
from ioncast_base.command_options import (
    CommandGroup,
    WholeNumber,
    database_option,
)
from ioncast_base.errors import InputError
from ioncast_base.wording import counted


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast history delete --run 17
  ioncast history delete --user alice --yes
""",
)
def history() -> None:
    """Change the history of applications, which decisions rest on."""


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
        left = found
        while left:
            with transaction(engine, write=True) as connection:
                left = delete_some(connection, left)
    of = f"run {run}" if user is None else "a user"
    tell_syslog("deletion", f"{of}: {_numbers(found)}")
    click.echo(f"deleted {_numbers(found)}")


def _numbers(found: Belongings) -> str:
    return (
        f"{counted(len(found.runs), 'run')}, {counted(len(found.outcomes), 'outcome')} and"
        f" {counted(len(found.decisions), 'decision')}"
    )
