"""Figures as SVG: all places are parts of the width, so a figure fits each screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import log
from typing import NamedTuple

from markupsafe import Markup, escape

from ioncast_base.pages.figures import (
    Anchor,
    Axis,
    Band,
    Bars,
    Boxes,
    Figure,
    Line,
    Panel,
    Points,
    Series,
    Texts,
)

# Pixels of a character of a label, and beside it on the left and on the right.
_CHARACTER, _LEFT, _RIGHT = 7, 4, 6
# Pixels: the largest symbol in a legend.
_SAMPLE = 9
_FORMS = {
    "circle": "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    "ring": "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    "cross": "M-1-1L1 1M-1 1L1-1",
    "square": "M-1-1H1V1H-1z",
    "diamond": "M0-1.3L1.3 0L0 1.3L-1.3 0z",
    "triangle": "M-1-1.2H1L0 .8z",
    "stroke": "M0-1.6V1.6",
}
_UPRIGHT_LINE = Markup('<line class="grid" x1="{0:.2f}%" x2="{0:.2f}%" y2="100%"/>')
_LEVEL_LINE = Markup('<line class="grid" x2="100%" y1="{0:.2f}%" y2="{0:.2f}%"/>')
_LABEL_BELOW = Markup('<text x="{:.2f}%" y="100%" dy="1.35em" text-anchor="middle">{}</text>')
_LABEL_BESIDE = Markup('<text x="{}" y="{:.2f}%" dy="0.35em" text-anchor="end">{}</text>')
# Pixels of a picture, and of a character in its legend.
_WIDTH, _MARGIN = 1200, 16
_LEGEND_CHARACTER = 8
# Not all programs know the font that stands for "sans-serif".
_FONTS = "DejaVu Sans, Liberation Sans, Noto Sans, Arial, Helvetica, sans-serif"
_PICTURE_STYLE = (
    "text{fill:var(--muted)} .title{font-size:20px;font-weight:bold;fill:var(--text)}"
    " .name{fill:var(--text)} .grid{stroke:var(--grid)} polyline{fill:none}"
    # The drawing of a line is stretched, but not its width. A label may reach beyond its drawing.
    " polyline,polygon{vector-effect:non-scaling-stroke} .labels{overflow:visible}"
    " .bars{stroke-width:1} .mark{overflow:visible}"
)
_FILLED = {"circle", "diamond", "triangle"}


def drawing(figure: Figure, titled_by: str = "", said: str = "") -> Markup:
    """Draw a figure as HTML with SVG in it.

    Parameters
    ----------
    titled_by : str, optional
        The id of the element that names the figure, for screen readers; else `said` names it.
    """
    name = Markup('aria-label="{}"').format(said)
    if titled_by:
        name = Markup('aria-labelledby="{}"').format(titled_by)
    # Panels below each other have a common axis.
    longest = [_longest_label(panel) for panel in figure.panels]
    if not figure.is_beside:
        longest = [max(longest, default=0)] * len(longest)
    panels = [_panel(*each, name) for each in zip(figure.panels, longest, strict=True)]
    return Markup('<div class="plot">{}<div class="panels{}">{}</div></div>').format(
        _legend(figure.series) if figure.has_legend else "",
        " beside" if figure.is_beside else "",
        _joined(panels),
    )


def picture(figure: Figure, title: str) -> str:
    """Draw a figure whose panels are below each other as one SVG, in light colours."""
    left = max(map(_longest_label, figure.panels), default=0) * _CHARACTER + _LEFT
    parts = [_picture_text(_MARGIN, 26, title, "title")]
    x, y = _MARGIN, 50
    for name, series in _named(figure.series).items() if figure.has_legend else ():
        width = 34 + _LEGEND_CHARACTER * len(name)
        if x + width > _WIDTH:
            x, y = _MARGIN, y + 20
        sample = Markup('<g transform="translate({} {})">{}</g>').format(
            x + 9, y - 4, _sample(series)
        )
        parts += [sample, _picture_text(x + 24, y, name, "name")]
        x += width
    for panel in figure.panels:
        upright, level = _axes(panel)
        parts.append(_picture_text(_MARGIN, y + 30, upright.title, "axis"))
        y += 42
        begin = _MARGIN + left + _RIGHT
        parts += [
            Markup('<svg x="{}" y="{}" width="1" height="{}" overflow="visible">{}</svg>').format(
                _MARGIN, y, panel.height, _labels(panel, upright, left)
            ),
            Markup(
                '<svg x="{}" y="{}" width="{}" height="{}" overflow="visible">{}{}</svg>'
            ).format(
                begin,
                y,
                _WIDTH - begin - 2 * _MARGIN,
                panel.height,
                _joined(_grid(panel)),
                _joined(shape for series in panel.series for shape in _shapes(panel, series)),
            ),
        ]
        y += panel.height + 18
        if level.title:
            parts.append(_picture_text(begin, y + 20, level.title, "axis"))
            y += 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y + _MARGIN}"'
        f' width="{_WIDTH}" height="{y + _MARGIN}" font-family="{_FONTS}" font-size="13">'
        f"<style>{_PICTURE_STYLE}</style>"
        f'<rect width="100%" height="100%" fill="var(--surface)"/>{_joined(parts)}</svg>\n'
    )


def _picture_text(x: int, y: int, text: str, kind: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, x, y, text)


class _Place(NamedTuple):
    """A place in a panel, in percent from the left and from the top."""

    x: float
    y: float


def _place(panel: Panel, at: float, value: float) -> _Place:
    across, along = _percent(panel.across, at), _percent(panel.values, value)
    return _Place(along, across) if panel.is_lying else _Place(across, 100 - along)


def _rectangle(panel: Panel, at: float, width: float, start: float, end: float) -> Markup:
    """Write the corner and the size of a rectangle as attributes."""
    x0, y0 = _place(panel, at - width / 2, start)
    x1, y1 = _place(panel, at + width / 2, end)
    # A reader may stretch a figure to 64 times its width. `Markup.format` is slow.
    return Markup(  # noqa: S704 - numbers
        f'x="{min(x0, x1):.3f}%" y="{min(y0, y1):.2f}%" width="{abs(x1 - x0):.3f}%"'
        f' height="{abs(y1 - y0):.2f}%"'
    )


def _axes(panel: Panel) -> tuple[Axis, Axis]:
    """The upright axis and the level one."""
    return (panel.across, panel.values) if panel.is_lying else (panel.values, panel.across)


def _longest_label(panel: Panel) -> int:
    return max((len(text) for text in _axes(panel)[0].ticks.values()), default=0)


def _panel(panel: Panel, longest: int, name: Markup) -> Markup:
    """Draw a panel, with room for a label of so many characters on the left."""
    upright, level = _axes(panel)
    return Markup(
        '<div class="panel">{}<div class="drawn">{}'
        '<svg class="area{}" role="img" {} height="{}"><g aria-hidden="true">{}{}</g></svg></div>'
        "{}</div>"
    ).format(
        Markup('<p class="axis">{}</p>').format(upright.title) if upright.title else "",
        _labels(panel, upright, longest * _CHARACTER + _LEFT) if longest else "",
        " labelled" if level.ticks else "",
        name,
        panel.height,
        _joined(_grid(panel)),
        _joined(shape for series in panel.series for shape in _shapes(panel, series)),
        Markup('<p class="axis below">{}</p>').format(level.title) if level.title else "",
    )


def _labels(panel: Panel, axis: Axis, end: int) -> Markup:
    """Write the labels of the upright axis, which end at a pixel, beside the drawing."""
    return Markup('<svg class="labels" width="{}" height="{}" aria-hidden="true">{}</svg>').format(
        end + _RIGHT,
        panel.height,
        _joined(
            _LABEL_BESIDE.format(end, _from_top(panel, axis, tick), label)
            for tick, label in axis.ticks.items()
        ),
    )


def _grid(panel: Panel) -> Iterator[Markup]:
    """Draw the lines of the axes, and the labels below."""
    for axis, is_level in ((panel.across, not panel.is_lying), (panel.values, panel.is_lying)):
        for tick, label in axis.ticks.items():
            if not is_level:
                if axis.has_grid:
                    yield _LEVEL_LINE.format(_from_top(panel, axis, tick))
                continue
            if axis.has_grid:
                yield _UPRIGHT_LINE.format(_percent(axis, tick))
            yield _LABEL_BELOW.format(_percent(axis, tick), label)


def _from_top(panel: Panel, axis: Axis, value: float) -> float:
    """The place of a value on the upright axis, in percent from the top."""
    part = _percent(axis, value)
    return part if panel.is_lying else 100 - part


def _shapes(panel: Panel, series: Series) -> Iterator[Markup]:
    if isinstance(series, Bars):
        yield from _bars(panel, series)
    elif isinstance(series, Line):
        yield _line(panel, series)
    elif isinstance(series, Band):
        yield _band(panel, series)
    elif isinstance(series, Points):
        yield from _points(panel, series)
    elif isinstance(series, Boxes):
        yield from _boxes(panel, series)
    else:
        for at, value, text in zip(series.at, series.values, series.texts, strict=True):
            place = _place(panel, at, value)
            yield _text(place, text, series.anchor, series.right, series.up)


def _bars(panel: Panel, bars: Bars) -> Iterator[Markup]:
    starts = bars.starts or [panel.values.low] * len(bars.ends)
    widths = [bars.width] * len(bars.ends) if isinstance(bars.width, int | float) else bars.width
    rows = list(zip(bars.at, starts, bars.ends, widths, strict=True))
    kinds = [f' class="{escape(kind)}"' for kind in bars.kinds] or [""] * len(rows)
    shapes = [
        f"<rect{kinds[number]} {_rectangle(panel, at, width, start, end)}>"
        f"{_hint(bars.hints, number)}</rect>"
        for number, (at, start, end, width) in enumerate(rows)
        if end is not None
    ]
    yield Markup('<g class="bars" fill="{0}" stroke="{0}">{1}</g>').format(
        bars.colour,
        Markup("".join(shapes)),  # noqa: S704 - escaped
    )
    for number, (at, _, end, _) in enumerate(rows):
        if end is None:
            continue
        if bars.labels:
            place, label = _place(panel, at, end), bars.labels[number]
            if panel.is_lying:
                yield _text(place, label, "start", right=4, up=-4)
            else:
                yield _text(place, label, "middle", up=4)


def _line(panel: Panel, line: Line) -> Markup:
    dashes = Markup(' stroke-dasharray="4 3"') if line.is_dashed else ""
    return _stretched(
        Markup('<polyline points="{}" stroke="{}" stroke-width="{}"{}/>').format(
            _corners(panel, line.at, line.values), line.colour, line.width, dashes
        )
    )


def _band(panel: Panel, band: Band) -> Markup:
    corners = (
        *_corners(panel, band.at, band.highs).split(),
        *reversed(_corners(panel, band.at, band.lows).split()),
    )
    return _stretched(
        Markup('<polygon points="{}" fill="{}"/>').format(" ".join(corners), band.colour)
    )


def _stretched(shape: Markup) -> Markup:
    """Stretch a shape to its panel: unlike places, corners of a line cannot be in percent."""
    return Markup(
        '<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">{}</svg>'
    ).format(shape)


def _corners(panel: Panel, at: Sequence[float], values: Sequence[float]) -> str:
    places = [_place(panel, *pair) for pair in zip(at, values, strict=True)]
    return " ".join(f"{place.x:.2f},{place.y:.2f}" for place in places)


def _points(panel: Panel, points: Points) -> Iterator[Markup]:
    for number, (at, value) in enumerate(zip(points.at, points.values, strict=True)):
        if value is not None:
            yield _mark(_place(panel, at, value), points, _hint(points.hints, number))


def _mark(place: _Place, points: Points, hint: Markup) -> Markup:
    return Markup('<svg x="{:.2f}%" y="{:.2f}%" class="mark">{}</svg>').format(
        *place, _symbol(points, hint)
    )


def _symbol(points: Points, hint: Markup) -> Markup:
    """Draw a symbol around the corner of its element."""
    return Markup(
        '<path d="{}" transform="scale({:g})" stroke-width="{:g}" fill="{}" stroke="{}">{}</path>'
    ).format(
        _FORMS[points.symbol],
        points.size / 2,
        # The style sheet has the width in pixels, but not all programs know such a width.
        4 / points.size,
        points.colour if points.symbol in _FILLED else "transparent",
        points.colour,
        hint,
    )


def _boxes(panel: Panel, boxes: Boxes) -> Iterator[Markup]:
    for at, box in zip(boxes.at, boxes.boxes, strict=True):
        for start, end in ((box.lower, box.q1), (box.q3, box.upper)):
            yield _stroke(panel, boxes.colour, (at, start), (at, end))
        yield Markup('<rect fill="{}" fill-opacity="{}" stroke="{}" stroke-width="2" {}/>').format(
            boxes.colour,
            0.35 if boxes.is_filled else 0,
            boxes.colour,
            _rectangle(panel, at, boxes.width, box.q1, box.q3),
        )
        half = boxes.width / 2
        yield _stroke(panel, boxes.colour, (at - half, box.median), (at + half, box.median))


def _stroke(
    panel: Panel, colour: str, start: tuple[float, float], end: tuple[float, float]
) -> Markup:
    return Markup(
        '<line x1="{:.2f}%" y1="{:.2f}%" x2="{:.2f}%" y2="{:.2f}%" stroke="{}" stroke-width="2"/>'
    ).format(*_place(panel, *start), *_place(panel, *end), colour)


def _text(place: _Place, text: str, anchor: Anchor, right: int = 0, up: int = 0) -> Markup:
    return Markup(
        '<text x="{:.2f}%" y="{:.2f}%" dx="{}" dy="{}" text-anchor="{}">{}</text>'
    ).format(*place, right, -up, anchor, text)


def _hint(hints: Sequence[str], number: int) -> Markup:
    if not hints:
        return Markup()
    return Markup(f"<title>{escape(hints[number])}</title>")  # noqa: S704 - escaped


def _named(all_series: Iterable[Series]) -> dict[str, Series]:
    """Find the first series of each name."""
    named: dict[str, Series] = {}
    for series in all_series:
        if series.name:
            named.setdefault(series.name, series)
    return named


def _legend(all_series: Iterable[Series]) -> Markup:
    """List each name once, with a sample of what it names."""
    entries = [
        Markup(
            '<li><svg width="18" height="12" viewBox="-9 -6 18 12" aria-hidden="true">{}</svg>'
            "{}</li>"
        ).format(_sample(series), name)
        for name, series in _named(all_series).items()
    ]
    return Markup('<ul class="legend" role="list">{}</ul>').format(_joined(entries))


def _sample(series: Series) -> Markup:
    if isinstance(series, Points):
        return _symbol(replace(series, size=min(series.size, _SAMPLE)), Markup())
    if isinstance(series, Line):
        dashes = Markup(' stroke-dasharray="4 3"') if series.is_dashed else ""
        return Markup('<path d="M-9 0H9" stroke="{}" stroke-width="{}"{}/>').format(
            series.colour, series.width, dashes
        )
    assert not isinstance(series, Texts)  # noqa: S101 - it has no name
    opacity = (0.35 if series.is_filled else 0) if isinstance(series, Boxes) else 1
    return Markup(
        '<rect x="-7" y="-5" width="14" height="10" fill="{0}" fill-opacity="{1}" stroke="{0}"/>'
    ).format(series.colour, opacity)


def _percent(axis: Axis, value: float) -> float:
    """The place of a value on its axis; values beyond its ends are at the ends."""
    if axis.is_log and value <= 0:
        return 0.0
    low, high = axis.low, axis.high
    if axis.is_log:
        low, high, value = log(low), log(high), log(value)
    return 100 * min(max(0.0, (value - low) / (high - low)), 1.0)


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup().join(parts)
