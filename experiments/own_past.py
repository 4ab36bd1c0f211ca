"""Compares predictions with those that the bandwidth of the log's own run corrects (`ran_with`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean

from experiments.datasets import DataSet
from experiments.evaluation import named_curves
from experiments.provenance import Log
from predictor.curve.composing import observed_mib_s
from predictor.curve.prediction import Prediction, predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel
from predictor.validation.against_reruns import mean_of_cells


@dataclass(frozen=True)
class OwnPast:
    """Errors of the predictions from one log, without and with the bandwidth of its run.

    Attributes
    ----------
    log : Log
        The log, with its application and its number of I/O nodes.
    claimed_mib_s : float
        The bandwidth of the run, by its log.
    measured_mib_s : float
        The mean of the application's runs with as many I/O nodes.
    without, corrected : mapping of int to float
        |predicted / mean of the runs - 1|, by number of I/O nodes.
    """

    log: Log
    claimed_mib_s: float
    measured_mib_s: float
    without: Mapping[int, float]
    corrected: Mapping[int, float]

    @property
    def worse(self) -> float:
        """By how much the mean error is larger with the run than without it."""
        return fmean(self.corrected.values()) - fmean(self.without.values())


def knowledge_of(data: DataSet) -> SystemModel:
    """Fit a model to the benchmarks of a data set."""
    known = tuple(named_curves(data).values())
    return SystemModel(known, fit_model(known))


def own_pasts(data: DataSet, knowledge: SystemModel) -> Iterator[OwnPast]:
    """Predict from each log of a data set, without and with the bandwidth of its run."""
    system, nodes = data.provenance.system, data.provenance.nodes
    for log, phases in data.phases.items():
        reruns: dict[int, list[float]] = {}
        for rerun in data.applications[log.application]:
            reruns.setdefault(rerun.io_nodes, []).append(rerun.bandwidth_mib_s)
        measured = mean_of_cells(reruns)
        without, corrected = (
            _errors(
                predict(phases, knowledge, system=system, nodes=nodes, ran_with=ran_with), measured
            )
            for ran_with in (None, log.io_nodes)
        )
        yield OwnPast(log, observed_mib_s(phases), measured[log.io_nodes], without, corrected)


def _errors(prediction: Prediction, measured: Mapping[int, float]) -> dict[int, float]:
    return {
        point.io_nodes: abs(point.bandwidth_mib_s.mean / measured[point.io_nodes] - 1)
        for point in prediction.curve
        if point.io_nodes in measured
    }
