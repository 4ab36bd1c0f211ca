"""`ioncast bench coverage`: which cells were measured, how often, how well and when."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import click
from tabulate import tabulate

from benchdb.measurements.cells import OUTLIER_RULE
from benchdb.measurements.coverage import (
    STALE_AFTER_DAYS,
    Cell,
    CoverageRow,
    blocks,
    coverage,
    summarise,
)
from benchdb.store.database import reading
from ioncast_base.command_options import database_option, format_option, system_option
from ioncast_base.durations import parse_duration


@click.command(
    "coverage",
    epilog="""\b
Examples:
  ioncast bench coverage --system mysite
  ioncast bench coverage --system mysite --stale-after 90d --html coverage.html
""",
)
@system_option
@click.option(
    "--stale-after",
    default=f"{STALE_AFTER_DAYS}d",
    show_default=True,
    metavar="TIME",
    help="How old a cell's newest repetition may be, such as 90d or 12h.",
)
@format_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Draw a heat map as well.")
@database_option
def coverage_command(
    system: str | None,
    stale_after: str,
    output_format: str,
    html: str | None,
    location: str | None,
) -> None:
    """Show which configurations were measured with how many I/O nodes, and how well.

    A cell of the table is the number of repetitions and their spread (coefficient of
    variation). Marked are cells with outliers, with two modes, and stale ones. Outliers are
    flagged only: they stay in the curves.
    """
    stale_after_s = parse_duration(stale_after)
    now = datetime.now(timezone.utc)
    with reading(location) as connection:
        rows = coverage(connection, system, now=now, stale_after_s=stale_after_s)
    if html is not None:
        # Plotly takes longer to import than most databases to read.
        from benchdb.measurements.coverage_plot import write_html  # noqa: PLC0415

        write_html(rows, html, now=now, stale_after=stale_after)
    if output_format == "json":
        click.echo(json.dumps(to_json(rows, stale_after_s), indent=1))
    else:
        click.echo(to_text(rows, stale_after))


def to_text(rows: Sequence[CoverageRow], stale_after: str) -> str:
    """The coverage for people: a table for each system and engine, then what the marks mean."""
    if not rows:
        return "no measurements"
    legend = (
        "cells: repetitions ±coefficient of variation, - if missing\n"
        f"*: outliers, by {OUTLIER_RULE}\n"
        f"b: bimodal; s: stale, the newest older than {stale_after}"
    )
    return "\n\n".join([*(_block_text(*block) for block in blocks(rows)), legend])


def to_json(rows: Sequence[CoverageRow], stale_after_s: float) -> dict[str, Any]:
    """The coverage for programs."""
    return {
        "outlier_rule": OUTLIER_RULE,
        "stale_after_s": stale_after_s,
        "configurations": [
            {
                "system": row.system,
                "engine": row.engine,
                "id": row.id,
                "command": row.config.command_line(),
                "tasks": row.config.tasks,
                "nodes": row.config.nodes,
                "cells": [_cell_record(cell) for cell in row.cells],
            }
            for row in rows
        ],
    }


def _block_text(system: str, engine: str, rows: Sequence[CoverageRow]) -> str:
    lines = [
        {
            "id": row.id,
            "configuration": row.config.command_line(launcher=True),
            "nodes": row.config.nodes,
            **{str(cell.io_nodes): _cell_text(cell) for cell in row.cells},
        }
        for row in rows
    ]
    table = tabulate(lines, headers="keys", disable_numparse=True, missingval="?")
    return f"{system}, {engine}, by number of I/O nodes:\n{table}\n{summarise(rows)}"


def _cell_text(cell: Cell) -> str:
    if cell.missing:
        return "-"
    spread = "" if cell.spread is None else f" ±{cell.spread:.0%}"
    return f"{cell.repetitions}{spread} {cell.marks}".rstrip()


def _cell_record(cell: Cell) -> dict[str, Any]:
    return {
        **vars(cell),
        "missing": cell.missing,
        "newest": cell.newest.isoformat() if cell.newest else None,
    }
