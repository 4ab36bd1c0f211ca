"""Makes the tables that are published beside a data set.

Each follows from the measurements and logs of the data set alone. Like Inria RR-9366, they list
phases (its Tables 2, 5 and 7) and errors of benchmarks (Tables 3, 6 and 8). In addition they have
the curves, the chosen numbers of I/O nodes, and predictions of patterns whose measurements are held
back. Tables of their own show the report's numbers beside ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, pstdev

from experiments.datasets import DataSet
from experiments.evaluation import NEAREST_MEANS, Evaluation
from experiments.held_back import Judged, hold_back
from experiments.published import PrintedTable
from experiments.studies.phase_bandwidths import phase_bandwidths
from experiments.studies.rr9366 import reported
from experiments.studies.side_by_side import direct_runs, phase_rows, rerun_error_rows
from predictor.validation.against_reruns import (
    Comparison,
    Reruns,
    errors,
    noise_floor,
    pool,
    scores,
)
from predictor.validation.result_tables import ALL, FLOOR, PREDICTION, Halves
from summario.phases.tables import COLUMNS, to_record

Row = dict[str, str]


def tables_of(data: DataSet, evaluation: Evaluation) -> tuple[PrintedTable, ...]:
    """Make all tables of a data set, without empty ones.

    This takes seconds, because a model is fitted for each pattern that is held back.

    Parameters
    ----------
    data : DataSet
        The measurements.
    evaluation : Evaluation
        The predictions from them.
    """
    judged = tuple(hold_back(evaluation.curves))
    made = (
        phases(data),
        means(evaluation),
        composed(evaluation),
        composed_errors(evaluation),
        predictions(evaluation),
        prediction_errors(evaluation),
        choices(evaluation),
        rates(data),
        gain_of_rates(evaluation),
        held_back(judged),
        accuracy(judged),
        report_phases(data),
        report_errors(evaluation),
        report_runs(data, evaluation),
        random_halves(evaluation),
        dunn(evaluation),
        run_phases(data),
    )
    return tuple(table for table in made if table.rows)


def phases(data: DataSet) -> PrintedTable:
    """The phases in the logs, as in RR-9366's Tables 2, 5 and 7."""
    return PrintedTable(
        "phases",
        tuple(
            {
                "log": log.file,
                "application": log.application,
                "io_nodes": str(log.io_nodes),
                "phase": str(number),
                **{
                    name: _exactly(value)
                    for name, value in to_record(phase).items()
                    if name in COLUMNS and name != "job"
                },
                "parts": " + ".join(
                    f"{part.requests} x {part.request_bytes:.10g}" for part in phase.parts
                ),
            }
            for log, found in data.phases.items()
            for number, phase in enumerate(found)
        ),
        keys=("log", "phase"),
    )


def means(evaluation: Evaluation) -> PrintedTable:
    """The measurements: mean and coefficient of variation of each cell."""
    curves = sorted(evaluation.curves.items())
    return PrintedTable(
        "means",
        (
            *(
                row
                for name, one in curves
                for row in _means("benchmark", name, one.bandwidths_mib_s)
            ),
            *(
                row
                for name, one in sorted(evaluation.validated.items())
                for row in _means("application", name, one.reruns)
            ),
        ),
        keys=("kind", "name", "io_nodes"),
    )


def composed(evaluation: Evaluation) -> PrintedTable:
    """Applications composed from the means of the nearest benchmarks, part by part."""
    names = {curve.id: name for name, curve in evaluation.curves.items()}
    return PrintedTable(
        "composed",
        tuple(
            {
                "application": application,
                "io_nodes": str(n),
                "benchmarks": " + ".join(
                    dict.fromkeys(names[one.curve.id] for one in found.matches if one.curve)
                ),
                "exact": f"{sum(one.kind == 'exact' for one in found.matches)}"
                f" of {len(found.matches)}",
                "composed_mib_s": f"{mean:.2f}",
                "measured_mib_s": _mean(evaluation.validated[application].reruns, n),
                "error": _cell_error(found.comparison, n),
            }
            for application, found in sorted(evaluation.composed.items())
            for n, mean in found.mean_mib_s.items()
        ),
        keys=("application", "io_nodes"),
    )


