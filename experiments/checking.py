"""Makes the published tables of a data set again, and compares them with the files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.datasets import read
from experiments.evaluation import evaluate
from experiments.provenance import PROVENANCE, read_provenance
from experiments.published import Comparison, PrintedTable, compare, publish
from experiments.published_tables import tables_of
from experiments.studies import (
    background_tables,
    change_tables,
    interference_tables,
    placement_tables,
)
from ioncast_base.text_tables import text_table

_DIFFERENCES_SHOWN = 20


@dataclass(frozen=True)
class Checked:
    """A data set whose tables were made again.

    Attributes
    ----------
    folder : Path
        Folder of the data set.
    tables : tuple of PrintedTable
        The tables as the measurements give them now.
    comparison : Comparison
        The published tables compared with these.
    """

    folder: Path
    tables: tuple[PrintedTable, ...]
    comparison: Comparison

    @property
    def choices(self) -> list[dict[str, str]]:
        """Rows of the table `choices`: errors and regret of each application and of all."""
        return [dict(row) for table in self.tables if table.name == "choices" for row in table.rows]

    def to_record(self) -> dict[str, Any]:
        """Make the object that `--format json` prints."""
        return {
            "folder": str(self.folder),
            "tables": [table.name for table in self.tables],
            "choices": self.choices,
            "comparison": asdict(self.comparison),
        }

    def to_text(self) -> str:
        """Make the text for people: errors, regret, and the first differences."""
        head = f"{self.folder}: {len(self.tables)} tables, {self.comparison.cells:,} cells"
        rows = [text_table(self.choices)] if self.choices else []
        return "\n".join([head, *rows, *self._verdict()])

    def _verdict(self) -> Iterator[str]:
        found = self.comparison
        for one in found.differences[:_DIFFERENCES_SHOWN]:
            place = ", ".join(filter(None, [one.row, one.column]))
            where = f"{one.table}.csv{': ' if place else ''}{place}"
            yield f"{where}: published: {one.published}, recomputed: {one.recomputed}"
        if len(found.differences) > _DIFFERENCES_SHOWN:
            yield f"and {len(found.differences) - _DIFFERENCES_SHOWN} more differences"
        elif not found.differences:
            yield "every published table recomputes"
        if found.rounded:
            cells = (
                "cell that a model estimates is"
                if found.rounded == 1
                else "cells that a model estimates are"
            )
            yield f"{found.rounded} {cells} off by one in the last digit"


def check_data_set(folder: Path, *, write: bool) -> Checked:
    """Make the tables of a data set again.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    write : bool
        Whether to publish the new tables, in place of those in the folder.

    Raises
    ------
    InputError
        If a file of the data set cannot be read, or the tables cannot be written.
    """
    study = read_provenance(folder / PROVENANCE).study
    if study == interference_tables.NAME:
        tables = interference_tables.interference_tables(folder)
    elif study == placement_tables.NAME:
        tables = placement_tables.placement_tables(folder)
    elif study == background_tables.NAME:
        tables = background_tables.background_tables(folder)
    elif study == change_tables.NAME:
        tables = change_tables.change_tables(folder)
    else:
        data = read(folder)
        tables = tables_of(data, evaluate(data))
    if write:
        publish(folder, tables)
    return Checked(folder, tables, compare(folder, tables))
