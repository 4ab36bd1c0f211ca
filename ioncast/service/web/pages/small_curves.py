"""Small curves of benchmarks, drawn on the server as SVG, so that they need no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchdb.measurements.coverage import Cell, CoverageRow
from ioncast_base.wording import bandwidth, each_in_words, in_words

# Pixels: the size of a drawing, and the space around the curve for its marks.
WIDTH, HEIGHT = 120, 36
_SPACE = 5.0


@dataclass(frozen=True)
class DrawnCell:
    """A measured cell in the drawing: its place in pixels, and whether it is the best."""

    x: float
    y: float
    is_best: bool


@dataclass(frozen=True)
class SmallCurve:
    """The curve of a configuration beside its cells.

    Attributes
    ----------
    best : Cell or None
        The cell with the highest mean bandwidth, of equal ones the one with fewest I/O nodes;
        None without measurements.
    said : str
        The drawing in words.
    """

    row: CoverageRow
    best: Cell | None
    marks: tuple[DrawnCell, ...]
    line: str
    said: str


def small_curve(row: CoverageRow) -> SmallCurve:
    """Draw the mean bandwidths of a configuration by number of I/O nodes, from 0 upwards."""
    best = max(row.cells, key=lambda cell: (cell.mean_mib_s or 0.0, -cell.io_nodes), default=None)
    if best is None or not best.mean_mib_s:
        return SmallCurve(row, None, (), "", "not measured")
    step = (WIDTH - 2 * _SPACE) / max(len(row.cells) - 1, 1)
    marks = tuple(
        DrawnCell(
            x=round(_SPACE + step * place, 1),
            y=round(HEIGHT - _SPACE - (HEIGHT - 2 * _SPACE) * cell.mean_mib_s / best.mean_mib_s, 1),
            is_best=cell is best,
        )
        for place, cell in enumerate(row.cells)
        if cell.mean_mib_s is not None
    )
    return SmallCurve(
        row=row,
        best=best,
        marks=marks,
        line=" ".join(f"{mark.x:g},{mark.y:g}" for mark in marks),
        said=_in_words(row.cells, best),
    )


def _in_words(cells: Sequence[Cell], best: Cell) -> str:
    measured = [cell for cell in cells if cell.mean_mib_s is not None]
    means = ", ".join(bandwidth(cell.mean_mib_s) for cell in measured if cell.mean_mib_s)
    numbers = each_in_words([cell.io_nodes for cell in measured])
    return f"With {numbers}: {means}. Best: {in_words(best.io_nodes)}."
