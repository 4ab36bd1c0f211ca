from __future__ import annotations

import re
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from ioncast_base.kinds import Kind
from predictor.validation.against_reruns import Expected, compare, noise_floor
from predictor.validation.error_sources import PartForecast, explain
from predictor.validation.report_page import curve_figure, error_figure, kind_figure, write_html
from predictor.validation.result_tables import KindError, Validated

EXPECTED = {0: Expected(50, 45, 55.5), 4: Expected(80, 70, 90)}
RERUNS = {0: (41.25, 60.0), 4: (100.0, 80.0), 16: (7.0,)}


def validated(application: str = "hacc") -> Validated:
    parts = [
        PartForecast(Kind("write", "POSIX", "contiguous", "unique"), "exact", 10, {0: 1.0, 4: 0.5})
    ]
    return Validated(
        application=application,
        expected=EXPECTED,
        reruns=RERUNS,
        parts=tuple(parts),
        benchmark={},
        prediction=compare(EXPECTED, RERUNS),
        floor=noise_floor({n: RERUNS[n] for n in EXPECTED}),
        sources=explain(EXPECTED, RERUNS, parts),
    )


def test_the_curve_shows_interval_mean_and_every_rerun() -> None:
    band, mean, reruns = curve_figure(validated()).data
    assert sorted(zip(band.x, band.y, strict=True)) == [
        ("0", 45),
        ("0", 55.5),
        ("4", 70),
        ("4", 90),
    ]
    assert list(zip(mean.x, mean.y, strict=True)) == [("0", 50), ("4", 80)]
    assert list(zip(reruns.x, reruns.y, strict=True)) == [
        ("0", 41.25),
        ("0", 60.0),
        ("4", 100.0),
        ("4", 80.0),
        ("16", 7.0),
    ]


def test_errors_stand_beside_their_noise_floor() -> None:
    found = validated()
    prediction, floor = error_figure(found.prediction, found.floor).data
    assert list(prediction.x) == list(floor.x) == ["0", "0", "4", "4"]
    assert list(prediction.y) == [pytest.approx(8.75 / 41.25), pytest.approx(1 / 6), 0.2, 0]
    assert list(floor.y) == pytest.approx([18.75 / 41.25, 18.75 / 60, 0.2, 0.25])


def test_a_kind_without_a_noise_floor_has_no_bar_for_it() -> None:
    kind = Kind("write", "POSIX", "random", "shared")
    prediction, floor = kind_figure([KindError(kind, 2, 0.5, None)]).data
    assert (list(prediction.x), list(floor.x)) == ([0.5], [None])


def test_the_page_needs_no_network_and_holds_plotly_once(tmp_path: Path) -> None:
    write_html([validated(), validated("b")], tmp_path / "r.html", system="here", warnings=["w1"])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page)
    assert tags
    assert not [tag for tag in tags if re.search(r"\b(?:src|href)\s*=", tag)]
    assert len(page) < 8e6
    # One figure of kinds, one of all applications, and two of each application.
    assert len(re.findall(r"Plotly\.newPlot\(\s+\"", page)) == 6
    for text in (
        "41.25",
        "here",
        "<h2>Warnings</h2>\n<ul>\n<li>w1</li>",
        "Where the mean error comes from",
    ):
        assert text in page


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    write_html([validated(evil)], tmp_path / "r.html", system=evil, warnings=[evil])
    assert "<script>alert" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        write_html([validated()], tmp_path / "missing/r.html", system="here", warnings=[])
