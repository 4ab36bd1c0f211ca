"""Summarise a stored model: its state, its errors, and how far its measurements reach."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from benchdb.store.fitted_models import StoredModel, state_of
from ioncast_base.text_tables import text_table
from ioncast_base.wording import counted, in_digits, size
from predictor.matching.nearest import SIZES
from predictor.model.features import FLAGS
from predictor.model.gaussian import Hyperparameters, matern
from predictor.model.stored import from_document
from predictor.model.system_model import HeldBackErrors, Model

Array = NDArray[np.float64]

_YES_OR_NO = (*FLAGS, "direct access")
_HALF = 0.5
# Differences of a feature, in powers of two, at which the correlation is computed.
_POWERS = np.linspace(0, 10, 1001)
_STATUS = {
    "current": "current",
    "outdated": "outdated (the measurements have changed; the next prediction fits it again)",
    "unreadable": "of another version of ioncast (the next prediction fits it again)",
}


@dataclass(frozen=True)
class Reach:
    """How much configurations that differ in one feature tell about each other.

    Attributes
    ----------
    name : str
        One of `features.FEATURES`.
    in_common : float
        Correlation of two configurations that differ in this feature alone, by a factor of two
        or in a flag.
    reaches : float or None
        The factor of difference at which the correlation falls to one half; None if it is
        larger than 1024, and for flags.
    """

    name: str
    in_common: float
    reaches: float | None


@dataclass(frozen=True, eq=False)
class Shown:
    """A stored model and its state.

    Attributes
    ----------
    status : str
        "current", "outdated" (the measurements have changed since) or "unreadable" (written by
        another version of ioncast). The next prediction fits a model again that is not current.
    model : Model or None
        The model; None if it is unreadable.
    """

    system: str
    engine: str
    fitted_at: str
    status: str
    model: Model | None


def summarise(connection: Connection, system: str, stored: StoredModel) -> Shown:
    """Read a stored model, and check whether it is current."""
    found = from_document(stored.document)
    status = "current"
    if found is None:
        status = "unreadable"
    elif stored.state != state_of(connection, system, stored.engine):
        status = "outdated"
    return Shown(system, stored.engine, stored.fitted_at, status, found)


def reaches(fitted: Model) -> list[Reach]:
    """Compute the reach of each feature from the hyperparameters."""
    found = []
    for i, name in enumerate(fitted.features):
        common = _correlation(fitted.parameters, i, _POWERS)
        [below] = np.nonzero(common < _HALF)
        ends = len(below) > 0 and name not in _YES_OR_NO
        found.append(
            Reach(
                name,
                in_common=float(_correlation(fitted.parameters, i, np.ones(1))[0]),
                reaches=2 ** float(_POWERS[below[0]]) if ends else None,
            )
        )
    return found


def _correlation(p: Hyperparameters, feature: int, differences: Array) -> Array:
    """Compute correlations of places that differ in one feature only, without the trend.

    `differences` are in the unit of the feature: powers of two, or 1 for a flag.
    """
    standardised = differences / (p.scale[feature] or math.inf)
    levels = [
        weight * matern((standardised / lengths[feature]) ** 2).value
        for weight, lengths in zip(p.weights, p.lengths[1:], strict=True)
    ]
    total: Array = np.sum(levels, axis=0) / p.weights.sum()
    return total


def to_text(found: Sequence[Shown]) -> str:
    """Show stored models to people, with an explanation of the columns."""
    if not found:
        return "no models; `ioncast model fit` and `ioncast predict` fit them"
    legend = (
        "error: of the predicted mean with each number of I/O nodes; a small configuration moves"
        " less than 1% of the mean bytes of all\n"
        "regret: share of the bandwidth that is lost with the number of I/O nodes predicted best\n"
        "intervals: factor of their width, calibrated on runs that were held back, so that p10 to"
        " p90 holds four of five runs\n"
        "in common: how much two configurations that differ in this alone (by a factor of two, or"
        " in a flag) tell about each other: 1 all, 0 nothing (a correlation)\n"
        "reaches: the factor of difference at which that falls to a half\n"
        "widening: additional factor by which a prediction may be off (a standard deviation) for"
        " values that were not measured, between measured ones and beyond them"
    )
    blocks = [_block(shown) for shown in found]
    return "\n\n".join([*blocks, legend] if any(shown.model for shown in found) else blocks)


def _block(shown: Shown) -> str:
    head = f"{shown.system}, {shown.engine}: {_STATUS[shown.status]}, fitted {shown.fitted_at}"
    fitted = shown.model
    if fitted is None:
        return head
    lines = [
        f"{head} on {counted(fitted.measurements, 'measurement')}"
        f" of {counted(fitted.configurations, 'configuration')}",
        *(
            [f"and on {counted(fitted.earlier_measurements, 'measurement')} from before the change"]
            if fitted.earlier_measurements
            else []
        ),
        _scores(fitted.scores),
        f"intervals × {fitted.known_factor:.2f} for measured configurations,"
        f" {_range(fitted.new_factors.values())} for others, × {fitted.unmeasured_factor:.2f} for"
        " numbers of I/O nodes that were not measured; besides"
        f" {_range(fitted.factors_of_processes.values())} by the number of processes",
    ]
    if fitted.large_requests is not None:
        lines.append(
            f"request sizes that were not measured: with a jump at {size(2**fitted.large_requests)}"
        )
    return "\n".join([*lines, "", text_table(_rows(fitted))])


def _range(factors: Collection[float]) -> str:
    """Write the least and the largest factor."""
    least, most = (f"{factor:.2f}" for factor in (min(factors), max(factors)))
    return f"× {least}" if least == most else f"× {least} to {most}"


def _scores(scores: HeldBackErrors | None) -> str:
    if scores is None:
        return "not tested: too few configurations to hold one back"
    text = (
        f"{counted(scores.patterns, 'configuration')}, each held back: median error"
        f" {scores.median_error:.1%}, mean regret {scores.regret:.1%}"
    )
    if scores.small_patterns:
        text += f" (the error without {scores.small_patterns} small ones)"
    return text


def _rows(fitted: Model) -> list[dict[str, str]]:
    rows = [
        {
            "feature": reach.name,
            "in common": f"{reach.in_common:.2f}",
            "reaches": _reach_text(reach),
        }
        for reach in reaches(fitted)
    ]
    same = [name for name in SIZES if name not in fitted.features]
    rows += [{"feature": name, "in common": "never differed", "reaches": ""} for name in same]
    for row in rows:
        name = row["feature"]
        factors = _widening(fitted, name) if name in SIZES else ()
        row["widening"] = ", ".join(f"× {factor:.2f}" for factor in factors)
    return rows


def _reach_text(reach: Reach) -> str:
    if reach.name in _YES_OR_NO:
        return ""
    return "far" if reach.reaches is None else f"× {in_digits(reach.reaches)}"


def to_json(shown: Shown) -> dict[str, Any]:
    """Turn a stored model into plain values for JSON."""
    record: dict[str, Any] = {
        "system": shown.system,
        "engine": shown.engine,
        "fitted_at": shown.fitted_at,
        "status": shown.status,
    }
    if shown.model is None:
        return record
    fitted = shown.model
    earlier = fitted.earlier_measurements
    before_change = {"before_change": fitted.factor_before_change} if earlier else {}
    return record | {
        "measurements": fitted.measurements,
        "configurations": fitted.configurations,
        "earlier_measurements": fitted.earlier_measurements,
        "scores": asdict(fitted.scores) if fitted.scores else None,
        "interval_factors": {
            "measured": fitted.known_factor,
            "new": {str(n): factor for n, factor in fitted.new_factors.items()},
            "of_processes": {str(n): factor for n, factor in fitted.factors_of_processes.items()},
            "unmeasured_io_nodes": fitted.unmeasured_factor,
            **before_change,
        },
        "large_requests_bytes": fitted.large_requests and 2**fitted.large_requests,
        "features": [asdict(reach) for reach in reaches(fitted)],
        "widening_factors": {
            name: dict(zip(("between", "beyond"), _widening(fitted, name), strict=True))
            for name in SIZES
        },
    }


def _widening(fitted: Model, name: str) -> tuple[float, ...]:
    """Standard deviations, as factors, that sizes need which were not measured."""
    return tuple(math.exp(math.sqrt(variance)) for variance in fitted.widening[name])
