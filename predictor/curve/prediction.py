"""The prediction: the bandwidth of an application with each number of I/O nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import is_

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import InputError
from ioncast_base.wording import each_in_words, in_digits
from predictor.curve.composing import (
    MIB,
    Composition,
    Point,
    joined,
    observed_mib_s,
    parted,
    without_benchmark,
)
from predictor.curve.decision import (
    MIN_CONFIDENCE,
    TOLERANCE,
    Decision,
    decide,
    fewest_near_best,
    too_little_known,
)
from predictor.curve.estimates import Estimate
from predictor.curve.matched_work import (
    MatchedInput,
    composition_of,
    estimates_of,
    in_order,
    matches_of,
    tasks_of,
)
from predictor.curve.own_run import OwnRun
from predictor.curve.warnings import RESTS_ON_RUNS, implausible_warnings, limit_warnings
from predictor.matching.configurations import MatchedPhase, MatchKey
from predictor.model.plausible import is_implausible
from predictor.model.posterior import ObservedBandwidth
from predictor.model.system_model import SystemModel
from summario.phases.values import Phase
from summario.runs.hosts import NodeCount

# Standard deviation of the logarithm of the bandwidth that a log claims, over that of the run
# (benchmarks/own_past.py).
_LOGS_ARE_OFF = 0.14


@dataclass(frozen=True)
class DecisionRules:
    """A site's rules for decisions.

    Attributes
    ----------
    tolerance : float
        The share of the best bandwidth that a decision may give up for fewer I/O nodes.
    available, default : int or None
        The most I/O nodes that a job gets (None: no limit), and those of a job of which nothing is
        known.
    min_confidence : float
        The least probability that a decision reaches 0.9 of the best bandwidth, or is better than
        the default.
    """

    tolerance: float = TOLERANCE
    available: int | None = None
    default: int | None = None
    min_confidence: float = MIN_CONFIDENCE


@dataclass(frozen=True)
class EarlierRun:
    """An earlier run: its number of I/O nodes, and all bytes over the time of its phases.

    `day` counts from any moment; None if it is not known. `scatter` is the standard deviation of
    the logarithm, besides the usual scatter of runs. `is_cut` says that too few I/O nodes were
    free.
    """

    io_nodes: int
    bandwidth_mib_s: float
    day: float | None = None
    scatter: float = 0.0
    is_cut: bool = False


@dataclass(frozen=True)
class Best:
    """The number of I/O nodes with the highest expected bandwidth; None if nothing is predicted."""

    io_nodes: int | None
    bandwidth_mib_s: float | None
    why: str


@dataclass(frozen=True, eq=False)
class Candidates:
    """The numbers of I/O nodes that a decision may choose from.

    The draws have the shape (draws, points): expected MiB/s, jointly over the points of `curve`,
    and a run of each draw. `unknown` is the reason why nothing can be chosen, as a clause.
    """

    curve: tuple[Point, ...]
    expected_mib_s: NDArray[np.float64]
    runs_mib_s: NDArray[np.float64]
    unknown: str | None

    @property
    def scatter(self) -> NDArray[np.float64]:
        """Standard deviation of the logarithm of a run's bandwidth, by point."""
        found: NDArray[np.float64] = np.log(self.runs_mib_s / self.expected_mib_s).std(axis=0)
        return found

    def decide(self, policy: DecisionRules, share: float = 1.0) -> Decision:
        """Decide by the rules of a site; `share` is as for `decision.decide`."""
        return decide(
            self.curve,
            self.expected_mib_s,
            self.runs_mib_s,
            **asdict(policy),
            share=share,
            unknown=self.unknown,
        )


