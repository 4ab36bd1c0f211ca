"""Prepared answers to the scheduler's question, and the choice among them for one question.

The slow work (predicting, deciding, writing JSON) is done when answers are prepared. For a
question, the worker only chooses among texts and joins them, which takes microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from ioncast_base.wording import alike_first
from predictor.curve.decision import abstain
from predictor.curve.reasons import limit, nothing_known

# Runs answer for a job with at most this factor between the numbers of processes. For other
# sizes the phases of a run are scaled, and the model predicts.
_SAME_SIZE = 2.0
# Above all numbers that decide on a trial.
NO_TRIAL = 1 << 32
# The sources of an answer.
SOURCES = ("history", "model", "default")


class PreparedAnswer(NamedTuple):
    """The answer to a question; 0 I/O nodes are direct access, None is no answer."""

    body: bytes
    io_nodes: int | None
    source: str
    why: str


class Pause(NamedTuple):
    """A pause of the decisions for a system: by whom, since when (ISO 8601 in UTC), and why."""

    paused_by: str
    paused_at: str
    reason: str | None

    def in_words(self) -> str:
        """Describe the pause.

        Examples
        --------
        >>> Pause("alice", "2026-11-23T20:05:00.000000+00:00", "new disks").in_words()
        'paused by alice since 2026-11-23 20:05 UTC: new disks'
        """
        moment = self.paused_at[:16].replace("T", " ")
        words = f"paused by {self.paused_by} since {moment} UTC"
        return f"{words}: {self.reason}" if self.reason else words


# Another number of I/O nodes, which some jobs try: so many of 2³² jobs; its place in `points`; the
# confidence as JSON; the reason.
Trial = tuple[int, int, str, str]
# A decision for jobs that may get at least so many I/O nodes: that number; the chosen point's
# place in `points`; the confidence as JSON; the reason; whether the number of available I/O nodes
# must be added to the reason; and a trial. Without a place the default is the answer, and the
# reason is the cause as a clause.
Choice = tuple[int, int | None, str, str, bool, Trial | None]


class PreparedGroup(NamedTuple):
    """The answers for one size of job: texts and numbers, so that they can be stored as JSON.

    `points` have the expected bandwidth with each number of I/O nodes, as the inside of a JSON
    object. `choices` are the decisions, from the one for the most available I/O nodes on; empty
    when nothing is known, and `unknown` says why, as a clause.
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


def answer(
    entry: Entry,
    says: str,
    tasks: int | None,
    nodes: int | None,
    available: int | None,
    drawn: int = NO_TRIAL,
) -> PreparedAnswer:
    """Choose the answer to a question.

    The random number `drawn`, below 2³², decides whether the job tries another number of I/O nodes;
    `NO_TRIAL` if it may not.
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
    for cap, place, confidence, why, names_limit, trial in group.choices:
        if available is None or available >= cap:
            if sure and trial is not None and drawn < trial[0]:
                return _from_point(group, source, *trial[1:3], f"{matched}; {trial[3]}", True)
            if place is None:
                return _without_basis(why, available, group.default, group.application_id, matched)
            end = limit(available) if names_limit and available is not None else ""
            words = f"{matched}; {why}{end}"
            return _from_point(group, source, place, confidence if sure else "null", words, False)
    cause = group.unknown or nothing_known(available)
    return _without_basis(cause, available, group.default, group.application_id, matched)


def _from_point(
    group: PreparedGroup, source: str, place: int, confidence: str, why: str, explored: bool
) -> PreparedAnswer:
    others = [*group.points[:place], *group.points[place + 1 :]]
    alternatives = "{" + "},{".join(others) + "}" if others else ""
    body = (
        f'{{{group.points[place]},"source":"{source}","alternatives":[{alternatives}],'
        f'"confidence":{confidence},"explored":{"true" if explored else "false"},'
        f'"application_id":{group.application_id},"why":{json.dumps(why)}}}'
    )
    return PreparedAnswer(body.encode(), group.io_nodes[place], source, why)


def default_answer(
    default: int | None,
    available: int | None = None,
    unheard_of: str | None = None,
    known: Iterable[str] = (),
    not_ready: str | None = None,
) -> PreparedAnswer:
    """Make the answer for a job that no earlier run is known for."""
    which = f"on {unheard_of}" if unheard_of else "of this executable, user or job name"
    cause = f"no earlier run {which} is known"
    if not_ready:
        return _without_basis(f"{cause} yet: {not_ready}", available, default)
    others = alike_first(unheard_of, known) if unheard_of else ""
    return _without_basis(
        f"{cause} (systems with runs: {others})" if others else cause, available, default
    )


def paused_answer(pause: Pause) -> PreparedAnswer:
    """Make the answer for every job of a paused system; it has no number, also with a default."""
    return _no_basis(None, f"decisions are {pause.in_words()}")


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
    why = f"{matched}; {decision.why}" if matched else decision.why
    return _no_basis(decision.io_nodes, why, application_id)


def _no_basis(io_nodes: int | None, why: str, application_id: int | None = None) -> PreparedAnswer:
    record: dict[str, object] = {
        "io_nodes": io_nodes,
        "expected_mib_s": None,
        "p10_mib_s": None,
        "p90_mib_s": None,
        "source": "default",
        "alternatives": [],
        "confidence": None,
        "explored": False,
        "application_id": application_id,
        "why": why,
    }
    body = json.dumps(record, separators=(",", ":")).encode()
    return PreparedAnswer(body, io_nodes, "default", why)


def _nearest(entry: Entry, tasks: int | None, nodes: int | None) -> PreparedGroup:
    return min(
        entry, key=lambda group: (_distance(tasks, group.tasks), _distance(nodes, group.nodes))
    )


def _distance(asked: int | None, known: int | None) -> float:
    if asked is None:
        return 1.0
    return inf if known is None else ratio(asked, known)
