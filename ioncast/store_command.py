"""`ioncast store`: look at a store, and remove logs from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import click

from ioncast.asked_data import needed_store
from ioncast_base.command_options import CommandGroup, WholeNumber, formats
from ioncast_base.errors import InputError
from ioncast_base.text_tables import text_table
from ioncast_base.times import in_utc
from ioncast_base.wording import counted, size

if TYPE_CHECKING:
    from ioncast.warehouse.upkeep import Removal

_STORE = click.argument("path", metavar="STORE")


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast store info /srv/ioncast-store
  ioncast store remove /srv/ioncast-store --before 2024-01 --yes
""",
)
def store() -> None:
    """Look at a store of logs' facts, and remove logs from it."""


@store.command(
    epilog="""\b
Examples:
  ioncast store info /srv/ioncast-store
  ioncast store info store --format json
"""
)
@_STORE
@formats("table", "json", help_text="Print a table for people or JSON for programs.")
def info(path: str, output_format: str) -> None:
    """Print what a store has, by system: logs, months, users, bytes, copies, failures, samples."""
    from ioncast.warehouse.upkeep import info_of  # noqa: PLC0415

    found = info_of(needed_store(path))
    if output_format == "json":
        click.echo(json.dumps(found, indent=2))
        return
    systems = [{**each, "moved_bytes": size(each["moved_bytes"])} for each in found["systems"]]
    click.echo(text_table(systems) if systems else "no logs")
    if found["samples"]:
        click.echo("\nSamples of servers")
        click.echo(text_table([_in_words(each) for each in found["samples"]]))
    click.echo(
        f"\n{counted(found['bundles'], 'bundle')} of {size(found['stored_bytes'])};"
        f" {counted(found['failed'], 'file')} cannot be read, {found['copies']:,} are copies of a"
        f" log, and {found['twice']:,} stored again in another bundle"
    )


@store.command(
    epilog="""\b
Examples:
  ioncast store remove store --before 2024-01
  ioncast store remove store --user 1004 --yes
"""
)
@_STORE
@click.option(
    "--before", metavar="YYYY-MM", help="Remove the logs and samples of earlier months (UTC)."
)
@click.option("--user", type=WholeNumber(0), help="Remove the logs of the user with this id.")
@click.option("--yes", is_flag=True, help="Remove; without it only show the number.")
def remove(path: str, before: str | None, user: int | None, yes: bool) -> None:
    """Remove logs from a store; their bundles are written again without them.

    Samples of servers of earlier months go with the logs of these months. The files stay: an ingest
    of their folder would store them again.
    """
    from ioncast.warehouse.upkeep import removal_of, remove_logs  # noqa: PLC0415

    if (before is None) == (user is None):
        raise InputError("give either --before or --user")
    found = removal_of(needed_store(path), before=before, user=user)
    if not yes:
        click.echo(f"would remove {_numbers(found)}")
        click.echo("ioncast: nothing was removed; add --yes to remove them", err=True)
        return
    remove_logs(found)
    click.echo(f"removed {_numbers(found)}")


def _in_words(samples: Mapping[str, Any]) -> dict[str, Any]:
    """Write the times of samples in UTC."""
    first, last = (
        in_utc(datetime.fromtimestamp(samples[name] // 1_000_000, timezone.utc))[:19]
        for name in ("first_us", "last_us")
    )
    names = ("system", "kind", "file_system", "servers")
    return {**{name: samples[name] for name in names}, "first": first, "last": last}


def _numbers(removal: Removal) -> str:
    logs = len(frozenset[str]().union(*removal.logs.values()))
    text = f"{counted(logs, 'log')} of {counted(len(removal.logs), 'bundle')}"
    if not removal.samples:
        return text
    samples = counted(sum(removal.samples.values()), "sample")
    return f"{text}, {samples} of servers of {counted(len(removal.samples), 'bundle')}"