@dataclass(frozen=True)
class Prediction:
    """The prediction for an application on a system.

    Attributes
    ----------
    job : int or str or None
        The job whose phases were used; None if neither the phases nor the log name it.
    curve : tuple of Point
        By number of I/O nodes; empty if nothing is known.
    earlier_runs, implausible_runs : tuple of EarlierRun
        The runs that corrected the curve, the oldest first, and those that did not, because their
        bandwidths are implausible.
    choice : Candidates
        The points and draws of the decision, to decide by other rules.
    uncorrected : Composition or None
        The draws before earlier runs corrected them; None if nothing is known.
    own_run : OwnRun or None
        The run of the phases beside the prediction, where asking.py compared.
    """

    system: str
    job: int | str | None
    curve: tuple[Point, ...]
    best: Best
    decision: Decision
    earlier_runs: tuple[EarlierRun, ...]
    phases: tuple[MatchedPhase, ...]
    warnings: tuple[str, ...]
    choice: Candidates = field(compare=False, repr=False)
    nodes: NodeCount | None = None
    implausible_runs: tuple[EarlierRun, ...] = ()
    uncorrected: Composition | None = field(default=None, compare=False, repr=False)
    own_run: OwnRun | None = None

    @property
    def earlier(self) -> EarlierRun | None:
        """The newest run that corrected the curve."""
        return self.earlier_runs[-1] if self.earlier_runs else None


def predict(
    phases: Sequence[Phase],
    knowledge: SystemModel,
    *,
    system: str,
    nodes: int | None = None,
    io_nodes: Sequence[int] | None = None,
    ran_with: int | None = None,
    earlier: Sequence[EarlierRun] = (),
    policy: DecisionRules | None = None,
) -> Prediction:
    """Predict an application's bandwidth with each number of I/O nodes.

    Parameters
    ----------
    io_nodes : sequence of int, optional
        The numbers of I/O nodes to predict; by default all that were measured for the phases' kinds
        of I/O, or, without a model, for every matched benchmark.
    ran_with : int, optional
        The number of I/O nodes of the run of the phases: its bandwidth then corrects the curve.
    earlier : sequence of EarlierRun
        Other runs of the application that do the same I/O, the oldest first. All correct the curve.
        Implausible bandwidths correct nothing; a warning names them.

    Raises
    ------
    InputError
        When the phases are of several jobs, or the rules are not valid.
    """
    [prediction] = predict_together(
        [phases],
        knowledge,
        system=system,
        nodes=[nodes],
        io_nodes=io_nodes,
        ran_with=ran_with,
        earlier=earlier,
        policy=policy,
    )
    return prediction


