from __future__ import annotations

import re
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from ioncast_base.kinds import Kind
from ioncast_base.pages.figures import Band, Bars, Boxes, Points
from predictor.validation.against_reruns import (
    Expected,
    compare,
    errors_of_halves,
    noise_floor,
)
from predictor.validation.error_sources import PartForecast, explain
from predictor.validation.report_page import (
    bandwidth_figure,
    error_figure,
    halves_figure,
    kind_figure,
    write_html,
)
from predictor.validation.result_tables import (
    FLOOR,
    PREDICTION,
    Halves,
    KindError,
    Validated,
    to_markdown,
)
from tests.support.drawn import lines, named

EXPECTED = {0: Expected(50, 45, 55.5), 4: Expected(80, 70, 90)}
RERUNS = {0: (41.25, 60.0), 4: (100.0, 80.0), 16: (7.0,)}
BENCHMARK = {0: (50.0, 51.0, 52.0, 53.0, 90.0), 4: (75.0,)}


def validated(application: str = "hacc") -> Validated:
    parts = [
        PartForecast(Kind("write", "POSIX", "contiguous", "unique"), "exact", 10, {0: 1.0, 4: 0.5})
    ]
    return Validated(
        application=application,
        expected=EXPECTED,
        reruns=RERUNS,
        parts=tuple(parts),
        benchmark=BENCHMARK,
        prediction=compare(EXPECTED, RERUNS),
        floor=noise_floor({n: RERUNS[n] for n in EXPECTED}),
        errors_of_halves=errors_of_halves({n: RERUNS[n] for n in EXPECTED}),
        dunn_p_values={0: 0.03},
        sources=explain(EXPECTED, RERUNS, parts),
    )


def test_the_bandwidth_shows_the_interval_the_mean_and_every_run() -> None:
    figure = bandwidth_figure(validated())
    [panel] = figure.panels
    assert list(panel.across.ticks.values()) == ["0", "4", "16"]
    band = named(figure, "predicted, p10 to p90", Band)
    assert (list(band.at), list(band.lows), list(band.highs)) == ([0, 1], [45, 70], [55.5, 90])
    assert lines(figure) == {"predicted mean": [50, 80]}
    benchmark, reruns = (named(figure, name, Boxes) for name in ("benchmark", "reruns"))
    runs = {each.symbol: list(each.values) for each in figure.series if isinstance(each, Points)}
    assert runs["ring"] == [90]
    assert runs["cross"] == [41.25, 60, 100, 80, 7]
    # Benchmark and reruns differ without colours too, and stand side by side.
    assert benchmark.is_filled != reruns.is_filled
    assert benchmark.at[0] < 0 < reruns.at[0]
    # 90 is far from four runs that are at most 6 % apart.
    outlier = named(figure, "outlier", Points)
    assert (list(outlier.at), list(outlier.values)) == ([benchmark.at[0]], [90])


def test_errors_stand_beside_their_noise_floor() -> None:
    found = validated()
    figure = error_figure(found.prediction, found.floor)
    prediction, floor = (each for each in figure.series if isinstance(each, Points))
    assert list(prediction.values) == pytest.approx([8.75 / 41.25, 1 / 6, 0.2, 0])
    assert list(floor.values) == pytest.approx([18.75 / 41.25, 18.75 / 60, 0.2, 0.25])


def test_the_prediction_stands_among_random_halves() -> None:
    figure = halves_figure(validated())
    halves, prediction = named(figure, "random halves", Boxes), named(figure, PREDICTION, Points)
    # The halves of two reruns are the reruns, and each is once the prediction of the other.
    assert [box.median for box in halves.boxes] == pytest.approx(
        [(18.75 / 41.25 + 18.75 / 60) / 2, (0.2 + 0.25) / 2]
    )
    assert list(halves.at) == list(prediction.at) == [0, 1]
    assert list(prediction.values) == pytest.approx([0.625 / 50.625, 10 / 90])


def test_halves_as_far_apart_as_the_prediction_are_counted() -> None:
    found = Halves.of([0.1, 0.2, 0.3, 0.4], predicted=0.3)
    assert (found.median, found.as_far) == (pytest.approx(0.25), 0.5)


def test_a_kind_without_a_noise_floor_has_no_bar_for_it() -> None:
    kind = Kind("write", "POSIX", "random", "shared")
    figure = kind_figure([KindError(kind, 2, 0.5, None)])
    prediction, floor = (named(figure, name, Bars) for name in (PREDICTION, FLOOR))
    assert (list(prediction.ends), list(floor.ends)) == ([0.5], [None])


def test_the_page_needs_no_network_and_has_all_figures(tmp_path: Path) -> None:
    write_html([validated(), validated("b")], tmp_path / "r.html", system="here", warnings=["w1"])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img|iframe)\b", page)
    # One figure of kinds, one of all applications, and three of each application.
    assert page.count("<figure>") == 8
    for text in (
        "here",
        "<h2>Warnings</h2>\n<ul>\n<li>w1</li>",
        "Where the mean error comes from",
    ):
        assert text in page


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script>"
    write_html([validated(evil)], tmp_path / "r.html", system=evil, warnings=[evil])
    assert "<script>alert" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_names_cannot_break_a_markdown_table() -> None:
    *_, row = to_markdown([validated("a|b\nc")]).splitlines()
    assert row.startswith(r"| a\|b c ")
    assert len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"-\|-", row)) + 8


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        write_html([validated()], tmp_path / "missing/r.html", system="here", warnings=[])
