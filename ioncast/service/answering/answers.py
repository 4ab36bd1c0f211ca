"""Prepared answers to the scheduler's question, and the choice among them for one question.

The slow work (predicting, deciding, writing JSON) is done when answers are prepared. For a
question, the worker only chooses among texts and joins them, which takes microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from ioncast_base.wording import alike_first, counted
from predictor.composition import prediction
from predictor.composition.composing import Point
from predictor.composition.decision import abstain
from predictor.composition.prediction import Policy
from predictor.composition.reasons import Chosen, limit, nothing_known, without_limit

# Runs answer for a job with at most this factor between the numbers of processes. For other
# sizes the phases of a run are scaled, and the model predicts.
_SAME_SIZE = 2.0
# More digits of a bandwidth or a probability mean nothing.
_DIGITS = 6


class PreparedAnswer(NamedTuple):
    """The answer to a question.

    Attributes
    ----------
    body : bytes
        A JSON object with all fields except the decision's id.
    io_nodes : int or None
        The number of I/O nodes; 0 is direct access, None is no answer.
    source : str
        "history", "model" or "default".
    """

    body: bytes
    io_nodes: int | None
    source: str


# A decision for jobs that may get at least so many I/O nodes: that number; the chosen point's
# place in `points`; the confidence as JSON; the reason as the inside of a JSON string; whether
# the number of available I/O nodes must be added to the reason.
Choice = tuple[int, int, str, str, bool]


class PreparedGroup(NamedTuple):
    """The answers for one size of job: texts and numbers, so that they can be stored as JSON.

    Attributes
    ----------
    tasks : int
        Number of processes.
    nodes : int or None
        Number of compute nodes.
    application_id : int
        Id of the application whose runs the answers rest on.
    runs, size : str
        The runs in words: "7 earlier runs", "64 processes on 4 nodes".
    is_scaled : bool
        Whether the runs had another size, and their phases were scaled to this one.
    points : sequence of str
        The expected bandwidth with each number of I/O nodes, as the inside of a JSON object.
    io_nodes : sequence of int
        The number of I/O nodes of each point.
    choices : sequence of Choice
        The decisions, from the one for the most available I/O nodes on; empty when nothing is
        known.
    unknown : str or None
        Why nothing is known, as a clause.
    default : int or None
        The site's number of I/O nodes for jobs that nothing is known about.
    """

    tasks: int
    nodes: int | None
    application_id: int
    runs: str
    size: str
    is_scaled: bool
    points: Sequence[str]
    io_nodes: Sequence[int]
    choices: Sequence[Choice]
    unknown: str | None
    default: int | None


# The groups of one identity (see `predictor.matching.same_application`): the group with the newest
# run first, scaled ones last.
Entry = Sequence[PreparedGroup]


class Decided(NamedTuple):
    """The decisions on one prediction, for each number of I/O nodes that may be available.

    Attributes
    ----------
    points, io_nodes, unknown, default
        As in `PreparedGroup`.
    choices : tuple of (int, int, float, str, bool)
        As in `PreparedGroup`, with the probability of being within 10 % of the best instead of
        the confidence.
    implausible : int
        Number of bandwidths that did not correct the prediction (see
        `predictor.composition.plausible`).
    """

    points: tuple[str, ...]
    io_nodes: tuple[int, ...]
    choices: tuple[tuple[int, int, float, str, bool], ...]
    unknown: str | None
    default: int | None
    implausible: int = 0


def decide_all(found: prediction.Prediction, policy: Policy) -> Decided:
    """Decide by a site's policy, for each number of I/O nodes that may be available."""
    choice = found.choice
    return Decided(
        points=tuple(map(_point, choice.curve)),
        io_nodes=tuple(point.io_nodes for point in choice.curve),
        choices=() if choice.unknown else tuple(_choices(choice, policy)),
        unknown=choice.unknown,
        default=policy.default,
        implausible=len(found.implausible_runs),
    )


def prepare_group(
    decided: Decided,
    *,
    tasks: int,
    nodes: int | None,
    application_id: int,
    runs: int,
    alike: int,
    share: float,
    scaled_from: int | None = None,
) -> PreparedGroup:
    """Prepare the answers for one size of job.

    Parameters
    ----------
    decided : Decided
        The decisions on the prediction from the runs that do the same I/O.
    tasks, nodes
        Numbers of processes and compute nodes.
    application_id : int
        Id of the newest run's application.
    runs, alike : int
        How many runs are known, and how many of them do the same I/O.
    share : float
        The share of the runs that do the same I/O in the weights of all runs (see
        `predictor.matching.same_application.Variant`).
    scaled_from : int, optional
        The number of processes of the runs, if it differs from `tasks`.
    """
    return PreparedGroup(
        tasks=tasks,
        nodes=nodes,
        application_id=application_id,
        runs=counted(runs, "earlier run"),
        size=_size(tasks, nodes, runs, alike, scaled_from) + _left_out(decided.implausible),
        is_scaled=scaled_from is not None,
        points=decided.points,
        io_nodes=decided.io_nodes,
        choices=tuple(
            (cap, place, _number(share * within), why, is_cut_off)
            for cap, place, within, why, is_cut_off in decided.choices
        ),
        unknown=decided.unknown,
        default=decided.default,
    )