def predict_together(
    versions: Sequence[Sequence[Phase]],
    knowledge: SystemModel,
    *,
    system: str,
    nodes: Sequence[int | None],
    io_nodes: Sequence[int] | None = None,
    ran_with: int | None = None,
    earlier: Sequence[EarlierRun] = (),
    policy: DecisionRules | None = None,
) -> list[Prediction]:
    """Predict a run and changed versions of it, with draws that belong together.

    Draw i of one version and draw i of another have the same doubts about benchmarks. So the draws
    tell how sure a difference between versions is; two intervals alone do not tell it. The earlier
    runs are runs of the first version; with a model they correct all. `nodes` are the compute nodes
    of each version; the other parameters are those of `predict`.
    """
    jobs = {phase.job for phases in versions for phase in phases}
    if len(jobs) > 1:
        raise InputError(f"the phases are of {len(jobs)} jobs", remedy="predict one job at a time")
    first, *others = versions
    if knowledge.model is None and others:
        # Nothing is drawn from a model, so each version has its own numbers of I/O nodes.
        alone = partial(
            predict,
            knowledge=knowledge,
            system=system,
            io_nodes=io_nodes,
            policy=policy,
        )
        return [
            alone(first, nodes=nodes[0], ran_with=ran_with, earlier=earlier),
            *(alone(other, nodes=own) for other, own in zip(others, nodes[1:], strict=True)),
        ]
    found = [
        _version(phases, knowledge, own, io_nodes)
        for phases, own in zip(versions, nodes, strict=True)
    ]
    numbers = {n for one in found for n in one.asked} | {run.io_nodes for run in earlier}
    numbers |= set() if ran_with is None else {ran_with}
    estimates, points = _estimated(found, knowledge, numbers)
    composed = [composition_of(one.ordered, estimates, points) for one in found]
    rests_on_runs = composed[0] is None and _can_rest_on(earlier, first, knowledge)
    if rests_on_runs:
        points = knowledge.measured_io_nodes
        found[0] = replace(found[0], asked=tuple(io_nodes or points))
        composed[0] = without_benchmark(first, knowledge.curves, points)
    runs: tuple[EarlierRun, ...] = ()
    if composed[0] is not None:
        runs = tuple(run for run in earlier if run.io_nodes in points)
        if not rests_on_runs and ran_with is not None and ran_with in points:
            got_mib_s = _observed(found[0].ordered)
            runs += (EarlierRun(ran_with, got_mib_s, scatter=_LOGS_ARE_OFF),)
    doubted = [
        _doubted(composition, one.ordered, estimates, knowledge)
        for one, composition in zip(found, composed, strict=True)
    ]
    # The mean of other benchmarks tells nothing about what is possible.
    implausible = [] if rests_on_runs else _implausible(doubted[0], runs)
    left_out = {run for run, _ in implausible}
    runs = tuple(run for run in runs if run not in left_out)
    predictions = []
    for one, own_nodes, before, wider, after in zip(
        found, nodes, composed, doubted, _corrected(composed, doubted, runs), strict=True
    ):
        curve, expected, of_runs = _curve(one, after)
        own = estimates if before is None or after is None else _scaled(estimates, before, after)
        matched = tuple(_matched(task, own, points) for task in one.tasks)
        best, choice = _choose(curve, expected, of_runs, one, knowledge, runs)
        predictions.append(
            Prediction(
                system=system,
                job=next(iter(jobs), None),
                curve=curve,
                best=best,
                decision=choice.decide(policy or DecisionRules()),
                earlier_runs=runs,
                phases=matched,
                warnings=(
                    *(
                        [RESTS_ON_RUNS]
                        if rests_on_runs and one is found[0]
                        else limit_warnings(matched, knowledge, own_nodes, one.asked, ran_with)
                    ),
                    *implausible_warnings(
                        [(run.io_nodes, run.bandwidth_mib_s, p90) for run, p90 in implausible]
                    ),
                ),
                choice=choice,
                implausible_runs=tuple(run for run, _ in implausible),
                uncorrected=wider,
            )
        )
    return predictions


@dataclass(frozen=True)
class _Version:
    """A version of a run: its tasks, also by time, and the numbers of I/O nodes to predict."""

    tasks: tuple[MatchedInput, ...]
    ordered: tuple[MatchedInput, ...]
    asked: tuple[int, ...]


def _version(
    phases: Sequence[Phase],
    knowledge: SystemModel,
    nodes: int | None,
    io_nodes: Sequence[int] | None,
) -> _Version:
    tasks = tasks_of(phases, knowledge, nodes)
    usable = [found for found in matches_of(tasks) if found.curve]
    return _Version(tasks, in_order(tasks), tuple(io_nodes or knowledge.io_nodes(usable)))


def _can_rest_on(
    runs: Sequence[EarlierRun], phases: Sequence[Phase], knowledge: SystemModel
) -> bool:
    """Whether a prediction may rest on earlier runs alone."""
    numbers = [run.io_nodes for run in runs if run.io_nodes in knowledge.measured_io_nodes]
    moved = sum(phase.bytes for phase in phases)
    return bool(moved and knowledge.curves) and too_little_known(0, moved, numbers) is None


