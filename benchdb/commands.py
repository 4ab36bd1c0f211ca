"""`ioncast bench`: fill the benchmark database and look into it."""

from __future__ import annotations

import json
import statistics
from typing import Any

import click
from sqlalchemy import Connection
from tabulate import tabulate

from benchdb.coverage_command import coverage_command
from benchdb.export_command import export
from benchdb.import_command import import_files
from benchdb.measurements.curves import Curve, curves, curves_of_ids
from benchdb.store.database import reading
from benchdb.store.systems import require_system, system_names
from ioncast_base.command_options import database_option, format_option, system_option
from ioncast_base.errors import UnknownNameError
from ioncast_base.limits import LARGEST_ID


@click.group(
    epilog="""\b
Examples:
  ioncast bench import run-*.json --system mysite --io-nodes 4
  ioncast bench list --system mysite
  ioncast bench export > measurements.csv
"""
)
def bench() -> None:
    """Fill the benchmark database and look into it."""


bench.add_command(import_files)


@bench.command("list", epilog="\b\nExample:\n  ioncast bench list --system mysite --format json")
@system_option
@format_option
@database_option
def list_curves(system: str | None, output_format: str, location: str | None) -> None:
    """List the measured configurations and their repetitions by number of I/O nodes."""
    with reading(location) as connection:
        names = _systems(connection, system)
        found = [(name, curve) for name in names for curve in curves(connection, name)]
    rows: list[dict[str, Any]] = [
        {
            "id": curve.id,
            "system": name,
            "engine": curve.engine,
            "configuration": curve.config.command_line(),
            "tasks": curve.config.tasks,
            "nodes": curve.config.nodes,
            "spatiality": curve.config.spatiality,
            "repetitions": {n: len(values) for n, values in curve.bandwidths_mib_s.items()},
        }
        for name, curve in found
    ]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        row["repetitions"] = " ".join(f"{n}:{count}" for n, count in row["repetitions"].items())
    click.echo(tabulate(rows, headers="keys", missingval="?") or "no measurements")


@bench.command("show", epilog="\b\nExample:\n  ioncast bench show 3 --system mysite")
@click.argument("configuration", metavar="ID", type=click.IntRange(1, LARGEST_ID))
@system_option
@format_option
@database_option
def show(configuration: int, system: str | None, output_format: str, location: str | None) -> None:
    """Show the curves of configuration ID (from `ioncast bench list`)."""
    with reading(location) as connection:
        names = _systems(connection, system)
        found = [
            (name, curve)
            for name in names
            for curve in curves_of_ids(connection, name, [configuration])
        ]
    if not found:
        raise UnknownNameError(
            f"no configuration {configuration}", remedy="see `ioncast bench list`"
        )
    if output_format == "json":
        click.echo(json.dumps([_curve_record(*pair) for pair in found], indent=1))
        return
    for name, curve in found:
        click.echo(f"{name}, {curve.engine}: {curve.config.command_line(launcher=True)}")
        click.echo(tabulate(_curve_rows(curve), headers="keys", floatfmt=".4g") + "\n")


def _systems(connection: Connection, system: str | None) -> list[str]:
    """The system that is asked for, or all."""
    return system_names(connection) if system is None else [require_system(connection, system)]


def _curve_rows(curve: Curve) -> list[dict[str, float]]:
    return [
        {
            "I/O nodes": n,
            "runs": len(values),
            "mean MiB/s": statistics.fmean(values),
            "median": statistics.median(values),
            "min": min(values),
            "max": max(values),
        }
        for n, values in curve.bandwidths_mib_s.items()
    ]


def _curve_record(system: str, curve: Curve) -> dict[str, Any]:
    return {
        "id": curve.id,
        "system": system,
        "engine": curve.engine,
        "command": curve.config.command_line(),
        "tasks": curve.config.tasks,
        "nodes": curve.config.nodes,
        "bandwidths_mib_s": {str(n): list(v) for n, v in curve.bandwidths_mib_s.items()},
    }


bench.add_command(coverage_command)
bench.add_command(export)