def answer(
    entry: Entry, says: str, tasks: int | None, nodes: int | None, available: int | None
) -> PreparedAnswer:
    """Choose the answer to a question.

    Parameters
    ----------
    entry : sequence of PreparedGroup
        The prepared answers.
    says : str
        Words for the properties that the job shares with the runs (see
        `predictor.matching.same_application.Identity`).
    tasks, nodes, available : int or None
        Processes and compute nodes of the job, and the most I/O nodes that it may get.
    """
    group = entry[0] if len(entry) == 1 else _nearest(entry, tasks, nodes)
    asked, source = "", "model" if group.is_scaled else "history"
    sure = True
    if tasks is not None and tasks != group.tasks:
        asked = f", the nearest to {tasks}"
        if not is_same_size(tasks, group.tasks):
            asked, source = f", not yet scaled to {tasks}", "model"
            sure = False
    matched = f"{group.runs} of {says}, {group.size}{asked}"
    for cap, place, confidence, why, names_limit in group.choices:
        if available is None or available >= cap:
            end = limit(available) if names_limit and available is not None else ""
            others = [*group.points[:place], *group.points[place + 1 :]]
            alternatives = "{" + "},{".join(others) + "}" if others else ""
            body = (
                f'{{{group.points[place]},"source":"{source}","alternatives":[{alternatives}],'
                f'"confidence":{confidence if sure else "null"},'
                f'"application_id":{group.application_id},'
                f'"why":"{matched}; {why}{end}"}}'
            )
            return PreparedAnswer(body.encode(), group.io_nodes[place], source)
    cause = group.unknown or nothing_known(available)
    return _without_basis(cause, available, group.default, group.application_id, matched)


def default_answer(
    default: int | None,
    available: int | None = None,
    unheard_of: str | None = None,
    known: Iterable[str] = (),
) -> PreparedAnswer:
    """Make the answer for a job that no earlier run is known for.

    Parameters
    ----------
    default : int or None
        The site's number of I/O nodes for such jobs.
    available : int, optional
        The most I/O nodes that the job may get.
    unheard_of : str, optional
        The name of the system, if no run at all is known on it.
    known : iterable of str
        The systems with runs.
    """
    which = f"on {unheard_of}" if unheard_of else "of this executable, user or job name"
    cause = f"no earlier run {which} is known"
    others = alike_first(unheard_of, known) if unheard_of else ""
    return _without_basis(
        f"{cause} (systems with runs: {others})" if others else cause, available, default
    )


def is_same_size(tasks: int, other_tasks: int) -> bool:
    """Tell whether runs with one number of processes answer for a job with the other."""
    return ratio(tasks, other_tasks) <= _SAME_SIZE


def ratio(one: int, other: int) -> float:
    """Divide the larger of two numbers by the smaller.

    Examples
    --------
    >>> ratio(16, 64), ratio(64, 16), ratio(3, 3)
    (4.0, 4.0, 1.0)
    """
    return one / other if one > other else other / one


def _without_basis(
    cause: str,
    available: int | None,
    default: int | None,
    application_id: int | None = None,
    matched: str | None = None,
) -> PreparedAnswer:
    """Answer with the site's default; `matched` names the runs that do not help."""
    decision = abstain(cause, available=available, default=default)
    record: dict[str, object] = {
        "io_nodes": decision.io_nodes,
        "expected_mib_s": None,
        "p10_mib_s": None,
        "p90_mib_s": None,
        "source": "default",
        "alternatives": [],
        "confidence": None,
        "application_id": application_id,
        "why": f"{matched}; {decision.why}" if matched else decision.why,
    }
    body = json.dumps(record, separators=(",", ":")).encode()
    return PreparedAnswer(body, decision.io_nodes, "default")


def _nearest(entry: Entry, tasks: int | None, nodes: int | None) -> PreparedGroup:
    return min(
        entry, key=lambda group: (_distance(tasks, group.tasks), _distance(nodes, group.nodes))
    )


def _distance(asked: int | None, known: int | None) -> float:
    if asked is None:
        return 1.0
    return inf if known is None else ratio(asked, known)


def _size(tasks: int, nodes: int | None, runs: int, alike: int, scaled_from: int | None) -> str:
    processes = scaled_from or tasks
    size = counted(processes, "process")
    if nodes is not None and scaled_from is None:
        size += f" on {counted(nodes, 'node')}"
    if alike < runs:
        size += f", {alike} of which do the same I/O"
    return size if scaled_from is None else f"{size}, scaled to {tasks}"


def _left_out(implausible: int) -> str:
    if not implausible:
        return ""
    return f", {counted(implausible, 'bandwidth')} left out as implausible"


def _choices(
    choice: prediction.Choice, policy: Policy
) -> Iterator[tuple[int, int, float, str, bool]]:
    io_nodes = [point.io_nodes for point in choice.curve]
    for cap in sorted(io_nodes, reverse=True):
        decision = choice.decide(replace(policy, available=cap))
        reason, within = decision.reason, decision.within_10_percent
        if not isinstance(reason, Chosen) or within is None:
            continue
        place, why = io_nodes.index(reason.io_nodes), json.dumps(without_limit(reason))[1:-1]
        yield cap, place, within, why, reason.unavailable is not None


def _point(point: Point) -> str:
    speed = point.bandwidth_mib_s
    return (
        f'"io_nodes":{point.io_nodes},"expected_mib_s":{_number(speed.mean)},'
        f'"p10_mib_s":{_number(speed.p10)},"p90_mib_s":{_number(speed.p90)}'
    )


def _number(value: float) -> str:
    """Write a number as JSON, with six digits."""
    return repr(float(f"{value:.{_DIGITS}g}"))
