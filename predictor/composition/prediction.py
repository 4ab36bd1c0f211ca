"""The prediction: how an application's I/O will run with each number of I/O nodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import InputError
from ioncast_base.wording import in_digits
from ior_configs import IorConfig
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
from predictor.matching.configurations import Match, MatchedPhase, configuration
from predictor.matching.same_application import weights
from predictor.model.system_model import Knowledge
from summario.phases.values import Part, Phase

# Of more configurations together the covariances would not fit into memory.
_CONFIGURATIONS_AT_ONCE = 50
_SEED = 9366


@dataclass(frozen=True)
class Policy:
    """What a site wants of a decision.

    Attributes
    ----------
    tolerance : float
        The share of the best bandwidth that may be given up for fewer I/O nodes.
    available : int or None
        At most so many I/O nodes are given.
    default : int or None
        What a job gets of which nothing is known.
    """

    tolerance: float = TOLERANCE
    available: int | None = None
    default: int | None = None


@dataclass(frozen=True)
class EarlierRun:
    """What a run of the application had and got.

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
    """The number of I/O nodes with the highest expected bandwidth; None without a basis."""

    io_nodes: int | None
    bandwidth_mib_s: float | None
    why: str


@dataclass(frozen=True, eq=False)
class Choice:
    """What numbers of I/O nodes are chosen from.

    Attributes
    ----------
    curve : tuple of Point
        What is expected with those that may be chosen.
    expected_mib_s : ndarray of shape (draws, points)
        Draws of the expected bandwidths, jointly over the points.
    unknown : str or None
        Why nothing can be chosen, as a clause.
    """

    curve: tuple[Point, ...]
    expected_mib_s: NDArray[np.float64]
    unknown: str | None

    def decide(self, policy: Policy) -> Decision:
        """Decide as a site wants it.

        Raises
        ------
        InputError
            When the policy cannot be.
        """
        return decide(self.curve, self.expected_mib_s, **asdict(policy), unknown=self.unknown)


