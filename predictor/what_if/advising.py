"""Advice for a run with the time that it saves, predicted from the system's benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal, get_args

from ior_configs import IorConfig
from predictor.curve.asking import (
    PredictionContext,
    PredictionRequest,
    beside_own_run,
    configurations_of,
    read_knowledge,
)
from predictor.curve.prediction import Prediction, predict, predict_together
from predictor.matching.configurations import Match
from predictor.model.system_model import SystemModel
from predictor.planning.needs import run_to_measure
from predictor.what_if.attempts import Attempt, Hints, Key, attempts_of
from predictor.what_if.gains import Span, hidden_seconds, saved_by_io_nodes, saved_seconds
from summario.phases.values import Extraction, Phase
from summario.runs.hosts import job_nodes, node_warnings

Verdict = Literal["faster", "unsure", "slower", "not known"]
# In the order in which advice is listed.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# From the firmest basis to none.
_KINDS = ("exact", "interpolated", "model", "unknown")


@dataclass(frozen=True)
class AdviceGain:
    """A piece of advice, or two together, and what following it would save.

    Attributes
    ----------
    keys : tuple of str
        The pieces of advice (`predictor.what_if.attempts.NAMES`).
    verdict : str
        "faster" or "slower"; "unsure" if the interval of the saved seconds contains 0; "not known"
        without a basis.
    matched : str or None
        The weakest match of the I/O that changes, today and then: "exact", "interpolated" or
        "model"; "log" for asynchronous I/O, which rests on the pauses of the log. None if
        nothing was measured.
    saved_seconds : Span or None
        Seconds that a run saves: today's with today's decision, minus those then with the decision
        then. Below 0 if a run takes longer.
    saved_by_io_nodes : mapping of int to Span
        The same if the number of I/O nodes stays the same.
    then : Prediction or None
        The prediction of the changed run; None for asynchronous I/O and if nothing was measured.
    unmeasured : tuple of IorConfig
        The benchmarks that would tell more; empty if it is known.
    """

    keys: tuple[Key, ...]
    codes: tuple[str, ...]
    verdict: Verdict
    matched: str | None = None
    saved_seconds: Span | None = None
    saved_by_io_nodes: Mapping[int, Span] = field(default_factory=dict)
    then: Prediction | None = None
    unmeasured: tuple[IorConfig, ...] = ()


@dataclass(frozen=True)
class Advised:
    """A run's prediction today, and all advice that was tried.

    Attributes
    ----------
    advice : tuple of AdviceGain
        In the order of `VERDICTS`, of each the largest expected gain first.
    """

    today: Prediction
    advice: tuple[AdviceGain, ...]


def advise(
    frontend: PredictionContext,
    asked: PredictionRequest,
    found: Extraction,
    hints: Hints,
    *,
    buffer_bytes: int | None = None,
) -> Advised:
    """Try the advice for a run with the measurements in the database.

    Parameters
    ----------
    buffer_bytes : int, optional
        The size of larger requests; by default a measured one.

    Raises
    ------
    IoncastError
        As `predictor.curve.asking.ask`.
    """
    nodes = job_nodes(asked.nodes, found.nodes)
    number = nodes and nodes.number
    own = configurations_of(found.phases, number)
    _, summary, limits = read_knowledge(frontend, asked.system, own, asked.engine)
    attempts = attempts_of(found.phases, hints, summary.request_sizes, buffer_bytes=buffer_bytes)
    changed = [phase for attempt in attempts for phase in attempt.phases]
    wanted = [*own, *configurations_of(changed, number)]
    with frontend.transaction() as connection:
        knowledge = summary.knowledge(connection, summary.near(wanted))
    advised = try_all(found.phases, knowledge, attempts, hints, replace(asked, nodes=number))
    today = advised.today
    of_nodes = node_warnings(asked.nodes, found.nodes)
    warnings = (*found.warnings, *of_nodes, *limits, *today.warnings)
    job = found.job if today.job is None else today.job
    return replace(advised, today=replace(today, job=job, nodes=nodes, warnings=warnings))


def try_all(
    phases: Sequence[Phase],
    knowledge: SystemModel,
    attempts: Iterable[Attempt],
    hints: Hints,
    asked: PredictionRequest,
) -> Advised:
    """Predict a run, and the run that follows each piece of advice.

    Parameters
    ----------
    asked : PredictionRequest
        The question; its compute nodes are those of the job, or None.
    """
    predicted = predict(
        phases,
        knowledge,
        system=asked.system,
        nodes=asked.nodes,
        io_nodes=asked.io_nodes,
        ran_with=asked.ran_with,
        policy=asked.policy,
    )
    today = beside_own_run(predicted, asked)
    advice = [_tried(phases, knowledge, attempt, asked) for attempt in attempts]
    operations = hints.operations_of("asynchronous")
    saved = hidden_seconds(phases, today, operations)
    # Without pauses, asynchronous I/O changes as little as advice that changes no phase.
    if saved.expected > 0:
        codes = hints.codes_of("asynchronous")
        advice.append(AdviceGain(("asynchronous",), codes, _verdict(saved), "log", saved))
    return Advised(today, tuple(sorted(advice, key=in_order)))


def in_order(one: AdviceGain) -> tuple[int, float]:
    """Sort key of advice: sure gains first, and of each verdict the largest expected gain."""
    gain = one.saved_seconds.expected if one.saved_seconds else 0.0
    return VERDICTS.index(one.verdict), -gain


def _verdict(saved: Span) -> Verdict:
    if saved.p10 > 0:
        return "faster"
    return "slower" if saved.p90 < 0 else "unsure"


def _tried(
    phases: Sequence[Phase], knowledge: SystemModel, attempt: Attempt, asked: PredictionRequest
) -> AdviceGain:
    changed, unmeasured = _measurable(phases, attempt.phases, knowledge, asked.nodes)
    nothing = AdviceGain(attempt.keys, attempt.codes, "not known", unmeasured=unmeasured)
    if changed == tuple(phases):
        return nothing
    predicted, then = predict_together(
        [phases, changed],
        knowledge,
        system=asked.system,
        nodes=[asked.nodes] * 2,
        io_nodes=asked.io_nodes,
        ran_with=asked.ran_with,
        policy=asked.policy,
    )
    today = beside_own_run(predicted, asked)
    rests_on = _different_matches(today, then, phases, changed)
    weakest = max((rest.kind for rest in rests_on), key=_KINDS.index)
    saved = saved_seconds(today, then)
    if saved is None or (weakest == "model" and _verdict(saved) == "unsure"):
        weak = [rest.wanted for rest in rests_on if rest.kind == weakest]
        return replace(nothing, matched=weakest, unmeasured=_lines([*unmeasured, *weak]))
    return replace(
        nothing,
        verdict=_verdict(saved),
        matched=weakest,
        saved_seconds=saved,
        saved_by_io_nodes=saved_by_io_nodes(today, then),
        then=then,
    )


def _measurable(
    phases: Sequence[Phase],
    changed: Sequence[Phase],
    knowledge: SystemModel,
    nodes: int | None,
) -> tuple[tuple[Phase, ...], tuple[IorConfig, ...]]:
    """Change only the phases of which today's and the changed I/O resemble a benchmark."""
    match = cache(knowledge.match)
    kept, unmeasured = [], []
    for before, after in zip(phases, changed, strict=True):
        wanted = configurations_of((before, after) if before != after else (), nodes)
        lacking = [one for one in wanted if match(one).curve is None]
        kept.append(before if lacking else after)
        unmeasured += lacking
    return tuple(kept), _lines(unmeasured)


def _lines(configurations: Iterable[IorConfig]) -> tuple[IorConfig, ...]:
    """The different runs to measure, those of most bytes first."""
    found = dict.fromkeys(map(run_to_measure, configurations))
    return tuple(sorted(found, key=lambda one: -(one.tasks or 1) * one.bytes_per_process))


def _different_matches(
    today: Prediction, then: Prediction, phases: Sequence[Phase], changed: Sequence[Phase]
) -> list[Match]:
    """List the matches of the phases that change, without those that both versions have.

    If only the bytes differ by less than the sizes of a configuration tell, all of them count.
    """
    places = {i for i, pair in enumerate(zip(phases, changed, strict=True)) if pair[0] != pair[1]}
    ones, others = (
        {
            found.key: found
            for matched in prediction.phases
            if matched.index in places
            for _, found in matched.parts
        }
        for prediction in (today, then)
    )
    found = ones | others
    # A set would list them in another order in each process.
    differ = [match for key, match in found.items() if (key in ones) != (key in others)]
    return differ or list(found.values())