def _estimated(
    versions: Sequence[_Version], knowledge: SystemModel, io_nodes: Iterable[int]
) -> tuple[dict[MatchKey, Estimate], list[int]]:
    """Estimate the parts of all versions, with the numbers of I/O nodes that can be estimated."""
    # Each phase stands beside its changed ones, so that their doubts are drawn at once.
    places = {task.index: place for place, task in enumerate(versions[0].ordered)}
    together = [task for version in versions for task in version.ordered]
    beside = sorted(together, key=lambda task: places.get(task.index, len(places)))
    usable = [found for found in matches_of(beside) if found.curve]
    common = _common(found.curve.bandwidths_mib_s for found in usable if found.curve)
    known = knowledge.reaches if knowledge.model else common.__contains__
    points = sorted(filter(known, io_nodes))
    return estimates_of(usable, knowledge, points), points


def _observed(tasks: Sequence[MatchedInput]) -> float:
    """Compute the bandwidth of the run, from the phases of which a part has a benchmark."""
    known = [task.phase for task in tasks if any(found.curve for _, found in task.parts)]
    try:
        return observed_mib_s(known)
    except ValueError as error:
        raise InputError(f"the run cannot correct its own prediction: {error}") from error


def _doubted(
    composition: Composition | None,
    tasks: Sequence[MatchedInput],
    estimates: Mapping[MatchKey, Estimate],
    knowledge: SystemModel,
) -> Composition | None:
    """Compose again with the doubts about benchmarks that do other I/O."""
    found = {match.key: match for match in matches_of(tasks) if match.key in estimates}
    doubts = {key: knowledge.doubt(match) for key, match in found.items()}
    if composition is None or not any(doubts.values()):
        return composition
    points = composition.io_nodes
    wider = {key: estimates[key].doubted(doubt, points) for key, doubt in doubts.items()}
    return composition_of(tasks, wider, points)


def _corrected(
    compositions: Sequence[Composition | None],
    doubted: Sequence[Composition | None],
    runs: Sequence[EarlierRun],
) -> list[Composition | None]:
    """Correct compositions by earlier runs of the first, one after the other, the oldest first.

    Runs scatter. So the doubt that a benchmark does other I/O widens the interval, and runs correct
    the rest. But runs that are off by more than this doubt show that the other I/O makes a
    difference: they correct it too.
    """
    if not runs:
        return list(doubted)
    one, wider = joined(compositions), joined(doubted)
    if all(map(is_, compositions, doubted)) or _are_off(wider, runs):
        last = _learned(wider, runs)
    else:
        last = wider.scaled(_learned(one, runs).typical_mib_s / one.typical_mib_s)
    return parted(last, doubted)


def _implausible(
    doubted: Composition | None, runs: Sequence[EarlierRun]
) -> list[tuple[EarlierRun, float]]:
    """Find the runs that are too fast to be true, with the p90 that is expected of each."""
    if doubted is None or not runs:
        return []
    p90s_mib_s = np.percentile(doubted.runs_mib_s, 90, axis=0)
    beside = [(run, float(p90s_mib_s[doubted.io_nodes.index(run.io_nodes)])) for run in runs]
    return [(run, p90) for run, p90 in beside if is_implausible(run.bandwidth_mib_s, p90)]


def _learned(composition: Composition, runs: Sequence[EarlierRun]) -> Composition:
    """Correct a composition by all runs."""
    return composition.learned(
        [
            ObservedBandwidth(
                composition.io_nodes.index(run.io_nodes),
                math.log(run.bandwidth_mib_s),
                run.day,
                run.scatter,
                run.is_cut,
            )
            for run in runs
        ]
    )


def _are_off(doubted: Composition, runs: Sequence[EarlierRun]) -> bool:
    """Whether the mean of runs is off by more than the doubt; n runs scatter by 1/sqrt(n)."""
    if not runs:
        return False
    at = [doubted.io_nodes.index(run.io_nodes) for run in runs]
    got = np.log([run.bandwidth_mib_s for run in runs])
    off = (got - np.log(doubted.typical_mib_s[at])).mean() * math.sqrt(len(runs))
    return bool(abs(off) > np.log(doubted.expected_mib_s[:, at]).std(axis=0).mean())


