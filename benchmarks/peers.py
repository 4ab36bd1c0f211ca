"""Other models with the same features and measurements, for comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)

from benchdb.measurements.curves import Curve
from predictor.model.features import pattern, with_io_nodes
from predictor.model.system_model import measurements

SEED = 9366

Array = NDArray[np.float64]


def peers() -> dict[str, Any]:
    """Estimators by name, with the best parameters in trials on left-out patterns."""
    return {
        "random forest": RandomForestRegressor(100, random_state=SEED),
        "extra trees": ExtraTreesRegressor(100, random_state=SEED),
        "gradient boosting": GradientBoostingRegressor(
            n_estimators=300,
            max_depth=5,
            learning_rate=0.06,
            subsample=0.6,
            max_features=0.5,
            random_state=SEED,
        ),
    }


def fitted(curves: Sequence[Curve]) -> dict[str, Any]:
    """Fit each estimator to the mean logarithm of bandwidth in each cell."""
    patterns, io_nodes, logarithms = measurements(curves)
    places, cell = np.unique(_known(patterns, io_nodes), axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    means = np.bincount(cell, logarithms) / np.bincount(cell)
    return {name: estimator.fit(places, means) for name, estimator in peers().items()}


def means_of(estimator: Any, curve: Curve, io_nodes: Sequence[int]) -> Mapping[int, float]:
    """Predicted MiB/s of a curve's configuration by number of I/O nodes."""
    row = pattern(curve.config, stonewalled=curve.stonewalled)
    found = estimator.predict(_known(np.tile(row, (len(io_nodes), 1)), np.array(io_nodes)))
    return dict(zip(io_nodes, np.exp(found).tolist(), strict=True))


def _known(patterns: Array, io_nodes: NDArray[np.int64]) -> Array:
    """Features with 0 for unknown bytes, because a stone wall ended the runs."""
    return np.nan_to_num(with_io_nodes(patterns, io_nodes))
