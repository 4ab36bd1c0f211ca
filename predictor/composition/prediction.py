"""The prediction: the bandwidth of an application with each number of I/O nodes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import InputError
from ioncast_base.wording import each_in_words, in_digits
from predictor.composition.caveats import limits
from predictor.composition.composing import (
    MIB,
    Composition,
    Point,
    Work,
    anchored,
    compose,
    observed_mib_s,
)
from predictor.composition.decision import (
    TOLERANCE,
    Decision,
    decide,
    fewest_near_best,
)
from predictor.composition.estimates import Estimate, as_expected, as_measured
from predictor.composition.overlap import timeline_of
from predictor.matching.configurations import Match, MatchedPhase, MatchKey, configuration
from predictor.matching.job_nodes import JobNodes
from predictor.matching.same_application import weights
from predictor.model.system_model import Knowledge
from summario.phases.values import Part, Phase

# The covariances of more configurations would not fit into memory.
_CONFIGURATIONS_AT_ONCE = 50
_SEED = 9366


@dataclass(frozen=True)
class Policy:
    """A site's rules for decisions.

    Attributes
    ----------
    tolerance : float
        The share of the best bandwidth that a decision may give up for fewer I/O nodes.
    available : int or None
        The most I/O nodes that a job gets; None for no limit.
    default : int or None
        The number of I/O nodes that a job gets if nothing is known about it.
    """

    tolerance: float = TOLERANCE
    available: int | None = None
    default: int | None = None


@dataclass(frozen=True)
class EarlierRun:
    """The number of I/O nodes and the bandwidth of an earlier run of the application.

    Attributes
    ----------
    io_nodes : int
        Its number of I/O nodes.
    bandwidth_mib_s : float
        All bytes over the time of its phases.
    """

    io_nodes: int
    bandwidth_mib_s: float


@dataclass(frozen=True)
class Best:
    """The number of I/O nodes with the highest expected bandwidth; None if nothing is predicted."""

    io_nodes: int | None
    bandwidth_mib_s: float | None
    why: str


@dataclass(frozen=True, eq=False)
class Choice:
    """The numbers of I/O nodes that a decision may choose from.

    Attributes
    ----------
    curve : tuple of Point
        The points that may be chosen.
    expected_mib_s : ndarray of shape (draws, points)
        Draws of the expected bandwidths, jointly over the points.
    unknown : str or None
        The reason why nothing can be chosen, as a clause.
    """

    curve: tuple[Point, ...]
    expected_mib_s: NDArray[np.float64]
    unknown: str | None

    def decide(self, policy: Policy) -> Decision:
        """Decide by the rules of a site.

        Raises
        ------
        InputError
            When the policy is not valid.
        """
        return decide(self.curve, self.expected_mib_s, **asdict(policy), unknown=self.unknown)


@dataclass(frozen=True)
class Prediction:
    """The prediction for an application on a system.

    Attributes
    ----------
    system : str
        The system.
    job : int or str or None
        The job whose phases were used; None if neither the phases nor the log name it.
    curve : tuple of Point
        By number of I/O nodes; empty if nothing is known.
    best : Best
        The number of I/O nodes with the highest expected bandwidth.
    decision : Decision
        The answer to the scheduler.
    earlier_runs : tuple of EarlierRun
        The runs that corrected the curve, the oldest first.
    phases : tuple of MatchedPhase
        The phases and their matches.
    warnings : tuple of str
        Limits of the prediction, a sentence each.
    choice : Choice
        The points and draws of the decision, to decide by other policies.
    nodes : JobNodes
        The number of compute nodes of the job, and where it comes from.
    """

    system: str
    job: int | str | None
    curve: tuple[Point, ...]
    best: Best
    decision: Decision
    earlier_runs: tuple[EarlierRun, ...]
    phases: tuple[MatchedPhase, ...]
    warnings: tuple[str, ...]
    choice: Choice = field(compare=False, repr=False)
    nodes: JobNodes = field(default_factory=JobNodes)

    @property
    def earlier(self) -> EarlierRun | None:
        """The newest run that corrected the curve."""
        return self.earlier_runs[-1] if self.earlier_runs else None


def predict(
    phases: Sequence[Phase],
    knowledge: Knowledge,
    *,
    system: str,
    nodes: int | None = None,
    io_nodes: Sequence[int] | None = None,
    ran_with: int | None = None,
    earlier: Sequence[EarlierRun] = (),
    policy: Policy | None = None,
) -> Prediction:
    """Predict an application's bandwidth with each number of I/O nodes.

    Parameters
    ----------
    phases : sequence of Phase
        The phases of one earlier run.
    knowledge : Knowledge
        The curves and the model of the system.
    system : str
        The system's name.
    nodes : int, optional
        Compute nodes of the job.
    io_nodes : sequence of int, optional
        The numbers of I/O nodes to predict; by default all that were measured for the phases'
        kinds of I/O, or, without a model, for every matched benchmark.
    ran_with : int, optional
        The number of I/O nodes of the run of the phases: its bandwidth then corrects the curve.
    earlier : sequence of EarlierRun
        Other runs of the application that do the same I/O, the oldest first. Each corrects the
        curve, but weighs less than the next newer one (see `weights`).
    policy : Policy, optional
        The site's rules for the decision.

    Raises
    ------
    InputError
        When the phases are of several jobs, or the policy is not valid.
    """
    jobs = {phase.job for phase in phases}
    if len(jobs) > 1:
        raise InputError(f"the phases are of {len(jobs)} jobs", remedy="predict one job at a time")
    tasks = _tasks(phases, knowledge, nodes)
    # The draws of a phase and its rounding must not depend on its place in the list.
    ordered = sorted(
        tasks,
        key=lambda task: (task.phase.start_seconds, task.phase.end_seconds, _text(task.phase)),
    )
    matches = list({found.key: found for task in ordered for _, found in task.parts}.values())
    usable = [found for found in matches if found.curve]
    common = _common(found.curve.bandwidths_mib_s for found in usable if found.curve)
    asked = list(io_nodes or knowledge.io_nodes(usable))
    past = {run.io_nodes for run in earlier}
    points = sorted({*asked, *past, *([] if ran_with is None else [ran_with])})
    known = knowledge.reaches if knowledge.model else common.__contains__
    points = [n for n in points if known(n)]
    estimates = _estimates(usable, knowledge, points)
    composition = _composition(ordered, estimates, points)
    runs: tuple[EarlierRun, ...] = ()
    if composition is not None:
        runs = tuple(run for run in earlier if run.io_nodes in points)
        if ran_with is not None and ran_with in points:
            runs += (EarlierRun(ran_with, _observed(ordered)),)
        uncorrected = composition.typical_mib_s
        doubts = {found.key: knowledge.doubt(found) for found in usable}
        composition = _corrected(
            composition, _doubted(composition, ordered, estimates, doubts), runs
        )
        correction = composition.typical_mib_s / uncorrected
        estimates = {key: one.scaled(correction) for key, one in estimates.items()}
    curve: tuple[Point, ...] = ()
    expected = np.empty((0, 0))
    if composition is not None:
        composition = composition.only(asked)
        curve = tuple(composition.points(_common(found.repetitions for found in matches)))
        expected = composition.expected_mib_s
    matched = tuple(_matched(task, estimates, points) for task in tasks)
    best, choice = _choose(curve, expected, tasks, knowledge, asked)
    return Prediction(
        system=system,
        job=jobs.pop() if jobs else None,
        curve=curve,
        best=best,
        decision=choice.decide(policy or Policy()),
        earlier_runs=runs,
        phases=matched,
        warnings=tuple(limits(matched, knowledge, nodes, asked, ran_with)),
        choice=choice,
    )


@dataclass(frozen=True)
class _Task:
    """A phase, its index in the job, and the matches of its parts."""

    index: int
    phase: Phase
    parts: tuple[tuple[Part, Match], ...]


def _tasks(phases: Sequence[Phase], knowledge: Knowledge, nodes: int | None) -> tuple[_Task, ...]:
    match = cache(knowledge.match)
    return tuple(
        _Task(
            index,
            phase,
            tuple(
                (part, match(configuration(phase, part, nodes)).for_phase(phase))
                for part in phase.parts
            ),
        )
        for index, phase in enumerate(phases)
        if phase.parts
    )


def _estimates(
    matches: Sequence[Match], knowledge: Knowledge, io_nodes: Sequence[int]
) -> dict[MatchKey, Estimate]:
    """Estimate each match by its key; empty if there are no numbers of I/O nodes."""
    if not io_nodes:
        return {}
    if knowledge.model is None:
        random = np.random.default_rng(_SEED)
        return {
            found.key: as_measured(found.curve.bandwidths_mib_s, io_nodes, random)
            for found in matches
            if found.curve
        }
    estimates: dict[MatchKey, Estimate] = {}
    for start in range(0, len(matches), _CONFIGURATIONS_AT_ONCE):
        batch = matches[start : start + _CONFIGURATIONS_AT_ONCE]
        # The same seed for each batch, so that the doubts of different batches are correlated too.
        found = as_expected(
            knowledge.expect(batch, io_nodes),
            knowledge.model.tails,
            [match.repetitions for match in batch],
            io_nodes,
            np.random.default_rng(_SEED),
        )
        estimates |= {match.key: one for match, one in zip(batch, found, strict=True)}
    return estimates


def _composition(
    tasks: Sequence[_Task], estimates: Mapping[MatchKey, Estimate], io_nodes: Sequence[int]
) -> Composition | None:
    """Compose the estimated parts of the phases; None if no part has an estimate."""
    seen: Counter[str] = Counter()
    work = []
    for i, task in enumerate(tasks):
        for j, (part, found) in enumerate(task.parts):
            if part.bytes and found.key in estimates:
                name = f"{_identity(task.phase)} {j}"
                seed = crc32(f"{name} {seen[name]}".encode())
                seen[name] += 1
                work.append(Work(i, part.bytes, estimates[found.key], seed))
    timeline = timeline_of([task.phase for task in tasks])
    return compose(work, io_nodes, timeline) if work else None


def _text(phase: Phase) -> str:
    """Write all fields of a phase as one text, to order phases of the same time."""
    return json.dumps(phase, default=vars, ensure_ascii=False)


def _identity(phase: Phase) -> str:
    """Describe a phase without how much it moves, for the seed of its noise.

    Seeds are checksums of this text, so another text would change every prediction.
    """
    when = f"({phase.start_seconds}, {phase.end_seconds})"
    who = f"({phase.rank}, {phase.processes}, {phase.n_files})"
    kind = f"'{phase.api}', '{phase.operation}', '{phase.spatiality}', '{phase.file_access}'"
    return f"({when}, {who}, {kind})"


def _observed(tasks: Sequence[_Task]) -> float:
    """Compute the bandwidth of the run, from the phases of which a part has a benchmark."""
    known = [task.phase for task in tasks if any(found.curve for _, found in task.parts)]
    try:
        return observed_mib_s(known)
    except ValueError as error:
        raise InputError(f"the run cannot correct its own prediction: {error}") from error


def _doubted(
    composition: Composition,
    tasks: Sequence[_Task],
    estimates: Mapping[MatchKey, Estimate],
    doubts: Mapping[MatchKey, float],
) -> Composition:
    """Compose again with the doubts about benchmarks that do other I/O, as variances by match."""
    if not any(doubts.values()):
        return composition
    points = composition.io_nodes
    wider = {key: one.doubted(doubts[key], points) for key, one in estimates.items()}
    return _composition(tasks, wider, points) or composition


def _corrected(
    composition: Composition, doubted: Composition, runs: Sequence[EarlierRun]
) -> Composition:
    """Correct a composition by earlier runs, one after the other, the oldest first.

    Runs scatter. So the doubt that a benchmark does other I/O widens the interval, and runs correct
    the rest. But runs that are off by more than this doubt show that the other I/O makes a
    difference: they correct it too.
    """
    if doubted is composition or _are_off(doubted, runs):
        return _anchored(doubted, runs)
    return doubted.scaled(_anchored(composition, runs).typical_mib_s / composition.typical_mib_s)


def _anchored(composition: Composition, runs: Sequence[EarlierRun]) -> Composition:
    newest_last = reversed(weights(len(runs)))
    for place, (run, weight) in enumerate(zip(runs, newest_last, strict=True)):
        composition = anchored(
            composition, run.io_nodes, run.bandwidth_mib_s, weight=weight, met=place
        )
    return composition


def _are_off(doubted: Composition, runs: Sequence[EarlierRun]) -> bool:
    """Whether the mean of runs is off by more than the doubt; n runs scatter by 1/sqrt(n)."""
    if not runs:
        return False
    at = [doubted.io_nodes.index(run.io_nodes) for run in runs]
    got = np.log([run.bandwidth_mib_s for run in runs])
    off = (got - np.log(doubted.typical_mib_s[at])).mean() * math.sqrt(len(runs))
    return bool(abs(off) > np.log(doubted.expected_mib_s[:, at]).std(axis=0).mean())


def _matched(
    task: _Task, estimates: Mapping[MatchKey, Estimate], io_nodes: Sequence[int]
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
    tasks: Sequence[_Task],
    knowledge: Knowledge,
    asked: Sequence[int],
) -> tuple[Best, Choice]:
    """Find the best number of I/O nodes, and collect the points that a decision may choose."""
    trusted = [i for i, point in enumerate(curve) if point.io_nodes in knowledge.range_of_io_nodes]
    points = tuple(curve[i] for i in trusted)
    parts = [pair for task in tasks for pair in task.parts]
    best = _best(
        points,
        asked,
        moved=sum(part.bytes for part, _ in parts),
        known=sum(part.bytes for part, found in parts if found.curve),
    )
    unknown = best.why if best.io_nodes is None else None
    return best, Choice(points, expected[:, trusted], unknown)


def _common(cells: Iterable[Iterable[int]]) -> set[int]:
    """Intersect sets of numbers of I/O nodes."""
    sets = [set(numbers) for numbers in cells]
    return set.intersection(*sets) if sets else set()


def _best(curve: Sequence[Point], asked: Sequence[int], moved: int, known: int) -> Best:
    """Find the highest expected bandwidth; `known` of all `moved` bytes have a benchmark."""
    if not moved:
        return Best(None, None, "the run has no I/O phases")
    if not known:
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
    if known < moved:
        why += f"; for {known / moved:.0%} of the bytes"
    return Best(top.io_nodes, top.bandwidth_mib_s.mean, why)
