"""Show the results of a validation as tables for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from statistics import fmean
from typing import Any

import numpy as np
from tabulate import tabulate

from ioncast_base.kinds import Kind
from ioncast_base.text_tables import text_table
from ioncast_base.wording import in_digits
from predictor.curve.decision import TOLERANCE, fewest_near_best
from predictor.validation.against_reruns import (
    Comparison,
    Errors,
    Expected,
    Reruns,
    Scores,
    mean_of_cells,
    pool,
    scores,
)
from predictor.validation.dunn import ADJUSTMENT
from predictor.validation.error_sources import (
    SIGNIFICANCE,
    ErrorSources,
    PartForecast,
    errors_by_kind,
    pool_sources,
)

PREDICTION, FLOOR, ALL = "prediction", "noise floor", "all"

_BY_IO_NODES = "By number of I/O nodes (Dunn's p below 0.05: reruns and benchmark differ)"
# Smaller p-values say nothing more to a reader.
_SMALLEST_P = 0.0001


@dataclass(frozen=True)
class Halves:
    """How far random halves of the reruns of a cell are apart: quantiles of the errors of one half.

    `as_far` is the share of these errors that are at least as high as the error of the prediction.
    """

    p10: float
    median: float
    p90: float
    as_far: float

    @classmethod
    def of(cls, errors: Sequence[float], predicted: float) -> Halves:
        """Summarise errors of halves beside the error of a prediction."""
        p10, middle, p90 = np.quantile(errors, (0.1, 0.5, 0.9)).tolist()
        return cls(p10, middle, p90, fmean(error >= predicted for error in errors))


@dataclass(frozen=True)
class Validated:
    """One application's prediction, compared with its reruns; values are by number of I/O nodes.

    `benchmark` has the repetitions of the parts' benchmarks, combined; it is empty if a part has
    none. `errors_of_halves` and `dunn_p_values` are those of the functions of these names.
    `sources` is None unless it was asked for and anything was predicted.
    """

    application: str
    expected: Mapping[int, Expected]
    reruns: Reruns
    parts: tuple[PartForecast, ...]
    benchmark: Reruns
    prediction: Comparison
    floor: Comparison
    errors_of_halves: Reruns
    dunn_p_values: Mapping[int, float]
    sources: ErrorSources | None = None

    @property
    def compared(self) -> list[int]:
        """The numbers of I/O nodes with both a prediction and reruns."""
        return [n for n in sorted(self.expected) if n in self.reruns]

    @property
    def choices(self) -> dict[str, int | None]:
        """The best number of I/O nodes: predicted, predicted within tolerance, and measured."""
        means = {n: self.expected[n].mean for n in self.compared}
        return {
            "predicted": fewest_near_best(means, 0) if means else None,
            "within_tolerance": fewest_near_best(means) if means else None,
            "measured": fewest_near_best(mean_of_cells(self.reruns), 0),
        }

    @property
    def halves(self) -> dict[int, Halves]:
        """How far random halves of the reruns are apart, by number of I/O nodes."""
        return {
            n: Halves.of(errors, self.prediction.cell_errors[n][0])
            for n, errors in self.errors_of_halves.items()
        }


@dataclass(frozen=True)
class KindError:
    """The mean error and noise floor of a kind of phases, over a number of reruns."""

    kind: Kind
    reruns: float
    error: float
    noise_floor: float | None


def kind_errors(results: Sequence[Validated]) -> list[KindError]:
    """Compute the errors by kind of phase, over all applications."""
    predicted = errors_by_kind((result.parts, result.prediction.run_errors) for result in results)
    floor = errors_by_kind((result.parts, result.floor.run_errors) for result in results)
    return [
        KindError(kind, reruns, error, floor[kind][1] if kind in floor else None)
        for kind, (reruns, error) in predicted.items()
    ]


def pooled(results: Sequence[Validated]) -> tuple[Comparison, Comparison]:
    """Combine the comparisons of all applications: predictions, and noise floors."""
    return pool(result.prediction for result in results), pool(result.floor for result in results)


def to_json(results: Sequence[Validated]) -> dict[str, Any]:
    """Turn results into plain values for JSON; docs/validation.md explains the keys."""
    sources = pool_sources(result.sources for result in results if result.sources)
    prediction, floor = pooled(results)
    return {
        "tolerance": TOLERANCE,
        "dunn_adjustment": ADJUSTMENT,
        "applications": [_record(result) for result in results],
        "all": {
            "prediction": asdict(scores(prediction)),
            "noise_floor": asdict(scores(floor)),
            "error_sources": asdict(sources) if sources else None,
        },
        "phase_kinds": sorted(
            (
                {**asdict(kind_error), "kind": _in_json(kind_error.kind)}
                for kind_error in kind_errors(results)
            ),
            key=itemgetter("kind"),
        ),
    }


def to_text(results: Sequence[Validated]) -> str:
    """Show results to people."""
    return "\n\n".join(f"{title}:\n{text_table(rows)}" for title, rows in _tables(results))


def to_markdown(results: Sequence[Validated]) -> str:
    """Show the same as `to_text` in Markdown."""
    blocks = []
    for title, rows in _tables(results):
        cells = [{name: _in_markdown(value) for name, value in row.items()} for row in rows]
        made = tabulate(cells, headers="keys", disable_numparse=True, tablefmt="github")
        blocks.append(f"**{title}**\n\n{made}")
    return "\n\n".join(blocks)


def _in_markdown(value: object) -> str:
    """Write a cell so that neither a bar nor the end of a line in it ends the cell."""
    return " ".join(str(value).split()).replace("|", r"\|")


def _tables(results: Sequence[Validated]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Make all tables with rows, under their titles."""
    tables = [
        ("Error of each rerun, |predicted mean - rerun| / rerun", error_rows(results)),
        ("The choice of I/O nodes, the curve and its interval", decision_rows(results)),
        (_BY_IO_NODES, curve_rows(results)),
    ]
    if any(result.sources for result in results):
        tables.append(("Where the mean error comes from", source_rows(results)))
    return [(title, rows) for title, rows in tables if rows]


