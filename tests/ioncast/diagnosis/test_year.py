"""A year of the same benchmarks on two systems: slow runs, the weather, and what outcomes teach."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ioncast.diagnosis.diagnosing import History
from ioncast.diagnosis.verdict import Judgement, Part
from predictor.model.posterior import (
    LEAST_SCATTER,
    Belief,
    ObservedBandwidth,
    Scatter,
    fitted,
    posterior,
)
from tests.ioncast.diagnosis.test_normal import rows

pytestmark = pytest.mark.slow
SYSTEMS = ("cori", "mira")
# The runs that a test looks at: each takes as long as a diagnosis.
SAMPLE = 400


class Year(NamedTuple):
    """The history of a system, and the coverage factor of each log."""

    history: History
    coverage: dict[str, float]


@cache
def year(folder: Path, system: str) -> Year:
    [file] = (folder / "year").glob(f"{system}*.csv.gz")
    with gzip.open(file, "rt", encoding="utf-8") as text:
        heads, *lines = csv.reader(text)
    # The first column, an index, has no name and in one file no comma either.
    heads = [""] * (len(lines[0]) - len(heads)) + heads
    runs: list[dict[str, Any]] = []
    coverage = {}
    for line in lines:
        run = dict(zip(heads, line, strict=True))
        moved = {way: float(run[f"darshan_biggest_{way}_api_bytes"] or 0) for way in WAYS}
        way = max(WAYS, key=moved.__getitem__)
        files = run[f"darshan_biggest_{way}_api_files"]
        mib_s = float(run["darshan_agg_perf_by_slowest_posix"] or 0)
        if not (mib_s > 0 and run["darshan_app"] and run["_file_system"] and files):
            continue
        log = f"{len(runs):064x}"
        runs.append(
            {
                "system": run["_file_system"],
                "job_id": int(float(run["darshan_jobid"])),
                "program": f"{run['darshan_app']} {way} {files}",
                "processes": int(float(run["darshan_nprocs"])),
                "start_us": int(float(run["darshan_start_time"]) * 1e6),
                "moved_bytes": int(moved[way]),
                "bandwidth_mib_s": mib_s,
            }
        )
        of_all = float(run[f"fs_tot_bytes_{WAYS[way]}"] or "nan")
        coverage[log] = moved[way] / of_all if of_all else float("nan")
    return Year(History(rows(runs)), coverage)


WAYS = {"write": "written", "read": "read"}


@pytest.fixture(params=SYSTEMS)
def of_system(request: pytest.FixtureRequest, shared_data: Path) -> Year:
    return year(shared_data, request.param)


def sample(history: History) -> list[int]:
    known = np.flatnonzero(np.isfinite(history.normals.log_mib_s))
    chosen: list[int] = np.random.default_rng(1).choice(known, SAMPLE, replace=False).tolist()
    return chosen


def log_of(history: History, place: int) -> str:
    found: str = history.runs.rows["log"][place].as_py()
    return found


def test_nearly_all_runs_have_a_usual_bandwidth(of_system: Year) -> None:
    assert np.isfinite(of_system.history.normals.log_mib_s).mean() > 0.98


def test_a_planted_slowdown_of_each_variant_is_found(of_system: Year) -> None:
    """The median run of each variant gets slower by four deviations, and by at least 3 times."""
    history = of_system.history
    runs, normals = history.runs, history.normals
    table = runs.rows.to_pylist()
    planted = []
    for variant in range(runs.variant.max() + 1):
        of_variant = np.flatnonzero((runs.variant == variant) & np.isfinite(normals.log_mib_s))
        # Of a few runs, a slower one changes the deviation.
        if len(of_variant) >= 20:
            place = int(of_variant[np.argmin(np.abs(normals.log_ratio[of_variant]))])
            table[place]["bandwidth_mib_s"] /= max(3.0, float(np.exp(4 * normals.spread[place])))
            planted.append(table[place]["log"])
    assert len(planted) >= 8
    assert set(planted) <= set(History(rows(table)).slow_logs)


def test_slow_runs_are_a_few_and_of_several_variants(of_system: Year) -> None:
    history = of_system.history
    slow = history.normals.is_slow
    assert 0.01 < slow.mean() < 0.07
    assert len(np.unique(history.runs.variant[slow])) >= 5


def test_the_interval_of_the_week_covers_85_to_95_percent_of_the_runs(of_system: Year) -> None:
    history = of_system.history
    inside = []
    for place in sample(history):
        found = history.diagnose(log_of(history, place)).facts
        if found.at_level is not None and found.bandwidth_mib_s is not None:
            inside.append(
                found.at_level.low_mib_s <= found.bandwidth_mib_s <= found.at_level.high_mib_s
            )
    assert len(inside) > 0.95 * SAMPLE
    assert 0.85 <= np.mean(inside) <= 0.95, np.mean(inside)


def test_bad_weeks_have_wider_intervals(of_system: Year) -> None:
    history = of_system.history
    weather = [history.diagnose(log_of(history, place)).facts.weather for place in sample(history)]
    known = [each for each in weather if each is not None]
    share = np.array([each.slow_jobs_of_week / each.jobs_of_week for each in known])
    widening = np.array([each.widening[0] for each in known])
    bad = share >= np.quantile(share, 0.8)
    assert widening[bad].mean() > 1.5 * widening[~bad].mean()


def test_the_level_does_not_predict_runs_better_than_their_usual_bandwidth(
    of_system: Year,
) -> None:
    """So it is shown, and decides nothing. The paired difference is at most what chance makes."""
    history = of_system.history
    gains = []
    for place in sample(history):
        found = history.diagnose(log_of(history, place)).facts
        if found.at_level is not None and found.usual is not None and found.bandwidth_mib_s:
            errors = [
                abs(np.log(found.bandwidth_mib_s / each.mib_s))
                for each in (found.usual, found.at_level)
            ]
            gains.append(errors[0] - errors[1])
    assert np.mean(gains) < 1.96 * np.std(gains) / np.sqrt(len(gains))


def test_wider_noise_of_runs_on_busy_systems_predicts_the_next_run_no_worse(
    of_system: Year,
) -> None:
    """Slow runs with less than half of the file system's bytes, as if servers were busy then.

    The 95 % intervals of the paired differences of errors, relative ones and of logarithms, do not
    lie above 0.
    """
    history = of_system.history
    runs, slow, logs = history.runs, history.normals.is_slow, history.runs.rows["log"].to_pylist()
    ratio = np.exp(history.normals.log_ratio)
    busy = Judgement("system", parts=(Part("system", 1.0, 1.0),))
    widened = np.array(
        [
            busy.outcome_scatter(float(each)) if is_slow and of_system.coverage[log] < 0.5 else 0.0
            for log, each, is_slow in zip(logs, ratio, slow, strict=True)
        ]
    )
    assert np.count_nonzero(widened) > 10
    differences: list[tuple[float, float]] = []
    prior = Belief(np.array([float(runs.log_mib_s.mean())]), np.array([[0.98]]))
    for variant in np.unique(runs.variant[widened > 0]):
        of_variant = np.flatnonzero(runs.variant == variant)
        of_variant = of_variant[np.argsort(runs.day[of_variant], kind="stable")]
        # The five runs after each of these are those that it teaches.
        taught = {
            later
            for at in np.flatnonzero(widened[of_variant] > 0).tolist()
            for later in range(at + 1, min(at + 6, len(of_variant)))
        }
        for later in sorted(taught):
            past, place = of_variant[max(0, later - 50) : later], of_variant[later]
            errors = []
            for scatter in (np.zeros(len(runs)), widened):
                columns = (runs.log_mib_s[past], runs.day[past], scatter[past])
                outcomes = [
                    ObservedBandwidth(0, *each)
                    for each in zip(*(column.tolist() for column in columns), strict=True)
                ]
                usual = fitted(prior, outcomes, Scatter(np.array([LEAST_SCATTER])))
                after = posterior(prior, outcomes, usual, float(runs.day[place]))
                error = float(after.mean[0] - runs.log_mib_s[place])
                errors.append((abs(np.expm1(error)), abs(error)))
            differences.append(tuple(np.subtract(errors[1], errors[0]).tolist()))
    mean = np.mean(differences, axis=0)
    half = 1.96 * np.std(differences, axis=0) / np.sqrt(len(differences))
    assert (mean - half <= 0).all(), (mean, half, len(differences))
