"""Explain a prediction in words: the decision, the phase that decides, and the benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import TypeVar

from benchdb.measurements.cells import modes
from ioncast_base.wording import counted, each_in_words, in_digits, in_words, size
from predictor.curve.composing import Point
from predictor.curve.overlap import timeline_of
from predictor.curve.prediction import Prediction
from predictor.curve.warnings import names_of
from predictor.matching.configurations import Match, MatchedPhase
from summario.naming import phases_named, shortened
from summario.phases.values import Part

_T = TypeVar("_T")

# Parts with a smaller share of the time (of the bytes, if the time is unknown) are not mentioned.
_SMALLEST_SHARE = 0.05
# With 1,000 draws, a probability closer to 1 is not reliable.
_SURE = 0.99


def explain(prediction: Prediction) -> list[str]:
    """Say which phase decided, and by which measurements.

    Parts that take less than a twentieth of the time are not mentioned.
    """
    told = [_decision(prediction)]
    points = {point.io_nodes: point for point in prediction.curve}
    if points:
        best, decided = prediction.best.io_nodes, prediction.decision.io_nodes
        point = next(points[n] for n in (decided, best, *points) if n in points)
        told += [*_deciding(prediction, point), *_bases(prediction, point)]
        told += _together(prediction, point)
    return [*told, *_unknown(prediction), *_earlier(prediction)]


def _decision(prediction: Prediction) -> str:
    decision = prediction.decision
    if decision.source == "default" and decision.io_nodes is not None:
        return f"{_capital(in_words(decision.io_nodes))}: {decision.why}."
    told = f"{_capital(decision.why)}."
    if decision.within_10_percent is None or len(prediction.curve) < 2:
        return told
    fewer = [p for p in prediction.curve if p.io_nodes < (decision.io_nodes or 0)]
    if fewer and decision.tolerance:
        told += f" Fewer would lose more than the tolerated {decision.tolerance:.0%}."
    likely = _probability(decision.within_10_percent)
    return f"{told} The probability of reaching at least 90% of the best bandwidth is {likely}."


@dataclass(frozen=True)
class _Alike:
    """Phases whose largest parts have the same benchmark and the same kind of match."""

    phases: tuple[MatchedPhase, ...]

    def time_s(self, io_nodes: int) -> float:
        """Seconds that the phases take one after the other."""
        return sum(phase.time_s[io_nodes] for phase in self.phases)

    def __str__(self) -> str:
        return f"{phases_named(item.index for item in self.phases)} ({self.phases[0].phase.kind})"


def _deciding(prediction: Prediction, point: Point) -> Iterator[str]:
    """Name the phases that gain most from the chosen number, and those that take most time."""
    chosen = point.io_nodes
    others = [other.io_nodes for other in prediction.curve if other.io_nodes != chosen]
    groups = [
        _Alike(phases)
        for phases in _grouped(
            (_benchmark_of(item.main), item) for item in prediction.phases if item.time_s
        )
    ]

    def gain_s(group: _Alike) -> float:
        return fmean(group.time_s(n) for n in others) - group.time_s(chosen)

    def taken(group: _Alike) -> str:
        share = min(group.time_s(chosen) / point.time_s, 1)
        return (
            f"{in_digits(group.time_s(chosen))} s with {in_words(chosen)}, {share:.0%} of the time"
        )

    longest = max(groups, key=lambda group: group.time_s(chosen))
    verb = "takes" if len(longest.phases) == 1 else "take"
    if len(groups) == 1:
        yield (
            f"{_capital(str(longest))} {verb} all of the predicted time:"
            f" {in_digits(point.time_s)} s with {in_words(chosen)}."
        )
        return
    deciding = max(groups, key=gain_s) if others else longest
    if others and gain_s(deciding) > 0:
        one = len(deciding.phases) == 1
        yield (
            f"{_capital(str(deciding))} {'decides: by itself it takes' if one else ''}"
            f"{'' if one else 'decide: by themselves they take'} {taken(deciding)}, and"
            f" {in_digits(gain_s(deciding) + deciding.time_s(chosen))} s on average with the other"
            " numbers."
        )
        if deciding is longest:
            return
    yield f"{_capital(str(longest))} {verb} the longest: {taken(longest)}."


@dataclass(frozen=True)
class _Share:
    """A part of a phase, and its expected seconds with the chosen number of I/O nodes."""

    phase: int
    alone: bool
    part: Part
    match: Match
    time_s: float


def _bases(prediction: Prediction, point: Point) -> Iterator[str]:
    """Name the benchmarks of the parts, those that take most time first."""
    shares = [
        _Share(item.index, len(item.parts) == 1, part, match, times[point.io_nodes])
        for item in prediction.phases
        for (part, match), times in zip(item.parts, item.parts_time_s, strict=True)
        if times
    ]
    total = sum(share.time_s for share in shares)
    groups = sorted(
        _grouped((_benchmark_of(share.match), share) for share in shares),
        key=lambda group: -sum(share.time_s for share in group),
    )
    for rank, group in enumerate(groups):
        taken = sum(share.time_s for share in group) / total if total else 0
        if taken < _SMALLEST_SHARE and rank:
            return
        match = max(group, key=lambda share: share.time_s).match
        basis = _basis(match, point.io_nodes)
        yield f"{_capital(_named(group))}, {taken:.0%} of the time: {basis}."
        yield from _modes(match, [point.io_nodes for point in prediction.curve])


def _named(group: Sequence[_Share]) -> str:
    """Name whole phases by their numbers, parts of phases also by their requests."""
    phases = phases_named(dict.fromkeys(share.phase for share in group))
    if all(share.alone for share in group):
        return phases
    requests: dict[str, int] = {}
    for share in group:
        request = size(share.part.request_bytes)
        requests[request] = requests.get(request, 0) + share.part.requests
    listed = shortened(
        [f"{counted(count, 'request')} of {request}" for request, count in requests.items()]
    )
    return f"{listed} in {phases}"


def _basis(match: Match, io_nodes: int) -> str:
    """Say what the bandwidth of a part rests on, and its metadata calls."""
    calls = "; metadata calls by the rates of mdtest" if match.file_time else ""
    return _basis_of_bytes(match, io_nodes) + calls


def _basis_of_bytes(match: Match, io_nodes: int) -> str:
    assert match.curve is not None  # noqa: S101
    age = " from before the change of the system" if match.curve.before_change else ""
    line = match.curve.config.command_line(launcher=True)
    benchmark = f"benchmark {match.curve.id}{age} ({line})"
    if match.kind == "exact":
        return f"measured by {benchmark}: {_runs(match, io_nodes)}"
    if match.kind == "model":
        beyond = shortened([_reach(name, ratio) for name, ratio in match.beyond.items()])
        return (
            f"predicted by the model, beyond the measured sizes ({beyond}); the nearest is"
            f" {benchmark}"
        )
    if match.is_of_earlier:
        known = "not measured since the change of the system"
        return f"{known}; predicted from newer runs and {benchmark}"
    if match.is_mostly_metadata:
        return f"predicted from {benchmark}, which has its sizes but not its metadata calls"
    ratios = shortened([f"{in_digits(ratio)} × the {name}" for name, ratio in match.ratios.items()])
    if match.differences and not ratios:
        other = names_of(match.differences)
        return f"predicted from {benchmark}, which has its sizes but not its {other}"
    known = f"not measured, but between measured sizes; the nearest is {benchmark}"
    return f"{known} with {ratios}" if ratios else known


def _reach(name: str, ratio: float) -> str:
    return f"{name} {in_digits(1 / ratio)} × the {'largest' if ratio < 1 else 'smallest'}"


def _runs(match: Match, io_nodes: int) -> str:
    """Say how often and how fast the benchmark ran with a number of I/O nodes."""
    values = match.repetitions.get(io_nodes, ())
    if not values:
        measured = each_in_words(sorted(match.repetitions))
        return f"only with {measured}, so the model predicts the other numbers"
    if len(values) == 1:
        return f"1 run with {in_words(io_nodes)}, {in_digits(values[0])} MiB/s"
    lowest, highest = in_digits(min(values)), in_digits(max(values))
    return f"{len(values)} runs with {in_words(io_nodes)}, {lowest} to {highest} MiB/s"


def _modes(match: Match, io_nodes: Iterable[int]) -> Iterator[str]:
    """Name the numbers of I/O nodes with which the benchmark's runs have two modes."""
    for n in io_nodes:
        values = match.repetitions.get(n, ())
        found = modes(values)
        if len(found) > 1:
            slower, faster = map(_mode, found)
            two = f"{len(found[0])} of {len(values)} {slower} MiB/s, {len(found[1])} {faster}"
            yield f"With {in_words(n)} its runs have two modes: {two}."


