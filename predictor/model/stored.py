"""Models as plain JSON in the database, read while the measurements are the same."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from benchdb.store.fitted_models import stored_model
from predictor.matching.nearest import SIZES
from predictor.model.features import FEATURES
from predictor.model.gaussian import Hyperparameters
from predictor.model.system_model import HeldBackErrors, Model

# The version of the document. A model of another version is fitted again.
_VERSION = 5
# Values that may be below 0; the others are variances, lengths, factors and counts.
_SIGNED = {"centre", "offset", "noise", "usual"}
# Values that are divided by, so they must not be 0.
_DIVISORS = {"spread", "lengths"}
# The errors that reading a damaged document can raise.
_UNREADABLE = (
    *(AttributeError, KeyError, OverflowError),
    *(RecursionError, TypeError, ValueError),
)


def to_document(model: Model) -> str:
    """Write a model as JSON."""
    record = {
        "version": _VERSION,
        "features": model.features,
        "usual": model.usual,
        "large_requests": model.large_requests,
        "parameters": _lists(model.parameters),
        "with_jump": model.with_jump and _lists(model.with_jump),
        "widening": dict(model.widening),
        "tails": model.tails,
        "known_factor": model.known_factor,
        "new_factors": list(model.new_factors.items()),
        "factors_of_processes": list(model.factors_of_processes.items()),
        "unmeasured_factor": model.unmeasured_factor,
        "scores": model.scores and asdict(model.scores),
        "measurements": model.measurements,
        "configurations": model.configurations,
        "factor_before_change": model.factor_before_change,
        "earlier_measurements": model.earlier_measurements,
    }
    return json.dumps(record, allow_nan=False)


def _lists(parameters: Hyperparameters) -> dict[str, Any]:
    return {
        field.name: np.asarray(getattr(parameters, field.name)).tolist()
        for field in fields(Hyperparameters)
    }


def from_document(text: str) -> Model | None:
    """Read a document of `to_document`; None if it is damaged or of another version."""
    try:
        record = json.loads(text)
        return _model(record) if record["version"] == _VERSION else None
    except _UNREADABLE:
        return None


def _model(record: dict[str, Any]) -> Model:
    features = tuple(record["features"])
    if not features or not set(features) <= set(FEATURES):
        raise ValueError(features)
    tails = _numbers("tails", record["tails"])
    if tails.ndim != 1 or not tails.size:
        raise ValueError("tails")
    if set(record["widening"]) != set(SIZES) or len(record["usual"]) != len(SIZES):
        raise ValueError("sizes")
    if (record["with_jump"] is None) != (record["large_requests"] is None):
        raise ValueError("with_jump")
    return Model(
        features=features,
        usual=tuple(_numbers("usual", record["usual"]).tolist()),
        large_requests=_number_or_none("large_requests", record["large_requests"]),
        parameters=_parameters(record["parameters"], len(features)),
        with_jump=record["with_jump"] and _parameters(record["with_jump"], len(features) + 1),
        widening={name: _pair(name, value) for name, value in record["widening"].items()},
        tails=tuple(tails.tolist()),
        known_factor=_number("known_factor", record["known_factor"]),
        new_factors=_factors(record["new_factors"]),
        factors_of_processes=_factors(record["factors_of_processes"]),
        unmeasured_factor=_number("unmeasured_factor", record["unmeasured_factor"]),
        scores=None if record["scores"] is None else _scores(**record["scores"]),
        measurements=int(_number("measurements", record["measurements"])),
        configurations=int(_number("configurations", record["configurations"])),
        factor_before_change=_number("factor_before_change", record["factor_before_change"]),
        earlier_measurements=int(_number("earlier_measurements", record["earlier_measurements"])),
    )


def _parameters(record: dict[str, Any], count: int) -> Hyperparameters:
    """Read the hyperparameters of so many features; ValueError if their shapes are others."""
    values = {name: _numbers(name, value) for name, value in record.items()}
    components = len(values["weights"])
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("centre", "scale", "trend"), (count,)),
        "weights": (components,),
        "lengths": (1 + components, count),
        "noise": (1 + count,),
        **dict.fromkeys(("offset", "spread", "residual"), ()),
    }
    for name, shape in shapes.items():
        if values[name].shape != shape:
            raise ValueError(name)
    found: dict[str, Any] = {
        name: values[name] if shape else float(values[name]) for name, shape in shapes.items()
    }
    return Hyperparameters(**found)


def _scores(patterns: object, small_patterns: object, **shares: object) -> HeldBackErrors:
    return HeldBackErrors(
        patterns=int(_number("patterns", patterns)),
        small_patterns=int(_number("small_patterns", small_patterns)),
        **{name: _number(name, value) for name, value in shares.items()},
    )


def _factors(record: list[tuple[object, object]]) -> dict[int, float]:
    """Read factors by a number; there is at least one."""
    if not record:
        raise ValueError(record)
    return {int(_number("number", n)): _number("factor", value) for n, value in record}


def _number_or_none(name: str, value: object) -> float | None:
    return None if value is None else _number(name, value)


def _number(name: str, value: object) -> float:
    number = _numbers(name, value)
    if number.ndim:
        raise ValueError(name)
    return float(number)


def _pair(name: str, value: object) -> tuple[float, float]:
    first, second = _numbers(name, value).tolist()
    return first, second


def _numbers(name: str, value: object) -> NDArray[np.float64]:
    """Read numbers; ValueError if they are impossible for the value of that name."""
    numbers = np.array(value, float)
    impossible = ~np.isfinite(numbers)
    if name not in _SIGNED:
        impossible |= numbers <= 0 if name in _DIVISORS else numbers < 0
    if impossible.any():
        raise ValueError(name)
    return numbers


def current_model(connection: Connection, system: str, engine: str, state: str) -> Model | None:
    """Read the stored model; None if none is stored, or it was fitted to another `state_of`."""
    stored = stored_model(connection, system, engine)
    if stored is None or stored.state != state:
        return None
    return from_document(stored.document)
