"""An application's prediction compared with its reruns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from shlex import quote

from ioncast_base.errors import InputError
from ioncast_base.wording import alike_first, each_in_words
from predictor.curve.prediction import Prediction
from predictor.validation.against_reruns import (
    Expected,
    compare,
    errors_of_halves,
    noise_floor,
)
from predictor.validation.dunn import composed_repetitions, dunn
from predictor.validation.error_sources import PartForecast, explain
from predictor.validation.reruns import Rerun, cells, start_times_s
from predictor.validation.result_tables import Validated
from summario.phases.values import Phase

Forecast = Callable[[Sequence[Phase]], Prediction]


def check_logs(applications: Sequence[str], logs: Mapping[str, object], where: str) -> list[str]:
    """Check that each application with reruns has a log; warn of logs without reruns."""
    missing = [application for application in applications if application not in logs]
    unused = [application for application in logs if application not in applications]
    if missing:
        has = "has" if len(unused) == 1 else "have"
        reverse = f" ({_quoted(unused)} {has} a log, but no reruns)" if unused else ""
        raise InputError(
            f"there are reruns of {_quoted(missing)}, but no log to predict from{reverse}",
            where=where,
            remedy=_with_logs(missing, [each for each in applications if each in logs]),
        )
    return [
        f"{application}: {where} has no reruns of it, so it is left out" for application in unused
    ]


def _with_logs(missing: Sequence[str], others: Sequence[str]) -> str:
    add = f"add --log {quote(f'{missing[0]}=FILE.darshan')}"
    only = " ".join(f"--only {quote(other)}" for other in others)
    return f"{add}, or leave them out with {only}" if only else add


def choose_applications(
    applications: Sequence[str], logs: Mapping[str, object], only: Sequence[str], where: str
) -> tuple[list[str], list[str]]:
    """Choose the applications to validate, and check their logs."""
    unknown = [application for application in only if application not in applications]
    if unknown:
        raise InputError(
            f"{where} has no reruns of {_quoted(unknown)}",
            where="--only",
            remedy=f"it has those of {alike_first(unknown[0], applications)}",
        )
    chosen = [each for each in applications if not only or each in only]
    left_out = [each for each in applications if each not in chosen]
    warnings = check_logs(chosen, {log: logs[log] for log in logs if log not in left_out}, where)
    if left_out:
        warnings.append(f"{where}: reruns of {_quoted(left_out)} are left out (see --only)")
    return chosen, warnings


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def validate_application(
    phases: Sequence[Phase], reruns: Sequence[Rerun], forecast: Forecast, *, explained: bool
) -> tuple[Validated, tuple[str, ...]]:
    """Compare one application's prediction with its reruns."""
    prediction = forecast(phases)
    parts = part_forecasts(prediction, forecast)
    warnings = (*prediction.warnings, *_not_compared(prediction, reruns))
    return compare_with_reruns(reruns, prediction, parts, explained=explained), warnings


def compare_with_reruns(
    reruns: Sequence[Rerun],
    prediction: Prediction,
    parts: Sequence[PartForecast],
    *,
    explained: bool,
) -> Validated:
    """Compare a prediction with the reruns of its application; `parts` are its `part_forecasts`."""
    expected = {
        point.io_nodes: Expected(
            point.bandwidth_mib_s.mean, point.bandwidth_mib_s.p10, point.bandwidth_mib_s.p90
        )
        for point in prediction.curve
    }
    measured = cells(reruns)
    compared = {n: runs for n, runs in measured.items() if n in expected}
    benchmark = _benchmark(prediction)
    return Validated(
        application=reruns[0].application,
        expected=expected,
        reruns=measured,
        parts=tuple(parts),
        benchmark=benchmark,
        prediction=compare(expected, measured),
        floor=noise_floor(compared),
        errors_of_halves=errors_of_halves(compared),
        dunn_p_values=dunn(benchmark, measured),
        sources=explain(expected, measured, parts, start_times_s(reruns)) if explained else None,
    )


def _benchmark(prediction: Prediction) -> dict[int, tuple[float, ...]]:
    """Combine the repetitions of the parts' benchmarks; empty if a part has no benchmark."""
    pairs = [pair for matched in prediction.phases for pair in matched.parts if pair[0].bytes]
    work = [(part.bytes, found.curve.bandwidths_mib_s) for part, found in pairs if found.curve]
    return composed_repetitions(work) if len(work) == len(pairs) else {}


def part_forecasts(prediction: Prediction, forecast: Forecast) -> tuple[PartForecast, ...]:
    """Predict each part of each phase by itself."""
    return tuple(
        PartForecast(
            kind=phase.kind,
            match=found.kind,
            bytes=part.bytes,
            time_s={point.io_nodes: point.time_s for point in forecast([alone]).curve},
        )
        for phase, part, found in (
            (matched.phase, *pair) for matched in prediction.phases for pair in matched.parts
        )
        for alone in (replace(phase, parts=(part,), bytes=part.bytes, requests=part.requests),)
    )


def _not_compared(prediction: Prediction, reruns: Sequence[Rerun]) -> tuple[str, ...]:
    """Warn of reruns without a prediction."""
    if not prediction.curve:
        return (f"nothing is predicted ({prediction.best.why})",)
    predicted = {point.io_nodes for point in prediction.curve}
    missing = [n for n in cells(reruns) if n not in predicted]
    if not missing:
        return ()
    return (f"the reruns with {each_in_words(missing)} have no prediction and are not compared",)
