"""Errors of predictions and drift for the pages, from the newest outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from ioncast.service.monitoring.decision_errors import (
    Drift,
    ErrorsSoFar,
    Judged,
    average_ratios,
    drift,
    errors_so_far,
    mean_of_known,
)
from ioncast.service.store.outcomes import JoinedOutcome
from ioncast.show.figures import (
    Ratio,
    errors_figure,
    ratios_figure,
)
from ioncast_base.files import program_of
from ioncast_base.pages.figures import Figure
from ioncast_base.wording import in_words
from predictor.validation.against_reruns import Expected

# Nobody reads a figure with more.
_MOST_APPLICATIONS = 12
_MOST_KINDS = 8


@dataclass(frozen=True)
class Accuracy:
    """The errors of predictions.

    Attributes
    ----------
    error, inside, regret : float or None
        The mean error, the share of outcomes inside their intervals, and the mean regret.
    """

    found: ErrorsSoFar
    compared: tuple[Judged, ...]
    error: float | None
    inside: float | None
    regret: float | None
    drift: tuple[Drift, ...]


@dataclass(frozen=True)
class ErrorsDrawn:
    """A figure of errors or regrets; of each box its name, number, mean, median and maximum."""

    figure: Figure
    rows: list[tuple[str, int, float, float, float]]


def accuracy(newest: Sequence[JoinedOutcome]) -> Accuracy:
    """Compute the errors of the newest outcomes."""
    found = errors_so_far(newest)
    compared = tuple(each for each in found.judged if each.error is not None)
    return Accuracy(
        found=found,
        compared=compared,
        error=mean_of_known(each.error for each in compared),
        inside=mean_of_known(each.inside for each in compared),
        regret=mean_of_known(each.regret for each in found.judged),
        drift=tuple(sorted(drift(newest), key=lambda each: not each.drifted)),
    )


def glance(systems: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """Put the numbers of all systems together: `outcomes`, and as in `Accuracy`."""
    known = [system for system in systems if system["errors"]]
    numbers = [each["errors"]["count"] for each in known]
    return {
        "outcomes": sum(numbers),
        "error": _average([each["errors"]["mean"] for each in known], numbers),
        "inside": _average([each["coverage"] for each in known], numbers),
    }


def _average(values: Sequence[float], numbers: Sequence[int]) -> float | None:
    # `fmean` has weights only from Python 3.11 on.
    return float(np.average(values, weights=numbers)) if values else None


def errors_by_io_nodes(compared: Sequence[Judged]) -> ErrorsDrawn:
    """Draw the errors by the jobs' number of I/O nodes."""
    numbers = sorted({each.io_nodes for each in compared})
    pairs = [(in_words(each.io_nodes), each.error) for each in compared]
    return _drawn(pairs, map(in_words, numbers), "error")


def errors_by_application(compared: Sequence[Judged]) -> ErrorsDrawn:
    """Draw the errors of the applications with most outcomes."""
    return _by_application([(_application(each), each.error) for each in compared], "error")


def regrets_by_application(judged: Iterable[Judged]) -> ErrorsDrawn | None:
    """Draw the known regrets by application; None if no regret is known."""
    known = [(_application(each), each.regret) for each in judged if each.regret is not None]
    return _by_application(known, "regret") if known else None


def ratios(compared: Sequence[Judged]) -> Figure:
    """Draw observed over expected, of the kinds of I/O that are most frequent."""
    frequent = [kind for kind, _ in Counter(map(_kind, compared)).most_common(_MOST_KINDS)]
    numbered: dict[str, list[tuple[int, Judged, Expected]]] = {kind: [] for kind in frequent}
    for number, each in enumerate(compared, start=1):
        if each.expected is not None and _kind(each) in numbered:
            numbered[_kind(each)].append((number, each, each.expected))
    series = {
        kind: [
            Ratio(number, each.reported_at, each.observed_mib_s / expected.mean, average)
            for (number, each, expected), average in zip(
                found, average_ratios([each for _, each, _ in found]), strict=True
            )
        ]
        for kind, found in numbered.items()
    }
    return ratios_figure(series)


def _by_application(pairs: Sequence[tuple[str, float | None]], what: str) -> ErrorsDrawn:
    names = Counter(name for name, _ in pairs).most_common(_MOST_APPLICATIONS)
    return _drawn(pairs, (name for name, _ in names), what)


def _drawn(
    pairs: Iterable[tuple[str, float | None]], order: Iterable[str], what: str
) -> ErrorsDrawn:
    grouped: dict[str, list[float]] = {each: [] for each in order}
    for name, value in pairs:
        if value is not None and name in grouped:
            grouped[name].append(value)
    rows = [
        (name, len(values), fmean(values), median(values), max(values))
        for name, values in grouped.items()
    ]
    return ErrorsDrawn(errors_figure(grouped, what), rows)


def _application(judged: Judged) -> str:
    program = program_of(judged.executable) if judged.executable else "unknown"
    return f"{program} on {judged.system}"


def _kind(judged: Judged) -> str:
    return f"{judged.pattern}, on {judged.system}"
