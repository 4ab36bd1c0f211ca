from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchdb.measurements.curves import Curve
from ioncast_base.errors import InputError
from predictor.curve.asking import PredictionRequest, beside_own_run
from predictor.curve.explanation import explain
from predictor.curve.plots import curve_figure, write_html
from predictor.curve.prediction import DecisionRules, Prediction, predict
from predictor.model.system_model import Model, SystemModel
from summario.phases.values import Phase

MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


@pytest.fixture
def prediction(a_phase: MakePhase, a_curve: MakeCurve) -> Prediction:
    curve = a_curve({0: (31.25,), 4: (62.125,), 8: (47.875,)})
    return predict([a_phase()], SystemModel((curve,)), system="here", nodes=8)


def drawn(prediction: Prediction) -> dict[str, Any]:
    """Collect the traces by their names in the legend."""
    return {trace.name: trace for trace in curve_figure(prediction).data}


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
    found = predict([a_phase()], SystemModel((curve,)), system="here", nodes=8)
    traces = drawn(found)
    band, mean = traces["predicted, p10 to p90"], traces["predicted mean"]
    corners = sorted(zip(band.x, band.y, strict=True))
    assert [n for n, _ in corners] == ["0", "0", "1", "1"]
    assert [value for _, value in corners] == pytest.approx([10, 30, 40, 60])
    assert list(mean.x) == ["0", "1"]
    assert list(mean.y) == [p.bandwidth_mib_s.mean for p in found.curve]


def test_the_best_is_marked_and_the_decision_where_it_is_another(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    curve = a_curve({0: (50,), 4: (97,), 8: (100,)})

    def marked(tolerance: float) -> dict[str, list[str]]:
        found = predict(
            [a_phase()],
            SystemModel((curve,)),
            system="here",
            policy=DecisionRules(tolerance=tolerance),
        )
        return {name: list(trace.x) for name, trace in drawn(found).items()}

    assert marked(0)["best and decision"] == ["8"]
    apart = marked(0.05)
    assert (apart["best"], apart["decision"]) == (["8"], ["4"])


def test_measured_points_are_filled_and_those_of_the_model_are_open(
    a_phase: MakePhase, synthetic: Any, fitted: Model
) -> None:
    config = synthetic.curves[0].config
    tasks, shared = config.tasks, not config.file_per_process
    moved = config.bytes_per_process * tasks
    phase = a_phase(
        (moved // config.transfer_size, moved),
        file_access="shared" if shared else "unique",
        processes=tasks,
        nprocs=tasks,
        mode_processes=tasks if shared else 1,
        n_files=1 if shared else tasks,
    )
    knowledge = SystemModel(synthetic.curves, fitted)
    found = predict(
        [phase], knowledge, system="here", nodes=config.nodes, io_nodes=[0, 1, 2, 3, 4, 6]
    )
    traces = drawn(found)
    measured, filled_in = traces["all parts measured"], traces["the model fills in"]
    assert (list(measured.x), measured.marker.symbol) == (["0", "1", "2", "4"], "circle")
    assert (list(filled_in.x), filled_in.marker.symbol) == (["3", "6"], "circle-open")


def test_the_page_says_what_is_decided_and_why(prediction: Prediction, tmp_path: Path) -> None:
    write_html(prediction, tmp_path / "curve.html")
    page = html.unescape((tmp_path / "curve.html").read_text(encoding="utf-8"))
    decision, *reasons = explain(prediction)
    assert "<p>Best: 4 I/O nodes (highest expected bandwidth, 62.1 MiB/s" in page
    assert f"<p>Decision: {decision}</p>" in page
    assert page.index(decision) < page.index("Plotly.newPlot") < page.index(reasons[0])
    assert reasons
    for line in (*reasons, *prediction.warnings):
        assert f"<li>{line}</li>" in page


def test_the_page_begins_with_the_run_in_the_log(prediction: Prediction, tmp_path: Path) -> None:
    write_html(
        beside_own_run(prediction, PredictionRequest("here", nodes=8)), tmp_path / "curve.html"
    )
    page = html.unescape((tmp_path / "curve.html").read_text(encoding="utf-8"))
    assert page.index("<p>The run in the log got 64 MiB/s, faster than ") < page.index("<p>Best: ")


def test_an_empty_prediction_can_be_drawn(tmp_path: Path) -> None:
    found = predict([], SystemModel(()), system="here")
    write_html(found, tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text(encoding="utf-8")
    assert "No prediction: the run has no I/O phases." in page
    assert "Plotly" not in page


def test_names_cannot_break_the_page(
    a_phase: MakePhase, a_curve: MakeCurve, tmp_path: Path
) -> None:
    evil = "</script><script>alert(1)</script>"
    found = predict(
        [a_phase(job=evil)], SystemModel((a_curve(),)), system="<img src=x onerror=alert(1)>"
    )
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
