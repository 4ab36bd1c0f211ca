"""Tables of the study of background load: what diagnoses answer, and the decisions after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated

from pydantic import Field

from experiments.datasets import LOGS, phases_of_log, read
from experiments.evaluation import named_curves
from experiments.published import PrintedTable
from experiments.shipped import DATA
from experiments.studies.interference_tables import read_rows
from predictor.curve.decision import TOLERANCE
from predictor.curve.prediction import EarlierRun, Prediction, predict
from predictor.model.system_model import SystemModel

NAME, DIAGNOSES = "background", "diagnoses.csv"
ALONE, LOADED = "alone", "loaded"
# Numbers of I/O nodes of the runs, and the number of their compute nodes.
IO_NODES, _NODES = (4, 8), 4


@dataclass(frozen=True)
class DiagnosedRun:
    """A row of `diagnoses.csv`: a run of the application, and the answer of `ioncast diagnose`.

    `order` is its place in the order of all runs, `started` Unix seconds, `load1` the machine's
    load before it. `loaded` is the I/O node with background load, `named` the busy one, each None
    without one; `by_background` tells whether the log of the background load was named.
    `outcome_scatter` is the noise that the diagnosis adds to the run as an outcome.
    """

    order: int
    arm: str
    io_nodes: int
    log: str
    started: float
    load1: float
    bandwidth_mib_s: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    slowdown: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    loaded: int | None
    verdict: str
    system_share: float
    named: int | None
    by_background: bool
    outcome_scatter: Annotated[float, Field(ge=0, allow_inf_nan=False)]


def background_tables(folder: Path) -> tuple[PrintedTable, ...]:
    """Make the tables of a data set of the study.

    `answers` counts the verdicts of each arm. `decisions` has the decision for the application
    before its runs, after those alone, and after all, with and without the noise that diagnoses
    add. `plain means` takes the fewest I/O nodes whose mean of all runs is within the tolerance.
    The prediction before the runs is that of the nearest benchmarks of the data set `testbed`.

    Raises
    ------
    InputError
        If a file of the data set is damaged.
    """
    runs = read_rows(folder / DIAGNOSES, DiagnosedRun)
    arms: dict[tuple[str, int], list[DiagnosedRun]] = {}
    for run in runs:
        arms.setdefault((run.arm, run.io_nodes), []).append(run)
    return (
        PrintedTable("answers", tuple(map(_answer, arms.values())), ("arm", "io_nodes")),
        PrintedTable("decisions", tuple(_decisions(folder, runs)), ("outcomes",)),
    )


def outcomes_of(runs: Sequence[DiagnosedRun], *, widened: bool = True) -> list[EarlierRun]:
    """Make outcomes of runs, with the noise that diagnoses add if `widened`."""
    return [
        EarlierRun(
            run.io_nodes,
            run.bandwidth_mib_s,
            run.started / 86_400,
            run.outcome_scatter if widened else 0.0,
        )
        for run in runs
    ]


def _answer(runs: Sequence[DiagnosedRun]) -> dict[str, str]:
    first = runs[0]
    shares = [run.system_share for run in runs if run.loaded is not None]
    return {
        "arm": first.arm,
        "io_nodes": str(first.io_nodes),
        "runs": str(len(runs)),
        "mean_mib_s": f"{fmean(run.bandwidth_mib_s for run in runs):.2f}",
        "mean_slowdown": f"{fmean(run.slowdown for run in runs):.3f}",
        **{
            verdict: str(sum(run.verdict == verdict for run in runs))
            for verdict in ("normal", "system", "unknown")
        },
        "named_right": str(sum(run.named == run.loaded for run in runs)),
        "named_background": str(sum(run.by_background for run in runs)),
        "least_system_share": f"{min(shares):.3f}" if shares else "",
    }


def _decisions(folder: Path, runs: Sequence[DiagnosedRun]) -> list[dict[str, str]]:
    """Decide with the outcomes of some of the runs."""
    curves = tuple(named_curves(read(DATA / "testbed")).values())
    knowledge = SystemModel(curves, model=None)
    phases = phases_of_log(folder / LOGS / runs[0].log)
    alone = [run for run in runs if run.loaded is None]
    outcomes: Mapping[str, Sequence[EarlierRun]] = {
        "none": (),
        "runs alone": outcomes_of(alone),
        "all runs": outcomes_of(runs),
        "all runs, not widened": outcomes_of(runs, widened=False),
    }
    rows = [
        _decision(name, predict(phases, knowledge, system=NAME, nodes=_NODES, earlier=known))
        for name, known in outcomes.items()
    ]
    means = {
        n: fmean(run.bandwidth_mib_s for run in runs if run.io_nodes == n)
        for n in sorted({run.io_nodes for run in runs})
    }
    fewest = min(n for n, mean in means.items() if mean >= (1 - TOLERANCE) * max(means.values()))
    plain = {f"mib_s_{n}": f"{mean:.2f}" for n, mean in means.items()}
    return [*rows, {"outcomes": "plain means", "io_nodes": str(fewest), **plain}]


def _decision(outcomes: str, prediction: Prediction) -> dict[str, str]:
    """Write the decision, and what is expected with the numbers of I/O nodes of the runs."""
    io_nodes = prediction.decision.io_nodes
    curve = {point.io_nodes: point.bandwidth_mib_s for point in prediction.curve}
    return {
        "outcomes": outcomes,
        "io_nodes": "" if io_nodes is None else str(io_nodes),
        **{f"mib_s_{n}": f"{curve[n].mean:.2f}" for n in IO_NODES},
    }
