"""Series of figures by their names."""

from __future__ import annotations

from typing import TypeVar

from ioncast_base.pages.figures import Figure, Line, Texts

_Series = TypeVar("_Series")


def named(figure: Figure | None, name: str, kind: type[_Series]) -> _Series:
    """The only series of a kind with a name."""
    assert figure is not None
    [found] = [each for each in figure.series if isinstance(each, kind) and each.name == name]
    return found


def lines(figure: Figure | None) -> dict[str, list[float]]:
    """The values of all lines by their names."""
    assert figure is not None
    return {each.name: list(each.values) for each in figure.series if isinstance(each, Line)}


def labels(figure: Figure) -> list[str]:
    """The names of the rows of a figure with one panel."""
    [panel] = figure.panels
    return [text for each in panel.series if isinstance(each, Texts) for text in each.texts]
