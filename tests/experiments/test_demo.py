"""The last lines of the demonstration say what it got right and wrong."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

import pytest

from experiments.demo import APPLICATIONS, verdict
from experiments.shipped import TESTBED
from predictor.validation.against_reruns import Comparison, Expected, compare
from predictor.validation.result_tables import Validated

DEMO = (Path(__file__).resolve().parents[2] / "docs" / "demo.md").read_text(encoding="utf-8")


def validated(predicted: Mapping[int, float], reruns: Mapping[int, list[float]]) -> Validated:
    expected = {n: Expected(mean, mean, mean) for n, mean in predicted.items()}
    comparison = compare(expected, reruns)
    return Validated("app", expected, reruns, (), {}, comparison, Comparison(), {}, {})


def test_a_wrong_decision_names_the_best_number_and_its_regret() -> None:
    said = verdict(validated({0: 90, 2: 40, 4: 50}, {0: [70, 90], 2: [50], 4: [100]}))
    assert said.splitlines() == [
        "app: the decision is 0 I/O nodes (90 MiB/s predicted, 80 MiB/s measured).",
        "  Wrong: 4 I/O nodes were faster (50 MiB/s predicted, 100 MiB/s measured),"
        " so the regret is 20.0%.",
        "  The largest error, 50.0%, is at 4 (50 MiB/s predicted, 100 MiB/s measured).",
    ]


def test_a_right_decision_within_the_tolerance_is_told_from_the_highest_prediction() -> None:
    said = verdict(validated({4: 98, 8: 100}, {4: [100], 8: [90]}))
    assert said.splitlines() == [
        "app: the decision is 4 I/O nodes (98 MiB/s predicted, 100 MiB/s measured).",
        "  Right: no other number was faster.",
        "  The highest prediction is for 8 I/O nodes (100 MiB/s predicted, 90 MiB/s measured);"
        " the regret with them is 10.0%.",
        "  The largest error, 11.1%, is at 8 (100 MiB/s predicted, 90 MiB/s measured).",
    ]


def test_the_best_number_may_have_no_prediction() -> None:
    said = verdict(validated({4: 98}, {4: [98], 8: [100]}))
    assert "Wrong: 8 I/O nodes were faster (not predicted, 100 MiB/s measured)" in said


def test_reruns_without_a_prediction_have_no_verdict() -> None:
    assert verdict(validated({4: 98}, {8: [100]})) == "app: no rerun has a prediction."


@pytest.mark.parametrize("application", APPLICATIONS)
def test_the_documented_verdicts_agree_with_the_reruns(application: str) -> None:
    runs: dict[int, list[float]] = defaultdict(list)
    with (TESTBED / "applications.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["name"] == application:
                runs[int(row["io_nodes"])].append(float(row["bandwidth_mib_s"]))
    means = {n: fmean(values) for n, values in runs.items()}
    best = max(means, key=means.__getitem__)
    [said] = re.findall(rf"^{application}: the decision.*\n(?:  .*\n)+", DEMO, re.MULTILINE)
    [(decided, measured)] = re.findall(
        r"decision is (\d+) .* predicted, (\S+) MiB/s measured", said
    )
    assert float(measured) == pytest.approx(means[int(decided)], abs=0.06)
    wrong = re.findall(r"Wrong: (\d+) .* regret is (\S+)%", said)
    assert bool(wrong) == (int(decided) != best)
    for faster, regret in wrong:
        assert int(faster) == best
        lost = 1 - means[int(decided)] / means[best]
        assert float(regret) == pytest.approx(100 * lost, abs=0.06)
