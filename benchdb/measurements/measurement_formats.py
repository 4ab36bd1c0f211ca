"""Measured curves and their coverage as text and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from benchdb.measurements.cells import OUTLIER_RULE
from benchdb.measurements.coverage import Cell, CoverageRow, blocks, summarise
from benchdb.measurements.curves import Curve
from benchdb.store.system_changes import SystemChange
from ioncast_base.text_tables import text_table
from ioncast_base.wording import in_digits

# A curve with the name of its system.
SystemCurve = tuple[str, Curve]
# A curve of measurements that no longer count, with the change of its system.
OlderCurve = tuple[SystemChange, Curve]


def list_to_json(
    curves: Sequence[SystemCurve], older: Sequence[OlderCurve] = ()
) -> list[dict[str, Any]]:
    """A list of curves for programs: configurations with their numbers of repetitions."""
    rows = [row | {"before_change": None} for row in _listed(curves)]
    return rows + [
        row | {"before_change": _change_record(change)}
        for change, curve in older
        for row in _listed([(change.system, curve)])
    ]


def _change_record(change: SystemChange) -> dict[str, Any]:
    return {"since": change.since, "why": change.why}


def _listed(curves: Sequence[SystemCurve]) -> list[dict[str, Any]]:
    return [
        {
            "id": curve.id,
            "system": system,
            "engine": curve.engine,
            "configuration": curve.config.command_line(),
            "tasks": curve.config.tasks,
            "nodes": curve.config.nodes,
            "fsync": curve.config.fsync,
            "spatiality": curve.config.spatiality,
            "repetitions": {n: len(values) for n, values in curve.bandwidths_mib_s.items()},
        }
        for system, curve in curves
    ]


def list_to_text(curves: Sequence[SystemCurve], older: Sequence[OlderCurve] = ()) -> str:
    """A list of curves for people: a table with a row for each configuration.

    A table for each change follows, with the measurements that no longer count because of it.
    """
    return "\n\n".join([_list_text(curves) or "no measurements", *_older_texts(older, _list_text)])


def _list_text(curves: Sequence[SystemCurve]) -> str:
    rows = _listed(curves)
    for row in rows:
        row["repetitions"] = " ".join(f"{n}:{count}" for n, count in row["repetitions"].items())
    return text_table(
        rows,
        right=["id", "tasks", "nodes"],
        optional=["repetitions", "system", "engine", "tasks", "nodes", "fsync", "spatiality"],
        missing="?",
    )


def _older_texts(
    older: Sequence[OlderCurve], text: Callable[[Sequence[SystemCurve]], str]
) -> Iterator[str]:
    for change, group in groupby(older, key=itemgetter(0)):
        shown = text([(change.system, curve) for _, curve in group])
        yield f"{change.system}, {change.mark} (these measurements no longer count)\n{shown}"


def curves_to_json(
    curves: Sequence[SystemCurve], older: Sequence[OlderCurve] = ()
) -> list[dict[str, Any]]:
    """Curves with all their bandwidths for programs."""
    rows = [row | {"before_change": None} for row in _curve_records(curves)]
    return rows + [
        row | {"before_change": _change_record(change)}
        for change, curve in older
        for row in _curve_records([(change.system, curve)])
    ]


def _curve_records(curves: Sequence[SystemCurve]) -> list[dict[str, Any]]:
    return [
        {
            "id": curve.id,
            "system": system,
            "engine": curve.engine,
            "command": curve.config.command_line(),
            "tasks": curve.config.tasks,
            "nodes": curve.config.nodes,
            "fsync": curve.config.fsync,
            "bandwidths_mib_s": {str(n): list(v) for n, v in curve.bandwidths_mib_s.items()},
        }
        for system, curve in curves
    ]


def curves_to_text(curves: Sequence[SystemCurve], older: Sequence[OlderCurve] = ()) -> str:
    """Curves for people: a table for each, with a row for each number of I/O nodes."""
    shown = _curves_text(curves)
    return "\n".join([*([shown] if shown else []), *_older_texts(older, _curves_text)])


def _curves_text(curves: Sequence[SystemCurve]) -> str:
    return "\n".join(_curve_text(system, curve) for system, curve in curves)


def coverage_to_json(rows: Sequence[CoverageRow], stale_after_s: float) -> dict[str, Any]:
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
                "fsync": row.config.fsync,
                "cells": [_cell_record(cell) for cell in row.cells],
            }
            for row in rows
        ],
    }


def coverage_to_text(rows: Sequence[CoverageRow], stale_after: str) -> str:
    """The coverage for people: a table for each system and engine, then a legend."""
    if not rows:
        return "no measurements"
    legend = (
        "cells: repetitions ±coefficient of variation, - if missing\n"
        f"*: outliers, by {OUTLIER_RULE}\n"
        f"b: bimodal; s: stale, the newest older than {stale_after}"
    )
    if any(cell.missing and cell.before_change for row in rows for cell in row.cells):
        legend += "\nbefore: measurements from before the newest change of the system do not count"
    return "\n\n".join([*(_block_text(*block) for block in blocks(rows)), legend])


def _curve_text(system: str, curve: Curve) -> str:
    rows = [
        {
            "I/O nodes": n,
            "runs": len(values),
            "mean MiB/s": in_digits(statistics.fmean(values), 4),
            "median": in_digits(statistics.median(values), 4),
            "min": in_digits(min(values), 4),
            "max": in_digits(max(values), 4),
        }
        for n, values in curve.bandwidths_mib_s.items()
    ]
    table = text_table(rows, right=rows[0])
    unsaid = "" if curve.config.fsync else ", fsync not known"
    line = curve.config.command_line(launcher=True)
    return f"{system}, {curve.engine}: {line}{unsaid}\n{table}\n"


def _block_text(system: str, engine: str, rows: Sequence[CoverageRow]) -> str:
    lines = [
        {
            "id": row.id,
            "configuration": row.config.command_line(launcher=True),
            "nodes": row.config.nodes,
            "fsync": row.config.fsync,
            **{str(cell.io_nodes): _cell_text(cell) for cell in row.cells},
        }
        for row in rows
    ]
    table = text_table(lines, optional=["nodes", "fsync"], missing="?")
    return f"{system}, {engine}, by number of I/O nodes:\n{table}\n{summarise(rows)}"


def _cell_text(cell: Cell) -> str:
    if cell.missing:
        return f"- ({cell.before_change} before)" if cell.before_change else "-"
    spread = "" if cell.spread is None else f" ±{cell.spread:.0%}"
    return f"{cell.repetitions}{spread} {cell.marks}".rstrip()


def _cell_record(cell: Cell) -> dict[str, Any]:
    return {
        **vars(cell),
        "missing": cell.missing,
        "newest": cell.newest.isoformat() if cell.newest else None,
    }
