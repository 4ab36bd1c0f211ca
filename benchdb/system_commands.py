"""`ioncast system`: note that a machine has changed, and take that back."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from benchdb.store.database import transaction_on
from benchdb.store.system_changes import counts_of_measurements, note_change, undo_change
from benchdb.store.writes import tell_syslog
from ioncast_base.command_options import CommandGroup, database_option, format_option


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast system changed mysite --since 2026-11-20 --why "new file system"
  ioncast system show mysite
  ioncast system undo mysite
""",
)
def system() -> None:
    """Note that a machine has changed: older measurements and outcomes no longer count."""


@system.command(
    "changed",
    epilog="""\b
Examples:
  ioncast system changed mysite --since 2026-11-20 --why "new file system"
  ioncast system changed mysite --since 2026-11-20T14:30:00+01:00 --why "4 more I/O nodes"
""",
)
@click.argument("name", metavar="SYSTEM")
@click.option(
    "--since",
    required=True,
    metavar="DATE",
    help="When the machine changed: a date or a time, ISO 8601; without a zone in UTC.",
)
@click.option("--why", required=True, metavar="TEXT", help='The change: "new file system".')
@format_option
@database_option
def changed(name: str, since: str, why: str, output_format: str, location: str | None) -> None:
    """Note that SYSTEM has changed.

    Measurements and outcomes from before DATE no longer decide. They stay stored and visible. The
    change replaces the one that was noted before.
    A running service follows within some minutes. `ioncast campaign plan` then asks for the
    benchmarks again, the most valuable first; `ioncast system undo` takes the change back. A
    measurement without a start counts as measured when it was imported.
    """
    with transaction_on(location, write=True) as connection:
        found = note_change(connection, name, since=since, why=why)
        counting, before = counts_of_measurements(connection, name)
    tell_syslog("change", f"since {found.day}: {found.why}", name)
    if output_format == "json":
        numbers = {"measurements": counting, "measurements_before_change": before}
        click.echo(json.dumps(asdict(found) | numbers, indent=1))
        return
    click.echo(
        f"{name}: the change is noted; measurements from before {found.day}, which no"
        f" longer count: {before}; since then: {counting}"
    )
    if not counting:
        click.echo(
            "predictions have no basis until something is measured, and schedulers get the"
            " site's default"
        )


@system.command("undo", epilog="\b\nExample:\n  ioncast system undo mysite")
@click.argument("name", metavar="SYSTEM")
@format_option
@database_option
def undo(name: str, output_format: str, location: str | None) -> None:
    """Take the change of SYSTEM back: all measurements and outcomes count again."""
    with transaction_on(location, write=True) as connection:
        found = undo_change(connection, name)
        counting, before = counts_of_measurements(connection, name)
    tell_syslog("change", f"undone: since {found.day}: {found.why}", name)
    if output_format == "json":
        numbers = {"measurements": counting, "measurements_before_change": before}
        click.echo(json.dumps(asdict(found) | numbers, indent=1))
        return
    click.echo(
        f"{name}: the change of {found.day} is taken back; measurements that count: {counting}"
    )
