from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchdb.measurements.curves import Curve
from ioncast_base.errors import InputError
from ioncast_base.pages.figures import Band, Figure, Points
from predictor.curve.asking import PredictionRequest, beside_own_run
from predictor.curve.drawing import curve_figure
from predictor.curve.explanation import explain
from predictor.curve.plots import write_html
from predictor.curve.prediction import DecisionRules, Prediction, predict
from predictor.model.system_model import Model, SystemModel
from summario.phases.values import Phase
from tests.support.drawn import lines, named

MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


@pytest.fixture
def prediction(a_phase: MakePhase, a_curve: MakeCurve) -> Prediction:
    curve = a_curve({0: (31.25,), 4: (62.125,), 8: (47.875,)})
    return predict([a_phase()], SystemModel((curve,)), system="here", nodes=8)


def drawn(prediction: Prediction) -> Figure:
    return curve_figure(
        prediction.curve,
        best=prediction.best.io_nodes,
        decision=prediction.decision.io_nodes,
        measured={0: (33.5,), 8: (44.0625, 45.0625)},
    )


def at_io_nodes(figure: Figure, name: str) -> list[str]:
    """The numbers of I/O nodes at which a series has points."""
    [panel] = figure.panels
    return [panel.across.ticks[at] for at in named(figure, name, Points).at]


def test_the_page_needs_no_network(prediction: Prediction, tmp_path: Path) -> None:
    write_html(prediction, tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text(encoding="utf-8")
    assert "<polyline" in page
    assert not re.findall(r"<(?:script|link|img|iframe)\b", page)


def test_the_page_holds_the_numbers(prediction: Prediction, tmp_path: Path) -> None:
    write_html(prediction, tmp_path / "c.html", {0: (33.5,), 8: (44.0625, 45.0625)})
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    for hint in ("4 I/O nodes: 62.1 MiB/s", "direct access: 33.5 MiB/s", "8 I/O nodes: 45.1 MiB/s"):
        assert f"<title>{hint}" in page
    assert "here" in page


def test_the_band_goes_from_p10_to_p90(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    curve = a_curve({0: (10, 20, 30), 1: (40, 50, 60)})
    found = predict([a_phase()], SystemModel((curve,)), system="here", nodes=8)
    band = named(drawn(found), "predicted, p10 to p90", Band)
    assert (list(band.lows), list(band.highs)) == (
        pytest.approx([10, 40]),
        pytest.approx([30, 60]),
    )
    means = [point.bandwidth_mib_s.mean for point in found.curve]
    assert lines(drawn(found)) == {"predicted mean": means}


def test_the_best_is_marked_and_the_decision_where_it_is_another(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    curve = a_curve({0: (50,), 4: (97,), 8: (100,)})

    def marked(tolerance: float) -> Figure:
        policy = DecisionRules(tolerance=tolerance)
        return drawn(predict([a_phase()], SystemModel((curve,)), system="here", policy=policy))

    assert at_io_nodes(marked(0), "best and decision") == ["8"]
    apart = marked(0.05)
    assert (at_io_nodes(apart, "best"), at_io_nodes(apart, "decision")) == (["8"], ["4"])


def test_runs_are_points_at_their_numbers_of_io_nodes(prediction: Prediction) -> None:
    figure = drawn(prediction)
    assert at_io_nodes(figure, "measured runs") == ["0", "8", "8"]
    assert list(named(figure, "measured runs", Points).values) == [33.5, 44.0625, 45.0625]


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
    figure = drawn(found)
    measured, filled_in = (
        named(figure, name, Points) for name in ("all parts measured", "the model fills in")
    )
    assert (at_io_nodes(figure, measured.name), measured.symbol) == (["0", "1", "2", "4"], "circle")
    assert (at_io_nodes(figure, filled_in.name), filled_in.symbol) == (["3", "6"], "ring")


def test_the_page_says_what_is_decided_and_why(prediction: Prediction, tmp_path: Path) -> None:
    write_html(prediction, tmp_path / "curve.html")
    page = html.unescape((tmp_path / "curve.html").read_text(encoding="utf-8"))
    decision, *reasons = explain(prediction)
    assert "<p>Best: 4 I/O nodes (highest expected bandwidth, 62.1 MiB/s" in page
    assert f"<p>Decision: {decision}</p>" in page
    assert page.index(decision) < page.index("<figure>") < page.index(reasons[0])
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
    assert "<figure>" not in page


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