def _curve(
    version: _Version, composition: Composition | None
) -> tuple[tuple[Point, ...], NDArray[np.float64], NDArray[np.float64]]:
    """Summarise a composition as the points that were asked for, with draws: expected, of runs."""
    if composition is None:
        return (), np.empty((0, 0)), np.empty((0, 0))
    shown = composition.only(version.asked)
    measured = _common(found.repetitions for found in matches_of(version.ordered))
    return tuple(shown.points(measured)), shown.expected_mib_s, shown.runs_mib_s


def _scaled(
    estimates: Mapping[MatchKey, Estimate], before: Composition, after: Composition
) -> dict[MatchKey, Estimate]:
    """Correct estimates as their composition was corrected."""
    factors = after.typical_mib_s / before.typical_mib_s
    return {key: one.scaled(factors) for key, one in estimates.items()}


def _matched(
    task: MatchedInput, estimates: Mapping[MatchKey, Estimate], io_nodes: Sequence[int]
) -> MatchedPhase:
    times: list[dict[int, float]] = []
    for part, found in task.parts:
        speeds = estimates[found.key].typical_mib_s if found.key in estimates else ()
        times.append(
            {n: part.bytes / MIB / float(v) for n, v in zip(io_nodes, speeds, strict=False)}
        )
    return MatchedPhase(task.index, task.phase, task.parts, tuple(times))


def _choose(
    curve: Sequence[Point],
    expected: NDArray[np.float64],
    of_runs: NDArray[np.float64],
    version: _Version,
    knowledge: SystemModel,
    runs: Sequence[EarlierRun],
) -> tuple[Best, Candidates]:
    """Find the best number of I/O nodes, and collect the points that a decision may choose."""
    trusted = [i for i, point in enumerate(curve) if knowledge.decides_on(point.io_nodes)]
    points = tuple(curve[i] for i in trusted)
    parts = [pair for task in version.tasks for pair in task.parts]
    moved = sum(part.bytes for part, _ in parts)
    known = sum(part.bytes for part, found in parts if found.curve)
    best = _best(points, version.asked, moved=moved, known=known)
    unknown = (
        best.why
        if best.io_nodes is None
        else too_little_known(known, moved, [run.io_nodes for run in runs])
    )
    return best, Candidates(points, expected[:, trusted], of_runs[:, trusted], unknown)


def _common(cells: Iterable[Iterable[int]]) -> set[int]:
    """Intersect sets of numbers of I/O nodes."""
    sets = [set(numbers) for numbers in cells]
    return set.intersection(*sets) if sets else set()


def _best(curve: Sequence[Point], asked: Sequence[int], moved: int, known: int) -> Best:
    """Find the highest expected bandwidth; `known` of all `moved` bytes have a benchmark."""
    if not moved:
        return Best(None, None, "the run has no I/O phases")
    if not known and not curve:
        return Best(None, None, "nothing in the database resembles any phase")
    if not curve:
        return Best(None, None, f"the matched benchmarks do not cover {each_in_words(asked)}")
    points = {point.io_nodes: point for point in curve}
    means = {n: point.bandwidth_mib_s.mean for n, point in points.items()}
    top = points[fewest_near_best(means, 0)]
    why = f"highest expected bandwidth, {in_digits(top.bandwidth_mib_s.mean)} MiB/s"
    del means[top.io_nodes]
    if means:
        second = points[fewest_near_best(means, 0)]
        gain = top.bandwidth_mib_s.mean / second.bandwidth_mib_s.mean - 1
        more = f"{gain:.0%} more than" if round(gain, 2) else "about as much as"
        why += f", {more} with {second.io_nodes}"
    else:
        why = f"the only number of I/O nodes predicted, {in_digits(top.bandwidth_mib_s.mean)} MiB/s"
    if not known:
        why += "; by earlier runs alone, because nothing in the database resembles any phase"
    elif known < moved:
        why += f"; for {known / moved:.0%} of the bytes"
    return Best(top.io_nodes, top.bandwidth_mib_s.mean, why)
