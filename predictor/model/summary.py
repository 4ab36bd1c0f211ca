"""What a stored model says of itself: whether it is current, how good it is, how far it reaches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection
from tabulate import tabulate

from benchdb.store.fitted_models import StoredModel, state_of
from ioncast_base.wording import counted
from predictor.matching.nearest import SIZES
from predictor.model.features import FLAGS
from predictor.model.gaussian import Hyperparameters, matern
from predictor.model.stored import from_document
from predictor.model.system_model import Model, Scores

Array = NDArray[np.float64]

_YES_OR_NO = (*FLAGS, "direct access")
_HALF = 0.5
# Powers of two by which a feature may differ; what reaches farther, reaches far.
_POWERS = np.linspace(0, 10, 1001)
_STATUS = {
    "current": "current",
    "outdated": "outdated (the measurements have changed; it is fitted again when used)",
    "unreadable": "of another version of ioncast (it is fitted again when used)",
}


@dataclass(frozen=True)
class Reach:
    """How far what was measured tells of what differs from it in one feature.

    Attributes
    ----------
    name : str
        One of `features.FEATURES`.
    in_common : float
        Correlation of two patterns that differ in it alone: by a factor of two, or by having
        it or not.
    reaches : float or None
        The factor by which it may differ until that is a half; None beyond 1024, and of what
        one has or has not.
    """

    name: str
    in_common: float
    reaches: float | None


@dataclass(frozen=True, eq=False)
class Shown:
    """A stored model.

    Attributes
    ----------
    system, engine, fitted_at : str
        As it was stored.
    status : str
        "current"; "outdated" where the measurements have changed since; "unreadable" where
        another version of ioncast wrote it. The last two are fitted again when they are used.
    model : Model or None
        None of an unreadable one.
    """

    system: str
    engine: str
    fitted_at: str
    status: str
    model: Model | None


def summarise(connection: Connection, system: str, stored: StoredModel) -> Shown:
    """Read a stored model, and find out whether it is current."""
    found = from_document(stored.document)
    status = "current"
    if found is None:
        status = "unreadable"
    elif stored.state != state_of(connection, system, stored.engine):
        status = "outdated"
    return Shown(system, stored.engine, stored.fitted_at, status, found)


def reaches(fitted: Model) -> list[Reach]:
    """How far the measurements tell, feature by feature, by what the process learned."""
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
    """Of places that differ in one feature by so many of its units; without the trend."""
    standardised = differences / (p.scale[feature] or math.inf)
    levels = [
        weight * matern((standardised / lengths[feature]) ** 2).value
        for weight, lengths in zip(p.weights, p.lengths[1:], strict=True)
    ]
    total: Array = np.sum(levels, axis=0) / p.weights.sum()
    return total


def to_text(found: Sequence[Shown]) -> str:
    """Stored models for people, then what the columns mean."""
    if not found:
        return "no models; `ioncast model fit` and `ioncast predict` fit them"
    legend = (
        "error, regret: of the predicted mean with each number of I/O nodes, and what is lost by"
        " running with the predicted best\n"
        "intervals: the factor, found on runs that were held back, for p10 to p90 to hold four of"
        " five\n"
        "in common: how much one pattern tells of another that differs in this alone, by a factor"
        " of two or by having it or not: 1 all, 0 nothing (a correlation)\n"
        "reaches: the factor at which that is a half\n"
        "widening: the factor by which a prediction may be off in addition (a standard deviation)"
        " at twice what was measured, or half"
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
        _scores(fitted.scores),
        f"intervals × {fitted.known_factor:.2f} for measured patterns,"
        f" × {fitted.new_factor:.2f} for others",
    ]
    return "\n".join([*lines, "", tabulate(_rows(fitted), headers="keys", disable_numparse=True)])


def _scores(scores: Scores | None) -> str:
    if scores is None:
        return "too few patterns to leave any out: not tested"
    return (
        f"{scores.patterns} patterns, each left out: error {scores.cell_error:.1%},"
        f" regret {scores.regret:.1%}"
    )


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
        row["widening"] = f"× {_widening(fitted, name):.2f}" if name in SIZES else ""
    return rows


def _reach_text(reach: Reach) -> str:
    if reach.name in _YES_OR_NO:
        return ""
    return "far" if reach.reaches is None else f"× {reach.reaches:.3g}"


def to_json(shown: Shown) -> dict[str, Any]:
    """A stored model for programs."""
    record: dict[str, Any] = {
        "system": shown.system,
        "engine": shown.engine,
        "fitted_at": shown.fitted_at,
        "status": shown.status,
    }
    if shown.model is None:
        return record
    fitted = shown.model
    return record | {
        "measurements": fitted.measurements,
        "configurations": fitted.configurations,
        "scores": asdict(fitted.scores) if fitted.scores else None,
        "interval_factors": {"measured": fitted.known_factor, "new": fitted.new_factor},
        "features": [asdict(reach) for reach in reaches(fitted)],
        "widening_factors": {name: _widening(fitted, name) for name in SIZES},
    }


def _widening(fitted: Model, size: str) -> float:
    """The standard deviation, as a factor, added a power of two beyond what was measured."""
    return math.exp(math.sqrt(fitted.widening[size]))