def error_rows(results: Sequence[Validated]) -> list[dict[str, Any]]:
    """Make RR-9366's table of errors, with the noise floor below each line."""
    return [
        {"application": name, "of": of, **_errors(found.runs), "of the means": _mean(found.cells)}
        for name, of, found in _scores(results)
    ]


def decision_rows(results: Sequence[Validated]) -> list[dict[str, Any]]:
    """Make the table of choices and their regret, with the noise floor below each line."""
    chosen = {result.application: result.choices for result in results}
    rows = []
    for name, of, found in _scores(results):
        choice = chosen.get(name, {}) if of == PREDICTION else {}
        rows.append(
            {
                "application": name,
                "of": of,
                "best": _text(choice.get("predicted"), "d"),
                "measured best": _text(choice.get("measured"), "d"),
                "hit rate": _text(found.hit_rate, ".0%"),
                "regret": _text(found.regret, ".3f"),
                f"regret within {TOLERANCE:.0%}": _text(found.regret_within_tolerance, ".3f"),
                "Kendall's tau": _text(found.tau, ".2f"),
                "in p10 to p90": _text(found.coverage, ".0%"),
            }
        )
    return rows


def curve_rows(results: Sequence[Validated]) -> list[dict[str, Any]]:
    """Make the table of predictions beside measurements, by number of I/O nodes."""
    return [
        {
            "application": result.application,
            "I/O nodes": n,
            "predicted MiB/s": in_digits(speed.mean, 4),
            "p10 to p90": f"{in_digits(speed.p10, 4)} to {in_digits(speed.p90, 4)}",
            "measured MiB/s": in_digits(measured, 4),
            "runs": len(result.reruns[n]),
            "error": f"{result.prediction.cell_errors[n][0]:.3f}",
            FLOOR: _text(next(iter(result.floor.cell_errors.get(n, ())), None), ".3f"),
            "halves as far": _text(halves[n].as_far if n in halves else None, ".0%"),
            "Dunn's p": _p_value(result.dunn_p_values.get(n)),
        }
        for result in results
        for halves in (result.halves,)
        for n, measured in mean_of_cells({n: result.reruns[n] for n in result.compared}).items()
        for speed in (result.expected[n],)
    ]


