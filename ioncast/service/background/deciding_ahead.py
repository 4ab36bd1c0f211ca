"""Decisions on a prediction, made ahead for each question that a scheduler may ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ioncast.service.decide.answers import NO_TRIAL, Choice, PreparedGroup, Trial
from ioncast.service.decide.prepared import Untried
from ioncast_base.wording import counted
from predictor.curve import prediction
from predictor.curve.composing import Point
from predictor.curve.prediction import DecisionRules
from predictor.curve.reasons import Defaulted, cause_in_words, trial_in_words, without_limit
from predictor.model.trying import worth_trying

# More digits of a bandwidth or a probability mean nothing.
_DIGITS = 6
# The mean share of the bandwidth that trying may cost where no number is tried: only whether one is
# worth it depends on it, not which one.
_SMALL_COST = 0.01
# People are not told of a smaller gain.
_LEAST_GAIN = 0.005


class OtherVariant(NamedTuple):
    """A variant that the job may be instead of the predicted one, and its share of all weights.

    `chosen` are pairs (available, number), from the most available I/O nodes on: the number that it
    gets if at least so many are available.
    """

    share: float
    chosen: tuple[tuple[int, int], ...]

    def has(self, io_nodes: int, available: int) -> bool:
        """Whether it gets a number of I/O nodes."""
        numbers = (number for least, number in self.chosen if least <= available)
        return next(numbers, None) == io_nodes


class Decided(NamedTuple):
    """The decisions on one prediction, for each number of I/O nodes that may be available.

    The fields are those of `PreparedGroup` and `OtherVariant`; `implausible` counts the bandwidths
    that did not correct the prediction, and `p90_mib_s` is the highest p90 of the points, or 0.
    """

    points: tuple[str, ...]
    io_nodes: tuple[int, ...]
    choices: tuple[Choice, ...]
    unknown: str | None
    default: int | None
    chosen: tuple[tuple[int, int], ...] = ()
    implausible: int = 0
    is_corrected: bool = False
    p90_mib_s: float = 0.0
    untried: Untried | None = None

    def without_basis(self, cause: str) -> Decided:
        """Decide nothing for a cause; one that is known already is kept."""
        return self._replace(choices=(), chosen=(), untried=None, unknown=self.unknown or cause)


def decide_all(
    found: prediction.Prediction,
    policy: DecisionRules,
    share: float = 1.0,
    others: Sequence[OtherVariant] = (),
    explore: float = 0.0,
) -> Decided:
    """Decide by a site's rules, for each number of I/O nodes that may be available.

    Where another variant gets the same number, its share counts too: it does not matter then which
    of them the job is.
    """
    choice = found.choice
    chosen = () if choice.unknown else tuple(_chosen(choice, policy))
    return Decided(
        points=tuple(map(_point, choice.curve)),
        io_nodes=tuple(point.io_nodes for point in choice.curve),
        choices=tuple(_choices(choice, policy, chosen, share, others, explore)),
        unknown=choice.unknown,
        default=policy.default,
        chosen=chosen,
        implausible=len(found.implausible_runs),
        is_corrected=bool(found.earlier_runs),
        p90_mib_s=max((point.bandwidth_mib_s.p90 for point in choice.curve), default=0.0),
        untried=_untried(found, chosen[0][1]) if chosen and not explore else None,
    )


def prepare_group(
    decided: Decided,
    *,
    tasks: int,
    nodes: int | None,
    application_id: int,
    runs: int,
    alike: int,
    scaled_from: int | None = None,
) -> PreparedGroup:
    """Prepare the answers for one size of job."""
    return PreparedGroup(
        tasks=tasks,
        nodes=nodes,
        application_id=application_id,
        runs=counted(runs, "earlier run"),
        size=_size(tasks, nodes, runs, alike, scaled_from) + _left_out(decided.implausible),
        is_scaled=scaled_from is not None,
        points=decided.points,
        io_nodes=decided.io_nodes,
        choices=decided.choices,
        unknown=decided.unknown,
        default=decided.default,
    )


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


def _chosen(choice: prediction.Candidates, policy: DecisionRules) -> Iterator[tuple[int, int]]:
    for cap in sorted((point.io_nodes for point in choice.curve), reverse=True):
        number = choice.decide(replace(policy, available=cap, min_confidence=0)).io_nodes
        if number is not None:
            yield cap, number


def _choices(
    choice: prediction.Candidates,
    policy: DecisionRules,
    chosen: Sequence[tuple[int, int]],
    share: float,
    others: Sequence[OtherVariant],
    explore: float,
) -> Iterator[Choice]:
    io_nodes = [point.io_nodes for point in choice.curve]
    for cap, number in chosen:
        same = sum(other.share for other in others if other.has(number, cap))
        known = min(share + same, 1.0)
        decision = choice.decide(replace(policy, available=cap), known)
        reason, within = decision.reason, decision.within_10_percent
        if isinstance(reason, Defaulted):
            given = decision.io_nodes
            beside = io_nodes.index(given) if given in io_nodes else None
            why, is_cut_off = cause_in_words(reason.cause), False
        else:
            beside = io_nodes.index(reason.io_nodes)
            why = without_limit(reason)
            is_cut_off = reason.unavailable is not None
        place = None if isinstance(reason, Defaulted) else beside
        trial = None
        if explore and beside is not None:
            trial = _trial(choice, beside, cap, known, explore)
        yield cap, place, _number(within or 0.0), why, is_cut_off, trial


def _trial(
    choice: prediction.Candidates, chosen: int, cap: int, share: float, explore: float
) -> Trial | None:
    """Prepare the trial of another number than the chosen one, with the probability for it."""
    io_nodes = [point.io_nodes for point in choice.curve]
    columns = [place for place, number in enumerate(io_nodes) if number <= cap]
    found = worth_trying(choice.expected_mib_s, choice.scatter, chosen, columns, explore)
    if found is None:
        return None
    enough = 0.9 * choice.expected_mib_s[:, columns].max(axis=1)
    within = share * float((choice.expected_mib_s[:, found.place] >= enough).mean())
    why = trial_in_words(io_nodes[found.place], io_nodes[chosen], found.loss)
    return int(found.jobs * NO_TRIAL), found.place, _number(within), why


def _untried(found: prediction.Prediction, chosen: int) -> Untried | None:
    """Find the number that is most worth trying of those that no earlier run had."""
    choice = found.choice
    io_nodes = [point.io_nodes for point in choice.curve]
    known = {run.io_nodes for run in found.earlier_runs} - {chosen}
    columns = [place for place, number in enumerate(io_nodes) if number not in known]
    place = io_nodes.index(chosen)
    trial = worth_trying(choice.expected_mib_s, choice.scatter, place, columns, _SMALL_COST)
    if trial is None or trial.gain < _LEAST_GAIN:
        return None
    return Untried(io_nodes[trial.place], chosen, round(trial.loss, 3), round(trial.gain, 3))


def _point(point: Point) -> str:
    speed = point.bandwidth_mib_s
    return (
        f'"io_nodes":{point.io_nodes},"expected_mib_s":{_number(speed.mean)},'
        f'"p10_mib_s":{_number(speed.p10)},"p90_mib_s":{_number(speed.p90)}'
    )


def _number(value: float) -> str:
    """Write a number as JSON, with six digits."""
    return repr(float(f"{value:.{_DIGITS}g}"))