def composed_errors(evaluation: Evaluation) -> PrintedTable:
    """Errors of these compositions, as in RR-9366's Tables 3, 6 and 8, and the noise floor."""
    of_means = {name: one.comparison for name, one in evaluation.composed.items()}
    floor = {name: noise_floor(one.reruns) for name, one in evaluation.validated.items()}
    return PrintedTable(
        "composed_errors",
        (*_errors(NEAREST_MEANS, of_means), *_errors(FLOOR, floor)),
        keys=("of", "application", "io_nodes"),
    )


def predictions(evaluation: Evaluation) -> PrintedTable:
    """Predicted curves beside measured curves."""
    return PrintedTable(
        "predictions",
        tuple(
            {
                "application": name,
                "io_nodes": str(point.io_nodes),
                "p10_mib_s": f"{point.bandwidth_mib_s.p10:.2f}",
                "predicted_mib_s": f"{point.bandwidth_mib_s.mean:.2f}",
                "p90_mib_s": f"{point.bandwidth_mib_s.p90:.2f}",
                "basis": point.basis,
                "measured_mib_s": _mean(evaluation.validated[name].reruns, point.io_nodes),
                "error": _cell_error(evaluation.validated[name].prediction, point.io_nodes),
            }
            for name, prediction in sorted(evaluation.predictions.items())
            for point in prediction.curve
        ),
        keys=("application", "io_nodes"),
        estimated=True,
    )


def prediction_errors(evaluation: Evaluation) -> PrintedTable:
    """Errors of the predictions, as in RR-9366's Tables 3, 6 and 8."""
    found = {name: one.prediction for name, one in evaluation.validated.items()}
    return PrintedTable(
        "prediction_errors",
        tuple(_errors(PREDICTION, found)),
        keys=("of", "application", "io_nodes"),
        estimated=True,
    )


def choices(evaluation: Evaluation) -> PrintedTable:
    """The predicted best number of I/O nodes, the decision, and the bandwidth that both lose."""
    chosen = {name: one.choices for name, one in sorted(evaluation.validated.items())}
    compared = {name: evaluation.validated[name].prediction for name in chosen}
    return PrintedTable(
        "choices",
        tuple(
            {
                "application": name,
                "measured_best": _whole(chosen.get(name, {}).get("measured")),
                "best": _whole(chosen.get(name, {}).get("predicted")),
                "decision": _whole(chosen.get(name, {}).get("within_tolerance")),
                **_scores(comparison),
            }
            for name, comparison in _with_all(compared)
        ),
        keys=("application",),
        estimated=True,
    )


def rates(data: DataSet) -> PrintedTable:
    """The rates of files: mean and coefficient of variation of each cell."""
    cells: dict[tuple[str, int, int, int], dict[int, list[float]]] = {}
    for rate in data.rates:
        kind = (rate.operation, rate.tasks, rate.files_per_process or 0, rate.bytes_per_file)
        cells.setdefault(kind, {}).setdefault(rate.io_nodes, []).append(rate.files_per_s)
    names = ("operation", "tasks", "files_per_process", "bytes_per_file")
    return PrintedTable(
        "rates",
        tuple(
            {
                **dict(zip(names, map(str, kind), strict=True)),
                "io_nodes": str(n),
                "runs": str(len(values)),
                "mean_files_per_s": f"{fmean(values):.2f}",
                "cv": f"{variation(values):.4f}",
            }
            for kind, by_number in sorted(cells.items())
            for n, values in sorted(by_number.items())
        ),
        keys=(*names, "io_nodes"),
    )


