"""Results show themselves in notebooks, and their figures can be saved."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from base64 import b64decode
from pathlib import Path

import pandas as pd
import pytest

import ioncast
from ioncast_base.pages.figures import Bars, Figure, from_zero, rows

HOSTILE = "<script>alert(1)</script>"


def drawn() -> Figure:
    series = [Bars(HOSTILE, "var(--kind-0)", [0], [3.0])]
    return Figure([rows([HOSTILE], from_zero(series, "s"), series)])


def test_a_result_shows_its_sentences_table_and_figure() -> None:
    frame = pd.DataFrame({HOSTILE: [HOSTILE]})
    result = ioncast.Result(HOSTILE, frame, None, said=(HOSTILE,), draw=drawn)
    shown = result._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    image = shown.split("base64,")[1].partition('"')[0]
    assert b64decode(image).decode() == result.plot().svg
    assert repr(result).startswith(HOSTILE)


def test_a_figure_is_saved_as_a_whole_svg_in_light_colours(tmp_path: Path) -> None:
    plot = ioncast.Result(HOSTILE, pd.DataFrame(), None, draw=drawn).plot()
    place = tmp_path / "figure.svg"
    plot.save(place)
    root = ET.fromstring(place.read_text("utf-8"))  # noqa: S314 - ours
    assert root.tag.endswith("svg")
    assert not [each for each in root.iter() if each.tag.endswith("script")]
    assert "var(--" not in plot.svg
    with pytest.raises(ioncast.IoncastError):
        plot.save(tmp_path / "nowhere" / "figure.svg")


def test_a_result_without_a_figure_shows_its_table() -> None:
    result = ioncast.Result("Rows", pd.DataFrame({"a": [1]}), None)
    with pytest.raises(ioncast.IoncastError, match="no figure"):
        result.plot()
    assert "<img" not in result._repr_html_()