def source_rows(results: Sequence[Validated]) -> list[dict[str, Any]]:
    """Make the table of the parts that add up to the mean error."""
    explained = [(result.application, result.sources) for result in results if result.sources]
    pooled = pool_sources(sources for _, sources in explained)
    if pooled and len(explained) > 1:
        explained.append((ALL, pooled))
    return [
        {
            "application": name,
            "mean error": f"{sources.total:.3f}",
            "noise": _testable(sources.noise),
            "missing pattern": f"{sources.missing_pattern:.3f}",
            "poor match": f"{sources.poor_match:.3f}",
            "drift": _drift(sources),
            "unexplained": f"{sources.unexplained:.3f}",
        }
        for name, sources in explained
    ]


def _in_json(kind: Kind) -> str:
    """Write a kind as this JSON always had it: the file access before the spatiality."""
    return " ".join((kind.operation, kind.api, kind.file_access, kind.spatiality))


def _record(one: Validated) -> dict[str, Any]:
    return {
        "application": one.application,
        "best": one.choices,
        "prediction": asdict(scores(one.prediction)),
        "noise_floor": asdict(scores(one.floor)),
        "curve": [
            {
                "io_nodes": n,
                "predicted_mib_s": asdict(one.expected[n]) if n in one.expected else None,
                "measured_mib_s": list(one.reruns.get(n, ())),
                "benchmark_mib_s": list(one.benchmark.get(n, ())),
                "run_errors": list(one.prediction.run_errors.get(n, ())),
                "cell_error": next(iter(one.prediction.cell_errors.get(n, ())), None),
                "run_noise_floor": list(one.floor.run_errors.get(n, ())),
                "cell_noise_floor": next(iter(one.floor.cell_errors.get(n, ())), None),
                "random_halves": asdict(halves[n]) if n in halves else None,
                "dunn_p_value": one.dunn_p_values.get(n),
            }
            for halves in (one.halves,)
            for n in sorted({*one.expected, *one.reruns})
        ],
        "parts": [
            {"kind": _in_json(part.kind), "match": part.match, "bytes": part.bytes}
            for part in one.parts
        ],
        "error_sources": asdict(one.sources) if one.sources else None,
    }


def _scores(results: Sequence[Validated]) -> list[tuple[str, str, Scores]]:
    """Compute the scores and noise floor of each application, then those of all."""
    named = [(result.application, result.prediction, result.floor) for result in results]
    if len(results) > 1:
        named.append((ALL, *pooled(results)))
    return [
        (name, of, scores(comparison))
        for name, prediction, floor in named
        for of, comparison in ((PREDICTION, prediction), (FLOOR, floor))
    ]


def _errors(found: Errors | None) -> dict[str, str]:
    names = ("minimum", "mean", "median", "maximum")
    return {
        "runs": str(found.count if found else 0),
        **{name: _text(getattr(found, name, None), ".3f") for name in names},
    }


def _mean(found: Errors | None) -> str:
    return _text(found.mean if found else None, ".3f")


def _drift(sources: ErrorSources) -> str:
    if sources.trend is None:
        return _testable(sources.drift)
    p_value = f"p {_p_value(sources.trend.p_value)}"
    if sources.trend.p_value >= SIGNIFICANCE:
        return f"none ({p_value})"
    return f"{sources.drift:.3f} ({p_value}, {sources.trend.change:+.0%})"


def _testable(value: float | None) -> str:
    return "not testable" if value is None else f"{value:.3f}"


def _p_value(value: float | None) -> str:
    if value is None:
        return ""
    return in_digits(value, 2) if value >= _SMALLEST_P else f"< {_SMALLEST_P}"


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
