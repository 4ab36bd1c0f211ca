"""The level of a system in time: how much faster or slower than usual all of its runs are.

The level is a posterior with one number, whose outcomes are the bandwidths of jobs beside their
usual ones. Measured on a year of Cori and of Mira (docs/diagnosis.md), it does not predict the
bandwidth of a run better than the usual one does. So it decides nothing: it is shown, and runs of a
bad week have a wider interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioncast.diagnosis.normal import Bools, Floats, Ints, Normals, Runs, medians
from predictor.model.posterior import (
    LEAST_SCATTER,
    Belief,
    ObservedBandwidth,
    Scatter,
    posterior,
)

# Runs so many days before and after tell the level, at least so many of them, and on each side at
# most so many jobs.
_DAYS, _FEWEST_RUNS, _MOST_JOBS = 7.0, 5, 30
# Standard deviations of the logarithm of the level, and of its change in a day.
_LEVEL, _DRIFT = 0.3, 0.05
# Nine of ten values of a normal distribution are within so many standard deviations.
_BAND, _OF_NINE_IN_TEN = (0.05, 0.95), 1.645
# Bandwidths whose deviation is computed from few runs scatter by at least this.
_LEAST_SPREAD = 0.03


@dataclass(frozen=True)
class Weather:
    """The level of a system around a run: bandwidth beside the usual one, 1 is usual.

    Attributes
    ----------
    deviation : float
        Standard deviation of the logarithm of the level.
    widening : pair of float
        Deviations of slower and of faster runs beside their usual ones: 1 is usual, or less.
    slow_jobs_of_day, jobs_of_day, slow_jobs_of_week, jobs_of_week : int
        Other jobs whose start is at most a day, or 7 days, from that of the run.
    """

    level: float
    deviation: float
    widening: tuple[float, float]
    slow_jobs_of_day: int
    jobs_of_day: int
    slow_jobs_of_week: int
    jobs_of_week: int

    def interval(self, log_mib_s: float, spread: float) -> tuple[float, float]:
        """Compute the bandwidths in MiB/s between which nine of ten runs are expected.

        Parameters
        ----------
        log_mib_s, spread : float
            The usual logarithm, and the standard deviation of logarithms.
        """
        # Deviations from the level have its own error in them.
        scatter = np.array(self.widening) * np.hypot(spread, _LEAST_SPREAD)
        down, up = _OF_NINE_IN_TEN * scatter
        middle = log_mib_s + np.log(self.level)
        return float(np.exp(middle - down)), float(np.exp(middle + up))


class WeatherOfSystems:
    """The runs of each system by time, for the weather of many runs."""

    def __init__(self, runs: Runs, normals: Normals) -> None:
        self._runs, self._normals = runs, normals
        self._is_slow = normals.is_slow
        names = runs.rows["system"].to_pylist()
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self._system = np.array([numbers[name] for name in names], np.int64)
        is_known = np.isfinite(normals.log_mib_s) & np.isfinite(runs.day)
        known = np.flatnonzero(is_known)
        self._order = known[np.lexsort((runs.day[known], self._system[known]))]
        self._days = runs.day[self._order]
        self._first = np.searchsorted(self._system[self._order], np.arange(len(numbers) + 1))

    def weather_at(self, place: int) -> Weather | None:
        """Find the level of the system at the time of a run, from other jobs.

        None if fewer than 5 runs with a usual bandwidth are near, or the time is not known.
        """
        near = self._near(place)
        if len(near) < _FEWEST_RUNS:
            return None
        runs, normals = self._runs, self._normals
        deviation, spread = -normals.log_ratio[near], normals.spread[near]
        # Logs of one job saw the same weather, so they count once.
        jobs, job = np.unique(runs.job[near], return_inverse=True)
        days = medians(runs.day[near] - runs.day[place], job)
        belief = _level(days, medians(deviation, job), medians(spread, job))
        level = float(belief.mean[0])
        errors = (deviation - level) / np.hypot(spread, _LEAST_SPREAD)
        down, up = (np.abs(np.quantile(errors, _BAND)) / _OF_NINE_IN_TEN).tolist()
        slow = np.bincount(job, self._is_slow[near]) > 0
        of_day = np.abs(days) <= 1
        return Weather(
            level=float(np.exp(level)),
            deviation=float(np.sqrt(belief.covariance[0, 0])),
            widening=(max(down, 1.0), max(up, 1.0)),
            slow_jobs_of_day=_count(slow & of_day),
            jobs_of_day=_count(of_day),
            slow_jobs_of_week=_count(slow),
            jobs_of_week=len(jobs),
        )

    def _near(self, place: int) -> Ints:
        """List the runs of other jobs within some days."""
        day, system = self._runs.day[place], self._system[place]
        of_system = slice(self._first[system], self._first[system + 1])
        days = self._days[of_system]
        first = np.searchsorted(days, day - _DAYS, side="left")
        end = np.searchsorted(days, day + _DAYS, side="right")
        near = self._order[of_system][first:end]
        others: Ints = near[self._runs.job[near] != self._runs.job[place]]
        return others


def _level(days: Floats, deviation: Floats, spread: Floats) -> Belief:
    """Find the logarithm of the level at day 0, from runs before it and after it."""
    sides = []
    for is_side in (days <= 0, days > 0):
        at = np.flatnonzero(is_side)
        # The nearest run is the last outcome, so that its day counts most.
        at = at[np.argsort(-np.abs(days[at]), kind="stable")][-_MOST_JOBS:]
        outcomes = [
            ObservedBandwidth(
                0, float(deviation[each]), -abs(float(days[each])), float(spread[each])
            )
            for each in at
        ]
        prior = Belief(np.zeros(1), np.full((1, 1), _LEVEL**2))
        scatter = Scatter(np.array([LEAST_SCATTER]), _DRIFT)
        sides.append(posterior(prior, outcomes, scatter, day=0.0))
    # Both have the prior in them, so one of them goes.
    precision = sum(1 / side.covariance[0, 0] for side in sides) - 1 / _LEVEL**2
    variance = 1 / max(precision, 1 / _LEVEL**2)
    mean = variance * sum(side.mean[0] / side.covariance[0, 0] for side in sides)
    return Belief(np.array([mean]), np.array([[variance]]))


def _count(mask: Bools) -> int:
    return int(np.count_nonzero(mask))