@dataclass(frozen=True)
class Prediction:
    """What is expected of an application on a system.

    Attributes
    ----------
    system : str
        The system.
    job : int or str or None
        The run whose phases it rests on.
    curve : tuple of Point
        By number of I/O nodes; empty where nothing is known.
    best : Best
        The highest expected bandwidth.
    decision : Decision
        What the scheduler is told.
    earlier_runs : tuple of EarlierRun
        The runs that the curve was corrected by, the oldest first.
    phases : tuple of MatchedPhase
        What each phase was matched to.
    warnings : tuple of str
        What limits the prediction.
    choice : Choice
        What the decision was drawn from, to decide as other policies want it.
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

    @property
    def earlier(self) -> EarlierRun | None:
        """The newest run that the curve was corrected by."""
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
        Of one earlier run.
    knowledge : Knowledge
        What was measured on the system, and learned from that.
    system : str
        The system's name.
    nodes : int, optional
        Compute nodes of the job.
    io_nodes : sequence of int, optional
        Which points to predict; by default all that benchmarks of the phases' kinds were
        measured with, or, without a model, those that every matched benchmark has.
    ran_with : int, optional
        The number of I/O nodes of the run of the phases: what it got then corrects the curve.
    earlier : sequence of EarlierRun
        What other runs of the application got, which do the same I/O; the oldest first. Each
        counts less than the next newer one (see `predictor.matching.same_application.weights`).
    policy : Policy, optional
        What the site wants of a decision.

    Raises
    ------
    InputError
        When the phases are of several jobs, or the policy cannot be.
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
    matches = list({found.wanted: found for task in ordered for _, found in task.parts}.values())
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
        weight = reversed(weights(len(runs)))
        for place, (run, counts) in enumerate(zip(runs, weight, strict=True)):
            composition = anchored(
                composition, run.io_nodes, run.bandwidth_mib_s, weight=counts, met=place
            )
        correction = composition.typical_mib_s / uncorrected
        estimates = {config: one.scaled(correction) for config, one in estimates.items()}
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
    """A phase, its place in the job, and what each of its parts matched."""

    index: int
    phase: Phase
    parts: tuple[tuple[Part, Match], ...]


def _tasks(phases: Sequence[Phase], knowledge: Knowledge, nodes: int | None) -> tuple[_Task, ...]:
    match = cache(knowledge.match)
    return tuple(
        _Task(
            index,
            phase,
            tuple((part, match(configuration(phase, part, nodes))) for part in phase.parts),
        )
        for index, phase in enumerate(phases)
        if phase.parts
    )


def _estimates(
    matches: Sequence[Match], knowledge: Knowledge, io_nodes: Sequence[int]
) -> dict[IorConfig, Estimate]:
    """What is expected of what is wanted; nothing for no number of I/O nodes."""
    if not io_nodes:
        return {}
    if knowledge.model is None:
        random = np.random.default_rng(_SEED)
        return {
            found.wanted: as_measured(found.curve.bandwidths_mib_s, io_nodes, random)
            for found in matches
            if found.curve
        }
    estimates: dict[IorConfig, Estimate] = {}
    for start in range(0, len(matches), _CONFIGURATIONS_AT_ONCE):
        batch = matches[start : start + _CONFIGURATIONS_AT_ONCE]
        # From the same seed, so that doubts of different batches go together too.
        found = as_expected(
            knowledge.expect(batch, io_nodes),
            knowledge.model.tails,
            [match.repetitions for match in batch],
            io_nodes,
            np.random.default_rng(_SEED),
        )
        estimates |= {match.wanted: one for match, one in zip(batch, found, strict=True)}
    return estimates


def _composition(
    tasks: Sequence[_Task], estimates: Mapping[IorConfig, Estimate], io_nodes: Sequence[int]
) -> Composition | None:
    """Compose what is known of the phases; None where that is nothing."""
    seen: Counter[str] = Counter()
    work = []
    for i, task in enumerate(tasks):
        for j, (part, found) in enumerate(task.parts):
            if part.bytes and found.wanted in estimates:
                name = f"{_identity(task.phase)} {j}"
                seed = crc32(f"{name} {seen[name]}".encode())
                seen[name] += 1
                work.append(Work(i, part.bytes, estimates[found.wanted], seed))
    timeline = timeline_of([task.phase for task in tasks])
    return compose(work, io_nodes, timeline) if work else None


def _text(phase: Phase) -> str:
    """All fields of a phase as one text, which puts phases of the same time in order."""
    return json.dumps(phase, default=vars, ensure_ascii=False)


def _identity(phase: Phase) -> str:
    """Describe a phase without how much it moves, for the seed of its noise.

    Seeds are checksums of this text: another text would change every prediction.
    """
    when = f"({phase.start_seconds}, {phase.end_seconds})"
    who = f"({phase.rank}, {phase.processes}, {phase.n_files})"
    kind = f"'{phase.api}', '{phase.operation}', '{phase.spatiality}', '{phase.file_access}'"
    return f"({when}, {who}, {kind})"


def _observed(tasks: Sequence[_Task]) -> float:
    """What the run got in phases of which something is known."""
    known = [task.phase for task in tasks if any(found.curve for _, found in task.parts)]
    try:
        return observed_mib_s(known)
    except ValueError as error:
        raise InputError(f"the run cannot correct its own prediction: {error}") from error


def _matched(
    task: _Task, estimates: Mapping[IorConfig, Estimate], io_nodes: Sequence[int]
) -> MatchedPhase:
    times: list[dict[int, float]] = []
    for part, found in task.parts:
        speeds = estimates[found.wanted].typical_mib_s if found.wanted in estimates else ()
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
    """The best, and what the scheduler's number is chosen from."""
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
    """The numbers of I/O nodes that are in all."""
    sets = [set(numbers) for numbers in cells]
    return set.intersection(*sets) if sets else set()


def _best(curve: Sequence[Point], asked: Sequence[int], moved: int, known: int) -> Best:
    """Decide; `moved` bytes were matched, `known` of them to a benchmark."""
    if not moved:
        return Best(None, None, "the run did no I/O")
    if not known:
        return Best(None, None, "nothing in the database resembles any phase")
    if not curve:
        listed = ", ".join(map(str, asked))
        return Best(None, None, f"the matched benchmarks tell nothing of {listed} I/O nodes")
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
