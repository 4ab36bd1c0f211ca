"""All figures of a run, in the order in which a page shows them."""

from __future__ import annotations

from collections.abc import Iterator

from ioncast.insights.figures.drawn import Document, Drawn
from ioncast.insights.figures.file_figure import file_figure
from ioncast.insights.figures.layer_figure import layer_figure
from ioncast.insights.figures.rank_figure import rank_figure
from ioncast.insights.figures.size_figure import size_figures


def figures_of(characterisation: Document, checks: Document) -> Iterator[Drawn]:
    """Draw requests by size, time by layer, files and processes, as far as they are known.

    The documents are those of `ioncast characterize --format json`, with the most important
    `files`, `layer_times` and `ranks`, and of `ioncast check --format json`.
    """
    yield from size_figures(characterisation)
    for found in (
        layer_figure(characterisation),
        file_figure(characterisation),
        rank_figure(characterisation, checks["findings"]),
    ):
        if found is not None:
            yield found
