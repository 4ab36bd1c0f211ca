"""Prepared answers to the scheduler's question, and the one of them that a question gets.

All that takes time (predicting, deciding, writing JSON) is done when answers are prepared. A
question then only chooses among texts and puts them together, which takes microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from ioncast_base.wording import counted
from predictor.composition import prediction
from predictor.composition.composing import Point
from predictor.composition.decision import Decision, abstain, at_most, nothing_known
from predictor.composition.prediction import Policy

# Runs of a number of processes that is off by more tell nothing of this one: the model does.
SAME_SIZE = 2.0
# As many as matter of a bandwidth.
_DIGITS = 6


class PreparedAnswer(NamedTuple):
    """The answer to a question.

    Attributes
    ----------
    body : bytes
        A JSON object with all fields but the decision's id.
    io_nodes : int or None
        How many I/O nodes; 0 is direct access, None is no answer.
    source : str
        "history", "model" or "default".
    """

    body: bytes
    io_nodes: int | None
    source: str


# From how many available I/O nodes on; which of the points; the confidence in JSON; why, the
# inside of a JSON string; whether how many are available belongs to its end.
Choice = tuple[int, int, str, str, bool]


class PreparedGroup(NamedTuple):
    """The answers for one size of job: texts and numbers, so that JSON can keep them.

    Attributes
    ----------
    tasks : int
        Processes.
    nodes : int or None
        Compute nodes.
    application_id : int
        Whose runs the answers rest on.
    runs, size : str
        Which runs these are: "7 earlier runs", "64 processes on 4 nodes".
    is_scaled : bool
        Whether they were of another size, and their phases were scaled to this one.
    points : sequence of str
        What is expected with each number of I/O nodes: the inside of a JSON object.
    io_nodes : sequence of int
        Those numbers.
    choices : sequence of Choice
        What is decided, the least restricted first; none where nothing is known.
    unknown : str or None
        Why nothing is known.
    default : int or None
        The site's.
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


# Of one identity (see `predictor.matching.same_application`): the group with the newest run first,
# scaled ones last.
Entry = Sequence[PreparedGroup]


class Decided(NamedTuple):
    """What is decided on a prediction for each number of I/O nodes that may be available.

    Attributes
    ----------
    points, io_nodes, unknown, default
        As in `PreparedGroup`.
    choices : tuple of (int, int, float, str, bool)
        As there, with the probability of being within 10 % of the best.
    """

    points: tuple[str, ...]
    io_nodes: tuple[int, ...]
    choices: tuple[tuple[int, int, float, str, bool], ...]
    unknown: str | None
    default: int | None


