from __future__ import annotations

import re
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from ioncast_base.kinds import Kind
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
from predictor.validation.result_tables import Halves, KindError, Validated, to_markdown

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
    band, mean, benchmark, reruns, ring = bandwidth_figure(validated()).data
    assert sorted(zip(band.x, band.y, strict=True)) == [
        ("0", 45),
        ("0", 55.5),
        ("4", 70),
        ("4", 90),
    ]
    assert list(zip(mean.x, mean.y, strict=True)) == [("0", 50), ("4", 80)]
    assert dict(zip(benchmark.x, map(tuple, benchmark.y), strict=True)) == {
        str(n): runs for n, runs in BENCHMARK.items()
    }
    assert dict(zip(reruns.x, map(tuple, reruns.y), strict=True)) == {
        str(n): runs for n, runs in RERUNS.items()
    }
    # Benchmark and reruns differ without colours too.
    assert benchmark.marker.symbol != reruns.marker.symbol
    assert benchmark.fillcolor != reruns.fillcolor
    # 90 is far from four runs that are at most 6 % apart.
    assert (list(ring.x), list(ring.y), ring.offsetgroup) == (["0"], [90], "benchmark")


def test_errors_stand_beside_their_noise_floor() -> None:
    found = validated()
    prediction, floor = error_figure(found.prediction, found.floor).data
    assert list(prediction.x) == list(floor.x) == ["0", "4"]
    assert [value for one in prediction.y for value in one] == pytest.approx(
        [8.75 / 41.25, 1 / 6, 0.2, 0]
    )
    assert [value for one in floor.y for value in one] == pytest.approx(
        [18.75 / 41.25, 18.75 / 60, 0.2, 0.25]
    )


def test_the_prediction_stands_among_random_halves() -> None:
    halves, prediction = halves_figure(validated()).data
    # The halves of two reruns are the reruns, and each is once the prediction of the other.
    assert list(halves.median) == pytest.approx(
        [(18.75 / 41.25 + 18.75 / 60) / 2, (0.2 + 0.25) / 2]
    )
    assert list(halves.x) == list(prediction.x) == ["0", "4"]
    assert list(prediction.y) == pytest.approx([0.625 / 50.625, 10 / 90])


def test_halves_as_far_apart_as_the_prediction_are_counted() -> None:
    found = Halves.of([0.1, 0.2, 0.3, 0.4], predicted=0.3)
    assert (found.median, found.as_far) == (pytest.approx(0.25), 0.5)


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
    # One figure of kinds, one of all applications, and three of each application.
    assert len(re.findall(r"Plotly\.newPlot\(\s+\"", page)) == 8
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


def test_names_cannot_break_a_markdown_table() -> None:
    *_, row = to_markdown([validated("a|b\nc")]).splitlines()
    assert row.startswith(r"| a\|b c ")
    assert len(re.findall(r"(?<!\\)\|", row)) == len(re.findall(r"-\|-", row)) + 8


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        write_html([validated()], tmp_path / "missing/r.html", system="here", warnings=[])
