"""Rows of texts for people, from which aligned text and HTML pages are made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ioncast.insights.comparison.comparing import ComparedTable, ComparedValue, beside, present
from ioncast.insights.comparison.in_words import DIFFERS, layer_text, share_text, value_text
from ioncast.insights.tables.characterising import Characterisation, EachFile
from ioncast.insights.tables.times_table import IN_CALLS
from ioncast.insights.tables.values import Characteristic, Table
from ioncast_base.visible_text import visible

Texts = dict[str, str]
Place = tuple[str, str, str]
"""A table, a layer and a characteristic."""

NOTHING = "–"


class Marked(str):
    """A text about a value that differs, which begins with the sign for that."""

    __slots__ = ()


def marked(text: str) -> Marked:
    """Mark the text of a value that differs."""
    return Marked(f"{DIFFERS} {text}")


def shown_rows(table: ComparedTable, names: Sequence[str]) -> Iterator[Texts]:
    """Yield the rows of a table that people should see, with a column for each run."""
    rows = [(present(cells)[0], cells) for cells in table.rows]
    shown = [
        (row, cells)
        for row, cells in rows
        if row.key not in table.rare or any(cell.row and cell.row.value for cell in cells)
    ]
    above = None
    for row, cells in shown:
        name = "" if row.layer == above else layer_text(row.layer)
        above = row.layer
        yield {"layer": name, "characteristic": row.characteristic, **_columns(cells, names)}


def _columns(cells: Sequence[ComparedValue], names: Sequence[str]) -> Texts:
    if len(cells) > 1:
        return {name: _cell_text(cell) for name, cell in zip(names, cells, strict=True)}
    [row] = present(cells)
    note = row.note if row.value is not None else ""
    share = share_text(row)
    of = row.of if share else ""
    return {"value": value_text(row), "share": share, "of": of, "note": note}


def _cell_text(cell: ComparedValue) -> str:
    if cell.row is None:
        text = NOTHING
    else:
        share = share_text(cell.row)
        text = f"{value_text(cell.row)} ({share})" if share else value_text(cell.row)
    return marked(text) if cell.differs else text


def overview_rows(runs: Sequence[Characterisation]) -> Iterator[Texts]:
    """Yield a row for each run, with its most important characteristics."""
    for run in runs:
        yield {
            "log": visible(run.log),
            "processes": f"{run.job['processes']:,}",
            **_texts(_found(run.tables, 0), _OVERVIEW),
        }


def file_rows(
    files: EachFile, most: int, first: EachFile | None, tolerance: float
) -> Iterator[Texts]:
    """Yield a row for each of the files with most bytes.

    Values are marked that differ from those of the same path in the files of the first run.
    """
    for path, group in islice(files.paths_and_groups(), most):
        found = _found(files.tables, group)
        before = (
            _found(first.tables, first.group_of[path])
            if first is not None and path in first.group_of
            else found
        )
        layer = str(found["files", "", "layer"].value)
        its_own = {head: (table, layer, name) for head, (table, name) in _OF_ITS_LAYER.items()}
        yield {
            "file": visible(path),
            "layer": layer_text(layer),
            **{
                head: _cell_text(beside(before.get(place), found.get(place), tolerance))
                for head, place in (_OF_FILE | its_own).items()
            },
        }


_OVERVIEW: dict[str, Place] = {
    "run time": ("layers", "", "run time"),
    "files": ("files", "", "files"),
    "read": ("files", "", "bytes read"),
    "written": ("files", "", "bytes written"),
    **{
        f"{layer_text(layer)} {name}": place
        for layer in ("POSIX", "MPIIO", "STDIO")
        for name, place in (
            ("reads", ("layers", layer, "reads")),
            ("writes", ("layers", layer, "writes")),
            ("time", ("time", layer, IN_CALLS)),
        )
    },
}
_OF_FILE: dict[str, Place] = {
    "access": ("files", "", "access"),
    "processes": ("files", "", "processes"),
    "read": ("files", "", "bytes read"),
    "written": ("files", "", "bytes written"),
    "size": ("files", "", "size"),
    "slowest rank": ("files", "", "slowest rank"),
    "its time": ("files", "", "slowest rank's time"),
}
# At the file's highest layer.
_OF_ITS_LAYER = {
    "reads": ("layers", "reads"),
    "writes": ("layers", "writes"),
    "time per process": ("time", IN_CALLS),
}


def _found(tables: Sequence[Table], group: int) -> dict[Place, Characteristic]:
    return {(table.name, *row.key): row for table in tables for row in table.rows(group)}


def _texts(found: Mapping[Place, Characteristic], places: Mapping[str, Place]) -> Texts:
    return {
        head: value_text(found[place]) if place in found else NOTHING
        for head, place in places.items()
    }
