"""All figures of a run, in the order in which a page shows them."""

from __future__ import annotations

from collections.abc import Iterator

from ioncast.insights.figures.drawn import Document, Drawn
from ioncast.insights.figures.file_figure import file_figure
from ioncast.insights.figures.layer_figure import layer_figure
from ioncast.insights.figures.rank_figure import rank_figure
from ioncast.insights.figures.size_figure import size_figures


def figures_of(characterisation: Document, checks: Document) -> Iterator[Drawn]:
    """Draw a run from its documents of insights.

    Parameters
    ----------
    characterisation : mapping
        The tables as `ioncast characterize --format json` has them, with the most important
        `files`, `layer_times` and `ranks`.
    checks : mapping
        The findings, as `ioncast check --format json` has them.

    Yields
    ------
    Drawn
        Requests by size, time by layer, the files and the processes, as far as they are known.
    """
    yield from size_figures(characterisation)
    for found in (
        layer_figure(characterisation),
        file_figure(characterisation),
        rank_figure(characterisation, checks["findings"]),
    ):
        if found is not None:
            yield found