def decide_all(choice: prediction.Choice, policy: Policy) -> Decided:
    """Decide as a site wants it, whatever is available."""
    return Decided(
        points=tuple(map(_point, choice.curve)),
        io_nodes=tuple(point.io_nodes for point in choice.curve),
        choices=() if choice.unknown else tuple(_choices(choice, policy)),
        unknown=choice.unknown,
        default=policy.default,
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
        On the prediction of the runs that do the same I/O.
    tasks, nodes
        The size.
    application_id : int
        That of the newest of these runs.
    runs, alike : int
        How many runs are known, and how many of them do the same I/O.
    share : float
        The share of these in the weights of all (see `history.Variant`).
    scaled_from : int, optional
        The number of processes that they had, where it was another one.
    """
    return PreparedGroup(
        tasks=tasks,
        nodes=nodes,
        application_id=application_id,
        runs=counted(runs, "earlier run"),
        size=_size(tasks, nodes, runs, alike, scaled_from),
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
        What was prepared.
    says : str
        What the job and the runs have in common (see `history.Identity`).
    tasks, nodes, available : int or None
        Processes and compute nodes of the job, and how many I/O nodes it may get at most.
    """
    group = entry[0] if len(entry) == 1 else _nearest(entry, tasks, nodes)
    asked, source = "", "model" if group.is_scaled else "history"
    is_known_size = True
    if tasks is not None and tasks != group.tasks:
        asked = f", the nearest to {tasks}"
        if _ratio(tasks, group.tasks) > SAME_SIZE:
            asked, source = f", yet to be scaled to {tasks}", "model"
            is_known_size = False
    matched = f"{group.runs} of {says}, {group.size}{asked}"
    for cap, place, confidence, why, is_cut_off in group.choices:
        if available is None or available >= cap:
            limit = at_most(available) if is_cut_off and available is not None else ""
            others = [*group.points[:place], *group.points[place + 1 :]]
            alternatives = "{" + "},{".join(others) + "}" if others else ""
            sure = confidence if is_known_size else "null"
            body = (
                f'{{{group.points[place]},"source":"{source}","alternatives":[{alternatives}],'
                f'"confidence":{sure},"application_id":{group.application_id},'
                f'"why":"{matched}; {why}{limit}"}}'
            )
            return PreparedAnswer(body.encode(), group.io_nodes[place], source)
    reason = group.unknown or nothing_known(available)
    told = abstain(f"{matched}; {reason}", Policy.tolerance, available, group.default)
    return _without_basis(told, group.application_id)


def default_answer(
    default: int | None, available: int | None = None, unheard_of: str | None = None
) -> PreparedAnswer:
    """The answer for a job of which nothing is known.

    Parameters
    ----------
    default : int or None
        The site's number of I/O nodes for it.
    available : int, optional
        At most so many.
    unheard_of : str, optional
        The system, where nothing at all ran that is known.
    """
    what = f"on {unheard_of}" if unheard_of else "of this executable, user or job name"
    reason = f"no earlier run {what} is known"
    return _without_basis(abstain(reason, Policy.tolerance, available, default), None)


def _without_basis(decision: Decision, application_id: int | None) -> PreparedAnswer:
    record: dict[str, object] = {
        "io_nodes": decision.io_nodes,
        "expected_mib_s": None,
        "p10_mib_s": None,
        "p90_mib_s": None,
        "source": "default",
        "alternatives": [],
        "confidence": None,
        "application_id": application_id,
        "why": decision.why,
    }
    body = json.dumps(record, separators=(",", ":")).encode()
    return PreparedAnswer(body, decision.io_nodes, "default")


def _nearest(entry: Entry, tasks: int | None, nodes: int | None) -> PreparedGroup:
    return min(entry, key=lambda group: (_ratio(tasks, group.tasks), _ratio(nodes, group.nodes)))


def _ratio(asked: int | None, known: int | None) -> float:
    """By what factor two numbers differ, 1 or more."""
    if asked is None:
        return 1.0
    if known is None:
        return inf
    return asked / known if asked > known else known / asked


def _size(tasks: int, nodes: int | None, runs: int, alike: int, scaled_from: int | None) -> str:
    processes = scaled_from or tasks
    size = "1 process" if processes == 1 else f"{processes} processes"
    if nodes is not None and scaled_from is None:
        size += f" on {counted(nodes, 'node')}"
    if alike < runs:
        size += f", {alike} of which do the same I/O"
    return size if scaled_from is None else f"{size}, scaled to {tasks}"


def _choices(
    choice: prediction.Choice, policy: Policy
) -> Iterator[tuple[int, int, float, str, bool]]:
    io_nodes = [point.io_nodes for point in choice.curve]
    for cap in sorted(io_nodes, reverse=True):
        decision = choice.decide(replace(policy, available=cap))
        if decision.io_nodes is None or decision.within_10_percent is None:
            continue
        why = decision.why.removesuffix(at_most(cap))
        yield (
            cap,
            io_nodes.index(decision.io_nodes),
            decision.within_10_percent,
            json.dumps(why)[1:-1],
            why != decision.why,
        )


def _point(point: Point) -> str:
    speed = point.bandwidth_mib_s
    return (
        f'"io_nodes":{point.io_nodes},"expected_mib_s":{_number(speed.mean)},'
        f'"p10_mib_s":{_number(speed.p10)},"p90_mib_s":{_number(speed.p90)}'
    )


def _number(value: float) -> str:
    """A number as JSON."""
    return repr(float(f"{value:.{_DIGITS}g}"))
