"""`ioncast system show`: the change of a system, and changes that its outcomes suggest."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from benchdb.command_database import reading_database
from benchdb.store.system_changes import SystemChange, change_of, counts_of_measurements
from benchdb.store.systems import require_system
from ioncast.service.monitoring.common_shift import Shift, common_shifts, shifts_to_json
from ioncast.service.monitoring.decision_errors import COUNTED
from ioncast.service.store.outcomes import newest_outcomes
from ioncast_base.command_options import database_option, format_option
from ioncast_base.wording import counted


@click.command(
    "show",
    epilog="""\b
Examples:
  ioncast system show mysite
  ioncast system show mysite --format json
""",
)
@click.argument("name", metavar="SYSTEM")
@format_option
@database_option
def show(name: str, output_format: str, location: str | None) -> None:
    """Show the change of SYSTEM, and the number of measurements and outcomes that count.

    If several independent applications have become faster or slower than predicted at about the
    same time, the command to note a change follows.
    """
    with reading_database(location) as connection:
        require_system(connection, name)
        noted = change_of(connection, name)
        counting, before = counts_of_measurements(connection, name)
        rows = newest_outcomes(connection, COUNTED, name)
    older = sum(row.is_before_change for row in rows)
    shifts = common_shifts(rows)
    if output_format == "json":
        record = {
            "system": name,
            "measurements": counting,
            "measurements_before_change": before,
            "outcomes": len(rows) - older,
            "outcomes_before_change": older,
            "change": noted and asdict(noted),
            "shifts": shifts_to_json(shifts),
        }
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(
        f"{name}: {counted(counting, 'measurement')} and {counted(len(rows) - older, 'outcome')}"
        f" count"
    )
    click.echo("\n".join(_lines(noted, before, older, shifts)))


def _lines(noted: SystemChange | None, before: int, older: int, shifts: list[Shift]) -> list[str]:
    lines = []
    if noted:
        lines.append(
            f"{noted.mark}: {counted(before, 'measurement')} and"
            f" {counted(older, 'outcome')} do not count"
        )
    else:
        lines.append("no change is noted")
    for shift in shifts:
        lines += ["", shift.in_words(), f"if the machine changed then, note it: {shift.command}"]
    return lines