def _mode(values: Sequence[float]) -> str:
    return f"{'about ' if len(values) > 1 else ''}{in_digits(median(values))}"


def _together(prediction: Prediction, point: Point) -> Iterator[str]:
    """Name the phases that ran at the same time, if that shortens the predicted time."""
    added_s = sum(item.time_s.get(point.io_nodes, 0.0) for item in prediction.phases)
    if added_s * (1 - _SMALLEST_SHARE) > point.time_s:
        shared = timeline_of([item.phase for item in prediction.phases]).shared
        yield (
            f"{_capital(phases_named(prediction.phases[i].index for i in shared))} ran at the same"
            f" time as others: one after the other, all phases would take {in_digits(added_s)} s"
            f" instead of {in_digits(point.time_s)} s."
        )


def _unknown(prediction: Prediction) -> Iterator[str]:
    parts = [(item.index, *pair) for item in prediction.phases for pair in item.parts]
    total = sum(part.bytes for _, part, _ in parts)
    unknown = [(index, part, match) for index, part, match in parts if match.curve is None]
    moved = sum(part.bytes for _, part, _ in unknown)
    if moved and moved >= _SMALLEST_SHARE * total:
        phases = phases_named(dict.fromkeys(index for index, _, _ in unknown))
        fsync = " and fsync" if any(match.differences for _, _, match in unknown) else ""
        yield (
            f"{moved / total:.0%} of the bytes, in {phases}, are unknown: nothing of their kind"
            f"{fsync} was measured, so the prediction leaves them out."
        )


def _earlier(prediction: Prediction) -> Iterator[str]:
    run, count = prediction.earlier, len(prediction.earlier_runs)
    if run is not None:
        which = "The earlier run" if count == 1 else f"The newest of {count} earlier runs"
        what = "this" if count == 1 else "their bandwidths"
        yield (
            f"{which} got {in_digits(run.bandwidth_mib_s)} MiB/s with {in_words(run.io_nodes)};"
            f" {what} corrected the prediction, most where it was least sure."
        )


def _benchmark_of(match: Match) -> tuple[str, int | None, bool, bool]:
    curve_id = match.curve.id if match.curve else None
    return match.kind, curve_id, match.is_mostly_metadata, match.file_time is not None


def _grouped(
    pairs: Iterable[tuple[tuple[str, int | None, bool, bool], _T]],
) -> list[tuple[_T, ...]]:
    groups: dict[tuple[str, int | None, bool, bool], list[_T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return [tuple(items) for items in groups.values()]


def _probability(value: float) -> str:
    if value > _SURE:
        return f"over {_SURE:.0%}"
    return f"under {1 - _SURE:.0%}" if value < 1 - _SURE else f"{value:.0%}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
