"""`ioncast decisions`: pause and resume the decisions for a system."""

from __future__ import annotations

import getpass
import json
import os
from dataclasses import asdict

import click

from benchdb.command_database import reading_database
from benchdb.store.database import transaction_on
from benchdb.store.systems import system_names
from ioncast.service.store.paused_systems import pause_decisions, pauses, resume_decisions
from ioncast_base.command_options import CommandGroup, database_option, table_format_option
from ioncast_base.text_tables import text_table


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast decisions pause mysite --reason "the I/O nodes are replaced"
  ioncast decisions list
  ioncast decisions resume mysite
""",
)
def decisions() -> None:
    """Pause and resume the decisions for a system."""


@decisions.command(
    "pause",
    epilog="""\b
Examples:
  ioncast decisions pause mysite
  ioncast decisions pause mysite --reason "the I/O nodes are replaced" --by alice
""",
)
@click.argument("system")
@click.option("--reason", help="The reason, for the log of the scheduler and the pages.")
@click.option("--by", help="Who pauses the decisions.  [default: the user who logged in]")
@database_option
def pause(system: str, reason: str | None, by: str | None, location: str | None) -> None:
    """Stop the decisions for SYSTEM until `ioncast decisions resume`.

    A running service answers within seconds that they are paused. Jobs then stay unchanged, or get
    the plugin's default. A restart of the service changes nothing.
    """
    with transaction_on(location, write=True) as connection:
        before = pause_decisions(connection, system, by or _login_name(), reason)
    if before is None:
        click.echo(f"{system}: decisions are paused")
    else:
        click.echo(f"{system}: was paused before, by {before.paused_by} at {before.paused_at}")


@decisions.command("resume", epilog="\b\nExample:\n  ioncast decisions resume mysite")
@click.argument("system")
@database_option
def resume(system: str, location: str | None) -> None:
    """Let SYSTEM get decisions again, within seconds."""
    with transaction_on(location, write=True) as connection:
        was_paused = resume_decisions(connection, system)
    click.echo(f"{system}: {'decisions are made again' if was_paused else 'was not paused'}")


@decisions.command("list", epilog="\b\nExample:\n  ioncast decisions list --format json")
@table_format_option
@database_option
def list_systems(output_format: str, location: str | None) -> None:
    """List all systems, and who paused their decisions since when."""
    with reading_database(location) as connection:
        paused = {each.system: asdict(each) for each in pauses(connection)}
        names = system_names(connection)
    empty = dict.fromkeys(("paused_by", "paused_at", "reason"))
    rows = [
        {"system": name, "paused": name in paused} | empty | paused.get(name, {}) for name in names
    ]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    table = [
        {
            "system": row["system"],
            "decisions": "paused" if row["paused"] else "made",
            "by": row["paused_by"],
            "since": row["paused_at"],
            "reason": row["reason"],
        }
        for row in rows
    ]
    click.echo(text_table(table, optional=["by", "since"]) or "no systems")


def _login_name() -> str:
    """Name the person: the login's user, whom `sudo` and `runuser` do not change."""
    try:
        return os.getlogin()
    except OSError:
        pass
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
