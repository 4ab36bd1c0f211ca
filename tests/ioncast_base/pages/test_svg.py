"""Drawings are well-formed, at the places of their numbers, and their texts are no HTML."""

from __future__ import annotations

from math import inf, nan
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.pages.figures import (
    Band,
    Bars,
    Box,
    Boxes,
    Figure,
    Line,
    Panel,
    Points,
    Series,
    Texts,
    categories,
    logarithmic,
    numbers,
)
from ioncast_base.pages.svg import drawing

EVIL = "<script>\"'&"


def parsed(*series: Series, lying: bool = False, has_legend: bool = True) -> ET.Element:
    panel = Panel(categories(["a", "b"]), numbers(0, 10, "MiB/s"), series, is_lying=lying)
    return tree(drawing(Figure([panel], has_legend=has_legend), said="figure"))


def tree(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - ours


def area(*series: Series, lying: bool = False) -> ET.Element:
    [found] = [each for each in parsed(*series, lying=lying).iter("svg") if "role" in each.attrib]
    return found


def places(element: ET.Element, *names: str) -> list[float]:
    return [float(element.attrib[name].removesuffix("%")) for name in names]


def test_an_upright_bar_grows_from_below_and_a_lying_one_from_the_left() -> None:
    bars = Bars("", "red", [1], [5], width=0.5)
    [upright] = area(bars).iter("rect")
    assert places(upright, "x", "y", "width", "height") == [62.5, 50, 25, 50]
    [lying] = area(bars, lying=True).iter("rect")
    assert places(lying, "x", "y", "width", "height") == [0, 62.5, 50, 25]


def test_a_missing_value_has_no_bar_and_no_point() -> None:
    assert not list(area(Bars("", "red", [0], [None])).iter("rect"))
    assert not list(area(Points("", "red", [0], [None])).iter("path"))


def test_a_line_and_a_band_go_through_their_values() -> None:
    shapes = area(Line("", "red", [0, 1], [0, 10]), Band("", "red", [0, 1], [0, 0], [5, 10]))
    [line], [band] = shapes.iter("polyline"), shapes.iter("polygon")
    assert line.attrib["points"] == "25.00,100.00 75.00,0.00"
    assert band.attrib["points"] == "25.00,50.00 75.00,0.00 75.00,100.00 25.00,100.00"


def test_a_point_has_its_hint() -> None:
    [mark] = area(Points("", "red", [0], [5], hints=["4 I/O nodes"])).iter("title")
    assert mark.text == "4 I/O nodes"


def test_a_box_has_its_quartiles_and_whiskers() -> None:
    shapes = area(Boxes("", "red", [0], [Box(2, 4, 6, 1, 9)]))
    [box] = shapes.iter("rect")
    assert places(box, "y", "height") == [40, 40]
    lines = [each for each in shapes.iter("line") if "stroke" in each.attrib]
    assert sorted(sorted(places(each, "y1", "y2")) for each in lines) == [
        [10, 40],
        [60, 60],
        [80, 90],
    ]


def test_a_logarithmic_axis_has_equal_factors_at_equal_distances() -> None:
    bars = Bars("", "red", [0, 1], [10, 100])
    panel = Panel(categories(["a", "b"]), logarithmic(1, 1000, ""), [bars], is_lying=True)
    drawn = tree(drawing(Figure([panel]), said="a"))
    widths = [places(bar, "width")[0] for bar in drawn.iter("rect")]
    assert widths == pytest.approx([100 / 3, 200 / 3], abs=0.01)


def test_the_legend_names_each_series_once() -> None:
    series = [
        Line("mean", "red", [0], [1]),
        Points("", "red", [0], [1]),
        Points("runs", "blue", [0], [1]),
    ]
    found = parsed(*series, Line("mean", "red", [1], [2]))
    assert ["".join(entry.itertext()) for entry in found.iter("li")] == ["mean", "runs"]
    assert not list(parsed(*series, has_legend=False).iter("li"))


def test_texts_are_no_html() -> None:
    series = [
        Bars(EVIL, EVIL, [0], [1], hints=[EVIL], labels=[EVIL]),
        Texts([0], [1], [EVIL]),
        Points(EVIL, EVIL, [0], [1], hints=[EVIL]),
    ]
    panel = Panel(categories([EVIL]), numbers(0, 1, EVIL), series)
    drawn = drawing(Figure([panel]), said=EVIL)
    assert "<script" not in drawn
    assert tree(drawn).attrib["class"] == "plot"


@given(st.sampled_from([nan, inf, -inf, 1e308, -1e308, 0.0]), st.booleans())
def test_any_number_has_a_place_in_the_panel(value: float, lying: bool) -> None:
    shapes = area(Points("", "red", [0], [value]), Bars("", "red", [0], [value]), lying=lying)
    [mark] = [each for each in shapes.iter("svg") if each.attrib.get("class") == "mark"]
    assert all(0 <= place <= 100 for place in places(mark, "x", "y"))


def test_a_screen_reader_gets_the_name_of_the_figure() -> None:
    assert area().attrib["aria-label"] == "figure"
    panel = Panel(categories(["a"]), numbers(0, 1, ""), [])
    assert 'aria-labelledby="title"' in drawing(Figure([panel]), "title")