def gain_of_rates(evaluation: Evaluation) -> PrintedTable:
    """Errors of the predicted means with and without rates of files, and the noise floor.

    Empty without rates. The errors of all cells together are their mean.
    """
    return PrintedTable(
        "gain_of_rates",
        tuple(
            {
                "application": name,
                "io_nodes": n,
                "with_rates": _error_of(evaluation.validated[name].prediction, n),
                "without_rates": _error_of(before.prediction, n),
                "noise_floor": _error_of(noise_floor(before.reruns), n),
            }
            for name, before in sorted(evaluation.without_rates.items())
            for n in (*map(str, sorted(before.reruns)), ALL)
        ),
        keys=("application", "io_nodes"),
        estimated=True,
    )


def held_back(judged: Sequence[Judged]) -> PrintedTable:
    """Each pattern predicted without its own measurements; empty if no other pattern is like it."""
    return PrintedTable(
        "held_back",
        tuple(
            {
                "protocol": one.protocol,
                "way": one.way,
                "pattern": one.pattern,
                "measured_best": str(one.measured_best),
                "best": _whole(one.best),
                "error": _number(_mean_error(one.comparison)),
                "regret": _number(scores(one.comparison).regret),
            }
            for one in judged
        ),
        keys=("protocol", "way", "pattern"),
        estimated=True,
    )


def accuracy(judged: Sequence[Judged]) -> PrintedTable:
    """The accuracy of each way to predict, over all patterns that it predicts."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for one in judged:
        groups.setdefault((one.protocol, one.way), []).append(one.comparison)
    return PrintedTable(
        "accuracy",
        tuple(
            {
                "protocol": protocol,
                "way": way,
                "patterns": str(len(comparisons)),
                "predicted": str(sum(bool(one.regrets) for one in comparisons)),
                **_scores(pool(comparisons)),
            }
            for (protocol, way), comparisons in groups.items()
        ),
        keys=("protocol", "way"),
        estimated=True,
    )


def report_phases(data: DataSet) -> PrintedTable:
    """The phases of RR-9366's Tables 2, 5 and 7, and ours."""
    return PrintedTable(
        "report_phases",
        tuple(
            {"application": name, **{column: _exactly(value) for column, value in row.items()}}
            for name, found in sorted(data.jobs.items())
            if reported(name)
            for row in phase_rows(name, found)
        ),
        keys=("application", "of"),
    )


def report_errors(evaluation: Evaluation) -> PrintedTable:
    """The errors of RR-9366's Tables 3, 6 and 8, and ours."""
    return PrintedTable(
        "report_errors",
        tuple(
            {"application": name, **row}
            for name, result in sorted(evaluation.validated.items())
            if reported(name)
            for row in rerun_error_rows(result, evaluation.composed[name])
        ),
        keys=("application", "of"),
        estimated=True,
    )


def report_runs(data: DataSet, evaluation: Evaluation) -> PrintedTable:
    """The runs with direct access of RR-9366's Table 9, and ours."""
    return PrintedTable(
        "report_runs",
        tuple(
            {
                "application": name,
                "of": of,
                "run": str(number),
                "bandwidth_mib_s": f"{value:.1f}",
            }
            for name, result in sorted(evaluation.validated.items())
            for of, values in direct_runs(
                name, data.commands[name], data.applications[name], result.benchmark.get(0, ())
            ).items()
            for number, value in enumerate(values, start=1)
        ),
        keys=("application", "of", "run"),
    )


def random_halves(evaluation: Evaluation) -> PrintedTable:
    """How far random halves of the reruns are apart, beside the compositions."""
    return PrintedTable(
        "random_halves",
        tuple(
            {
                "application": name,
                "io_nodes": str(n),
                "runs": str(len(one.reruns[n])),
                "p10": f"{halves.p10:.3f}",
                "median": f"{halves.median:.3f}",
                "p90": f"{halves.p90:.3f}",
                "error": f"{error:.3f}",
                "as_far": f"{halves.as_far:.3f}",
            }
            for name, one in sorted(evaluation.validated.items())
            for n, (error,) in evaluation.composed[name].comparison.cell_errors.items()
            if n in one.errors_of_halves
            for halves in (Halves.of(one.errors_of_halves[n], error),)
        ),
        keys=("application", "io_nodes"),
    )


