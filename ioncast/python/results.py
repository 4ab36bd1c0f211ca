"""Results of the Python interface: a table, a figure, and the value that they show."""

from __future__ import annotations

import warnings
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from os import PathLike, fspath
from typing import Any, ParamSpec

import pandas as pd
from markupsafe import Markup

from ioncast_base.errors import InputError, IoncastError, Remedy, as_field, missing_package
from ioncast_base.files import write_file
from ioncast_base.pages.figures import Figure
from ioncast_base.pages.rendering import in_light_colours
from ioncast_base.pages.svg import picture

_P = ParamSpec("_P")

_IMAGE = Markup('<img alt="{}" style="max-width: 100%" src="data:image/svg+xml;base64,{}">')
_PARAGRAPH = Markup("<p>{}</p>")


@dataclass(frozen=True)
class Plot:
    """A figure, which a notebook shows.

    Attributes
    ----------
    title : str
        The title above it.
    svg : str
        The picture, an SVG in light colours.
    """

    title: str
    svg: str = field(repr=False)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the SVG to a file; one that cannot be written is an IoncastError."""
        write_file(fspath(path), self.svg)

    def _repr_html_(self) -> str:
        # As an image, its style sheet cannot change the rest of the notebook.
        return _IMAGE.format(self.title, b64encode(self.svg.encode()).decode())


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of a function of the Python interface.

    Attributes
    ----------
    title : str
        A title for the result and its figure.
    frame : DataFrame
        The table. The names of its columns have units.
    details : object
        The value that the table shows, such as a `predictor.curve.prediction.Prediction`, whose
        `decision` is the choice of I/O nodes. docs/python.md has a list.
    said : tuple of str
        Sentences about the whole, such as the decision.
    warnings : tuple of str
        Sentences about limits of the logs and of the result. Each is also a Python warning.
    draw : callable or str
        Draws the figure, or the reason why there is no figure.
    """

    title: str
    frame: pd.DataFrame
    details: Any
    said: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    draw: Callable[[], Figure] | str = "this result has no figure"

    def plot(self) -> Plot:
        """Draw the figure of the command with the same name.

        Raises
        ------
        IoncastError
            When there is no figure, or nothing to draw.
        """
        if isinstance(self.draw, str):
            raise InputError(self.draw, remedy="use `frame`")
        return Plot(self.title, in_light_colours(picture(self.draw(), self.title)))

    def __repr__(self) -> str:
        return "\n".join([self.title, *self.said, repr(self.frame)])

    def _repr_html_(self) -> str:
        # Pandas writes no HTML if the user told it so.
        table = self.frame._repr_html_() or self.frame.to_html()  # type: ignore[operator]
        said = Markup().join(map(_PARAGRAPH.format, self.said))
        try:
            drawn = self.plot()._repr_html_()
        except IoncastError:
            drawn = ""
        return f"{said}{table}{drawn}"


def below_each_other(named: Iterable[tuple[str, Figure]]) -> Figure:
    """Join figures to one, and name their panels; a name is in the legend once."""
    panels, has_legend = [], False
    for name, figure in named:
        has_legend |= figure.has_legend
        for panel in figure.panels:
            # The title of the upright axis stands above a panel.
            upright = panel.across if panel.is_lying else panel.values
            title = ": ".join(filter(None, (name, upright.title)))
            titled = replace(upright, title=title)
            panels.append(
                replace(panel, across=titled) if panel.is_lying else replace(panel, values=titled)
            )
    if not panels:
        raise InputError("there is nothing to draw")
    return Figure(panels, has_legend=has_legend)


def interface(function: Callable[_P, Result]) -> Callable[_P, Result]:
    """Give each warning of the result to Python, and make each failure an IoncastError.

    The advice of errors spells parameters as Python does: `io_nodes`, not `--io-nodes`.
    """

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> Result:
        try:
            result = function(*args, **kwargs)
        except IoncastError as error:
            if isinstance(error.remedy, Remedy):
                error.remedy = error.remedy.in_words(as_field)
            raise
        except ModuleNotFoundError as error:
            raise (missing_package(error, f"ioncast.{function.__name__}") or error) from error
        for sentence in result.warnings:
            warnings.warn(sentence, stacklevel=2)
        return result

    return call


def in_words(name: str, sentences: Iterable[str]) -> Iterator[str]:
    """Begin sentences with the name of their run, if there is one."""
    for sentence in sentences:
        yield f"{name}: {sentence}" if name else sentence
