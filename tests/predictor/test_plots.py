from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from benchdb.curves import Curve
from ioncast_errors import InputError
from predictor.plots import curve_figure, write_html
from predictor.prediction import Prediction, predict
from summario.phases import Phase

MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


@pytest.fixture
def prediction(a_phase: MakePhase, a_curve: MakeCurve) -> Prediction:
    curve = a_curve({0: (31.25,), 4: (62.125,), 8: (47.875,)})
    return predict([a_phase()], [curve], system="here", nodes=8)


def test_the_page_needs_no_network(prediction: Prediction, tmp_path: Path) -> None:
    write_html(prediction, tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)
    assert tags
    assert not [tag for tag in tags if re.search(r"\b(?:src|href)\s*=", tag)]


def test_the_page_holds_the_numbers(prediction: Prediction, tmp_path: Path) -> None:
    write_html(prediction, tmp_path / "c.html", {0: (33.5,), 8: (44.0625, 45.0625)})
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    predicted = [str(point.bandwidth_mib_s.mean) for point in prediction.curve]
    for number in (*predicted, "33.5", "44.0625", "45.0625"):
        assert number in page
    assert "here" in page


def test_the_band_goes_from_p10_to_p90(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    curve = a_curve({0: (10, 20, 30), 1: (40, 50, 60)})
    found = predict([a_phase()], [curve], system="here", nodes=8)
    band, mean, *_ = curve_figure(found).data
    assert sorted(zip(band.x, band.y, strict=True)) == [
        ("0", 10),
        ("0", 30),
        ("1", 40),
        ("1", 60),
    ]
    assert list(mean.x) == ["0", "1"]
    assert list(mean.y) == [p.bandwidth_mib_s.mean for p in found.curve]
    assert mean.marker.size[1] > mean.marker.size[0]


def test_an_empty_prediction_can_be_drawn(tmp_path: Path) -> None:
    write_html(predict([], [], system="here"), tmp_path / "curve.html")
    assert (tmp_path / "curve.html").stat().st_size > 0


def test_names_cannot_break_the_page(
    a_phase: MakePhase, a_curve: MakeCurve, tmp_path: Path
) -> None:
    evil = "</script><script>alert(1)</script>"
    found = predict([a_phase(job=evil)], [a_curve()], system="<img src=x onerror=alert(1)>")
    write_html(found, tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("place", ["missing/curve.html", "", "x" * 300 + ".html"])
def test_a_place_that_cannot_be_written_is_named(
    prediction: Prediction, tmp_path: Path, place: str
) -> None:
    with pytest.raises(InputError) as caught:
        write_html(prediction, tmp_path / place)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