def dunn(evaluation: Evaluation) -> PrintedTable:
    """Dunn's test between the reruns and the benchmarks in the place of the application."""
    return PrintedTable(
        "dunn",
        tuple(
            {
                "application": name,
                "io_nodes": str(n),
                "benchmark_runs": str(len(one.benchmark[n])),
                "runs": str(len(one.reruns[n])),
                "benchmark_mib_s": _mean(one.benchmark, n),
                "measured_mib_s": _mean(one.reruns, n),
                "p_value": f"{p_value:.3f}",
            }
            for name, one in sorted(evaluation.validated.items())
            for n, p_value in one.dunn_p_values.items()
        ),
        keys=("application", "io_nodes"),
    )


def run_phases(data: DataSet) -> PrintedTable:
    """The bandwidth of each phase of the applications' runs; empty if the runs do not tell it."""
    return PrintedTable(
        "run_phases",
        tuple(
            {
                "application": name,
                "io_nodes": str(one.io_nodes),
                "phase": str(one.phase),
                "runs": str(one.runs),
                "mean_mib_s": f"{one.mean_mib_s:.4f}",
                "cv": f"{one.variation:.4f}",
                "to_first": f"{one.to_first:.4f}",
            }
            for name, reruns in sorted(data.applications.items())
            for one in phase_bandwidths(reruns)
        ),
        keys=("application", "io_nodes", "phase"),
    )


def variation(runs: Sequence[float]) -> float:
    """Coefficient of variation of runs (population standard deviation over mean)."""
    return pstdev(runs) / fmean(runs)


def _means(kind: str, name: str, cells: Reruns) -> Iterator[Row]:
    for n, runs in sorted(cells.items()):
        mean = fmean(runs)
        yield {
            "kind": kind,
            "name": name,
            "io_nodes": str(n),
            "runs": str(len(runs)),
            "mean_mib_s": f"{mean:.4f}",
            "cv": f"{variation(runs):.4f}",
        }


def _errors(of: str, comparisons: Mapping[str, Comparison]) -> Iterator[Row]:
    """Rows with the statistics of RR-9366's tables, for each number of I/O nodes and for all."""
    for name, comparison in _with_all(dict(sorted(comparisons.items()))):
        cells = {str(n): values for n, values in comparison.run_errors.items()}
        cells[ALL] = tuple(error for values in comparison.run_errors.values() for error in values)
        for n, values in cells.items():
            if found := errors(values):
                yield {
                    "of": of,
                    "application": name,
                    "io_nodes": n,
                    "runs": str(found.count),
                    "min": f"{found.minimum:.3f}",
                    "mean": f"{found.mean:.3f}",
                    "median": f"{found.median:.3f}",
                    "max": f"{found.maximum:.3f}",
                }


def _with_all(comparisons: Mapping[str, Comparison]) -> list[tuple[str, Comparison]]:
    """The comparison of each application, then of all together."""
    return [*comparisons.items(), (ALL, pool(comparisons.values()))]


def _scores(comparison: Comparison) -> Row:
    found = scores(comparison)
    return {
        "error_of_means": _number(_mean_error(comparison)),
        "error_of_runs": _number(found.runs.mean if found.runs else None),
        "hit_rate": _number(found.hit_rate),
        "regret": _number(found.regret),
        "regret_of_decision": _number(found.regret_within_tolerance),
        "in_p10_to_p90": _number(found.coverage),
    }


def _exactly(value: object) -> str:
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def _mean_error(comparison: Comparison) -> float | None:
    found = scores(comparison).cells
    return found.mean if found else None


def _mean(cells: Reruns, n: int) -> str:
    return f"{fmean(cells[n]):.2f}" if n in cells else ""


def _cell_error(comparison: Comparison, n: int) -> str:
    return "".join(f"{error:.3f}" for error in comparison.cell_errors.get(n, ()))


def _error_of(comparison: Comparison, n: str) -> str:
    """The error of the mean of a cell, or the mean of these errors."""
    return _number(_mean_error(comparison)) if n == ALL else _cell_error(comparison, int(n))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)
