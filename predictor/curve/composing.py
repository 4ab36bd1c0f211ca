"""Compose the curve of an application from the estimates of its phases.

time(n) = Σ bytes_i / bandwidth_i(n), and bandwidth(n) = Σ bytes_i / time(n). Phases at the same
time count as `overlap` says. Bandwidths are distributions, so the sum is drawn many times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.curves import Curve
from predictor.curve.estimates import DRAWS, Estimate
from predictor.curve.overlap import Timeline, seconds_together
from predictor.model.posterior import (
    LEAST_SCATTER,
    Belief,
    ObservedBandwidth,
    Scatter,
    errors_of_predictions,
    errors_without_benchmark,
    fitted,
    inverse_root,
    posterior,
    root,
)
from summario.phases.values import Phase

Array = NDArray[np.float64]

MIB = 1 << 20
_SEED = 9366


@dataclass(frozen=True)
class Bandwidth:
    """A distribution of bandwidth in MiB/s; `mean` is total bytes over the typical time."""

    p10: float
    median: float
    mean: float
    p90: float


@dataclass(frozen=True)
class Point:
    """The prediction with one number of I/O nodes; 0 is direct access.

    `time_s` are expected seconds of I/O. `basis` is "measured" if all parts were measured with this
    number of I/O nodes, else "model".
    """

    io_nodes: int
    bandwidth_mib_s: Bandwidth
    time_s: float
    basis: Literal["measured", "model"] = "measured"


class PartWork(NamedTuple):
    """One part of a phase, for `compose`: the index of the phase and the bytes that the part moves.

    The seed of its noise depends on the part alone, so that another phase never makes the
    application faster.
    """

    phase: int
    bytes: int
    estimate: Estimate
    seed: int


@dataclass(frozen=True, eq=False)
class Composition:
    """An application's bandwidth in MiB/s, as draws.

    Attributes
    ----------
    typical_mib_s : array of shape (n,)
        Expected bandwidth.
    expected_mib_s, runs_mib_s : array of shape (DRAWS, n)
        Draws of the expected bandwidth (the doubt about it), and of single runs, with doubt and
        noise.
    """

    io_nodes: tuple[int, ...]
    total_mib: float
    typical_mib_s: Array
    expected_mib_s: Array
    runs_mib_s: Array

    def only(self, io_nodes: Collection[int]) -> Composition:
        """Keep only some numbers of I/O nodes."""
        kept = [i for i, n in enumerate(self.io_nodes) if n in io_nodes]
        return Composition(
            tuple(self.io_nodes[i] for i in kept),
            self.total_mib,
            self.typical_mib_s[kept],
            self.expected_mib_s[:, kept],
            self.runs_mib_s[:, kept],
        )

    def scaled(self, factors: Array) -> Composition:
        """Multiply all bandwidths by `factors`, one for each number of I/O nodes."""
        return replace(
            self,
            typical_mib_s=self.typical_mib_s * factors,
            expected_mib_s=self.expected_mib_s * factors,
            runs_mib_s=self.runs_mib_s * factors,
        )

    def learned(self, outcomes: Sequence[ObservedBandwidth]) -> Composition:
        """Correct the bandwidths by outcomes of the application (see `posterior`)."""
        expected = np.log(self.expected_mib_s)
        noise = np.log(self.runs_mib_s) - expected
        doubt = expected - expected.mean(axis=0)
        known = doubt.T @ doubt / len(doubt)
        prior = Belief(np.log(self.typical_mib_s), known + errors_of_predictions(self.io_nodes))
        usual = Scatter(np.maximum(noise.std(axis=0), LEAST_SCATTER))
        found = fitted(prior, outcomes, usual)
        after = posterior(prior, outcomes, found)
        # Draws of the prior, moved and stretched to the mean and the covariance of the posterior.
        normal = np.random.default_rng(_SEED).standard_normal(doubt.shape)
        drawn = doubt + normal @ root(errors_of_predictions(self.io_nodes))
        drawn = drawn - drawn.mean(axis=0)
        stretched = inverse_root(drawn.T @ drawn / len(drawn)) @ root(after.covariance)
        learned = after.mean + drawn @ stretched
        return replace(
            self,
            typical_mib_s=np.exp(after.mean),
            expected_mib_s=np.exp(learned),
            runs_mib_s=np.exp(learned + noise * (found.of_runs / usual.of_runs)),
        )

    def points(self, measured: Collection[int]) -> list[Point]:
        """Summarise the draws as points of a curve.

        `measured` are the numbers of I/O nodes with which all parts were measured.
        """
        tenth, median, ninetieth = np.percentile(self.runs_mib_s, [10, 50, 90], axis=0)
        return [
            Point(
                io_nodes=n,
                bandwidth_mib_s=Bandwidth(
                    float(tenth[i]), float(median[i]), float(typical), float(ninetieth[i])
                ),
                time_s=self.total_mib / float(typical),
                basis="measured" if n in measured else "model",
            )
            for i, (n, typical) in enumerate(zip(self.io_nodes, self.typical_mib_s, strict=True))
        ]


def compose(work: Sequence[PartWork], io_nodes: Sequence[int], timeline: Timeline) -> Composition:
    """Compose the curve of an application from all parts that move bytes, at least one.

    Parts with the same estimate share its doubt and its mode; noise is drawn for each part.
    """
    total_mib = sum(part.bytes for part in work) / MIB
    phases = len(timeline.weights)
    shape = (DRAWS, len(io_nodes))
    typical, expected, runs = (np.empty(shape[at:]) for at in (1, 0, 0))
    # One number of I/O nodes at a time, because draws of many phases need much memory.
    for i in range(len(io_nodes)):
        sure_s = np.zeros(phases)
        noisy_s, doubted_s, runs_s = (np.zeros((phases, DRAWS)) for _ in range(3))
        for phase, moved, estimate, seed in work:
            seconds = moved / MIB / estimate.typical_mib_s[i]
            doubt = np.exp(-estimate.doubt[:, i])
            noise = np.exp(-estimate.draw(i, np.random.default_rng([_SEED, seed])))
            sure_s[phase] += seconds
            noisy_s[phase] += seconds * (1 if estimate.is_mean[i] else noise)
            doubted_s[phase] += seconds * doubt
            runs_s[phase] += seconds * doubt * noise * np.exp(-estimate.run[:, i])
        # The geometric mean of the runs' times, relative to the time without noise.
        more = np.exp(np.log(timeline.elapsed(noisy_s) / timeline.elapsed(sure_s)).mean())
        typical[i] = total_mib / (timeline.elapsed(sure_s) * more)
        expected[:, i] = total_mib / (timeline.elapsed(doubted_s) * more)
        runs[:, i] = total_mib / timeline.elapsed(runs_s)
    return Composition(tuple(io_nodes), total_mib, typical, expected, runs)


def without_benchmark(
    phases: Iterable[Phase], curves: Sequence[Curve], io_nodes: Sequence[int]
) -> Composition:
    """Take the mean of all curves for an application whose phases no benchmark resembles."""
    logarithms = np.array(
        [
            [np.log(curve.bandwidths_mib_s.get(n, np.nan)).mean() for n in io_nodes]
            for curve in curves
        ]
    )
    levels = np.nanmean(logarithms, axis=1, keepdims=True)
    typical = np.exp(np.nanmean(levels) + np.nanmean(logarithms - levels, axis=0))
    normal = np.random.default_rng(_SEED).standard_normal((2, DRAWS, len(io_nodes)))
    doubt = normal[0] @ root(errors_without_benchmark(io_nodes))
    expected = typical * np.exp(doubt)
    return Composition(
        tuple(io_nodes),
        sum(phase.bytes for phase in phases) / MIB,
        typical,
        expected,
        expected * np.exp(LEAST_SCATTER * normal[1]),
    )


def joined(compositions: Iterable[Composition | None]) -> Composition:
    """Join compositions whose draws belong together, so that a run of the first corrects all.

    The numbers of I/O nodes follow each other, those of the first first. None is left out.
    """
    known = [composition for composition in compositions if composition is not None]
    return Composition(
        io_nodes=tuple(n for one in known for n in one.io_nodes),
        total_mib=sum(one.total_mib for one in known),
        typical_mib_s=np.concatenate([one.typical_mib_s for one in known]),
        expected_mib_s=np.hstack([one.expected_mib_s for one in known]),
        runs_mib_s=np.hstack([one.runs_mib_s for one in known]),
    )


def parted(
    joint: Composition, compositions: Iterable[Composition | None]
) -> list[Composition | None]:
    """Divide what was `joined` from some compositions into as many again."""
    parts: list[Composition | None] = []
    start = 0
    for composition in compositions:
        if composition is None:
            parts.append(None)
            continue
        own = slice(start, start + len(composition.io_nodes))
        start = own.stop
        parts.append(
            Composition(
                composition.io_nodes,
                composition.total_mib,
                joint.typical_mib_s[own],
                joint.expected_mib_s[:, own],
                joint.runs_mib_s[:, own],
            )
        )
    return parts


def observed_mib_s(phases: Sequence[Phase]) -> float:
    """Compute the bandwidth that a run got: all bytes over the time that its phases took.

    A run without I/O, or without times in its log, raises a ValueError.
    """
    moved = sum(phase.bytes for phase in phases)
    seconds = seconds_together(phases)
    if not moved or not seconds > 0:
        raise ValueError("the log has no bytes or no I/O time, so there is no bandwidth")
    return moved / MIB / seconds
