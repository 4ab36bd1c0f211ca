"""Tables of the study of a changed platform: predictions from few new runs and earlier ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev

from benchdb.measurements.curves import Curve
from experiments.datasets import DataSet, read_benchmarks
from experiments.evaluation import named_curves
from experiments.held_back import phase_of
from experiments.provenance import PROVENANCE, read_provenance
from experiments.published import PrintedTable
from predictor.curve.prediction import DecisionRules, predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel
from predictor.validation.against_reruns import mean_of_cells, noise_floor

NAME = "change"
BEFORE, AFTER = "benchmarks-before.csv", "benchmarks-after.csv"
WITH_EARLIER, FROM_NOTHING, AS_THEY_ARE = "with earlier", "from nothing", "old as they are"
# Numbers of new runs, and of random choices of these runs.
NEW_RUNS, SEEDS = (5, 10, 25), 4
# Defaults of sites, which decide where a prediction is not sure enough.
_DEFAULTS = (0, 8)
# Half the width of an interval of 95 %, in standard deviations.
_HALF_WIDTH = 1.96

Curves = Mapping[str, Curve]


@dataclass(frozen=True)
class _Judged:
    """The predictions of one way, compared with the runs after the change.

    `error` and `inside` are None without a prediction; `regrets` are by the default of a site.
    """

    error: float | None
    inside: float | None
    answered: float
    regrets: Mapping[int, float]


def change_tables(folder: Path) -> tuple[PrintedTable, ...]:
    """Make the tables of a data set of the study.

    `bandwidths` has the means of each cell before and after the change. `predictions` is about
    patterns that were measured only before: half of all, drawn at random. The new runs are drawn
    from the runs of the other half. Errors, regrets and the share of runs in p10 to p90 are means
    over several such choices, with half the width of their interval of 95 %.

    Raises
    ------
    InputError
        If a file of the data set is damaged.
    """
    before, after = (read_curves(folder, name) for name in (BEFORE, AFTER))
    return (
        PrintedTable("bandwidths", tuple(_bandwidths(before, after)), ("pattern", "io_nodes")),
        PrintedTable(
            "predictions", tuple(_predictions(before, after)), ("new_runs", "way"), estimated=True
        ),
    )


def read_curves(folder: Path, name: str) -> dict[str, Curve]:
    """Read the curves of one campaign of a data set, by name of their pattern."""
    provenance = read_provenance(folder / PROVENANCE)
    return named_curves(
        DataSet(folder, provenance, read_benchmarks(folder / name, provenance), {}, {}, {})
    )


def _bandwidths(before: Curves, after: Curves) -> Iterator[dict[str, str]]:
    for name, curve in after.items():
        old = mean_of_cells(before[name].bandwidths_mib_s) if name in before else {}
        for io_nodes, new in mean_of_cells(curve.bandwidths_mib_s).items():
            yield {
                "pattern": name,
                "io_nodes": str(io_nodes),
                "before_mib_s": f"{old[io_nodes]:.2f}" if io_nodes in old else "",
                "after_mib_s": f"{new:.2f}",
                "ratio": f"{new / old[io_nodes]:.3f}" if io_nodes in old else "",
            }


def _predictions(before: Curves, after: Curves) -> Iterator[dict[str, str]]:
    earlier = tuple(replace(curve, before_change=True) for curve in before.values())
    old = tuple(before.values())
    as_they_are = SystemModel(old, fit_model(old))
    draws = [_drawn(sorted(set(before) & set(after)), after, seed) for seed in range(SEEDS)]
    truths = [[after[name] for name in judged] for judged, _ in draws]
    for count in NEW_RUNS:
        news = [_curves_of(runs[:count], after) for _, runs in draws]
        ways = {
            WITH_EARLIER: [_with_earlier(new, earlier) for new in news],
            FROM_NOTHING: [SystemModel(new, fit_model(new)) for new in news],
            AS_THEY_ARE: [as_they_are] * len(news),
        }
        for way, known in ways.items():
            pairs = zip(known, truths, strict=True)
            yield _row(str(count), way, [_judged(knowledge, truth) for knowledge, truth in pairs])
    floors = [[noise_floor(curve.bandwidths_mib_s) for curve in truth] for truth in truths]
    errors = [
        fmean(fmean(errors) for floor in of_draw for errors in floor.cell_errors.values())
        for of_draw in floors
    ]
    yield _row("", "noise floor", [_Judged(error, None, 1.0, {}) for error in errors])


def _with_earlier(new: tuple[Curve, ...], earlier: tuple[Curve, ...]) -> SystemModel:
    model = fit_model((*new, *earlier))
    return SystemModel(new, model, earlier=earlier if model.knows_change else ())


def _drawn(
    names: Sequence[str], after: Curves, seed: int
) -> tuple[list[str], list[tuple[str, int, float]]]:
    """Draw half of the patterns to judge, and put the runs of the others in a random order."""
    chance = random.Random(seed)  # noqa: S311
    judged = sorted(chance.sample(names, len(names) // 2))
    runs = [
        (name, io_nodes, value)
        for name in names
        if name not in judged
        for io_nodes, values in after[name].bandwidths_mib_s.items()
        for value in values
    ]
    return judged, chance.sample(runs, len(runs))


def _curves_of(runs: Sequence[tuple[str, int, float]], after: Curves) -> tuple[Curve, ...]:
    """Make the curves that have some of the runs alone."""
    cells: dict[str, dict[int, tuple[float, ...]]] = {}
    for name, io_nodes, value in runs:
        own = cells.setdefault(name, {})
        own[io_nodes] = (*own.get(io_nodes, ()), value)
    return tuple(replace(after[name], bandwidths_mib_s=own) for name, own in cells.items())


def _judged(knowledge: SystemModel, truth: Sequence[Curve]) -> _Judged:
    errors: list[float] = []
    inside: list[bool] = []
    regrets: dict[int, list[float]] = {default: [] for default in _DEFAULTS}
    for curve in truth:
        runs, means = curve.bandwidths_mib_s, mean_of_cells(curve.bandwidths_mib_s)
        prediction = predict(
            [phase_of(curve.config)],
            knowledge,
            system=NAME,
            nodes=curve.config.nodes,
            io_nodes=sorted(runs),
        )
        for point in prediction.curve:
            expected, mean = point.bandwidth_mib_s, means[point.io_nodes]
            errors.append(abs(expected.mean - mean) / mean)
            inside += [expected.p10 <= run <= expected.p90 for run in runs[point.io_nodes]]
        for default, found in regrets.items():
            chosen = prediction.choice.decide(DecisionRules(default=default)).io_nodes
            found.append(1 - means[default if chosen is None else chosen] / max(means.values()))
    return _Judged(
        error=fmean(errors) if errors else None,
        inside=fmean(inside) if inside else None,
        answered=len(errors) / sum(len(curve.bandwidths_mib_s) for curve in truth),
        regrets={default: fmean(found) for default, found in regrets.items()},
    )


def _row(new_runs: str, way: str, judged: Sequence[_Judged]) -> dict[str, str]:
    columns: dict[str, list[float | None]] = {
        "error": [one.error for one in judged],
        **{
            f"regret_default_{default}": [one.regrets.get(default) for one in judged]
            for default in _DEFAULTS
        },
        "in_p10_to_p90": [one.inside for one in judged],
    }
    row = {"new_runs": new_runs, "way": way}
    for name, values in columns.items():
        known = [value for value in values if value is not None]
        row[name] = f"{fmean(known):.3f}" if known else ""
        half = _HALF_WIDTH * stdev(known) / len(known) ** 0.5 if len(known) > 1 else None
        row[f"{name}_half_interval"] = "" if half is None else f"{half:.3f}"
    return {**row, "answered": f"{fmean(one.answered for one in judged):.2f}"}
