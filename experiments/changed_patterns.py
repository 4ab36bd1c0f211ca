"""Predicts what a change of a pattern gains, and compares with measured curves of both patterns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from statistics import fmean, stdev

from benchdb.measurements.curves import Curve
from experiments.held_back import phase_of
from ior_configs import IorConfig
from predictor.curve.asking import PredictionRequest
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel
from predictor.what_if.advising import try_all
from predictor.what_if.attempts import Attempt, Hints
from predictor.what_if.gains import Span, decided

# The 90th percentile of a normal distribution, in standard deviations.
_NINETIETH = 1.2816
# Patterns that differ by a larger factor in their bytes differ in two properties.
_ABOUT_THE_SAME = 2
_MOST_BYTES = 4
_MIB = 1 << 20

SIZE, SIZE_AND_BYTES = "request size", "request size and bytes"
MEASURED = "both measured (half of the runs)"
TODAY, CHANGED, BOTH = "today's hidden", "the changed one hidden", "both hidden"
HIDDEN = (MEASURED, TODAY, CHANGED, BOTH)


@dataclass(frozen=True)
class Pair:
    """Two measured patterns that differ in one property.

    Attributes
    ----------
    change : str
        The name of the property.
    today, changed : Curve
        The two curves.
    """

    change: str
    today: Curve
    changed: Curve

    @property
    def io_nodes(self) -> tuple[int, ...]:
        """The numbers of I/O nodes that both were measured with."""
        return tuple(sorted(self.today.bandwidths_mib_s.keys() & self.changed.bandwidths_mib_s))


@dataclass(frozen=True)
class Judged:
    """The predicted gain of a pair, compared with the measured one.

    The gain is the bandwidth of the changed pattern over that of today's, with the same number of
    I/O nodes.

    Attributes
    ----------
    system, change, hidden : str
        The system, the property that differs, and the measurements that were held back.
    today, changed : str
        IOR lines of the two patterns.
    verdict, matched : str or None
        As in `Advice`.
    floor : mapping of int to float
        The noise floor: the error of the gain in the runs that are not hidden. Empty unless half
        of the runs of both patterns are known.
    errors : mapping of int to float
        |predicted gain / measured gain - 1| by number of I/O nodes; empty if it is not known.
    covered : mapping of int to bool
        Whether the measured seconds are in the interval, which is widened by the noise of the
        measured means.
    time_error : float or None
        |predicted - measured seconds saved| / the longer of the two measured times, each version
        with its decision.
    right : bool or None
        Whether the verdict "faster" or "slower" is that of the measurements; None for others.
    """

    system: str
    change: str
    hidden: str
    today: str
    changed: str
    verdict: str
    matched: str | None
    floor: Mapping[int, float]
    errors: Mapping[int, float] = field(default_factory=dict)
    covered: Mapping[int, bool] = field(default_factory=dict)
    time_error: float | None = None
    right: bool | None = None


def pairs(curves: Sequence[Curve]) -> list[Pair]:
    """The pairs of patterns of the same operation, processes and fsync that advice can connect."""
    found = []
    for today, changed in permutations(curves, 2):
        one, other = today.config, changed.config
        same = (one.operation, one.tasks, one.nodes, one.fsync, one.odirect)
        if same == (other.operation, other.tasks, other.nodes, other.fsync, other.odirect):
            change = _changed_property(one, other)
            if change and _ratio_of_bytes(today, changed) <= _ABOUT_THE_SAME:
                found.append(Pair(change, today, changed))
            elif change == SIZE and _ratio_of_bytes(today, changed) <= _MOST_BYTES:
                found.append(Pair(SIZE_AND_BYTES, today, changed))
    return found


def _changed_property(one: IorConfig, other: IorConfig) -> str | None:
    """The only property that differs and that advice changes in this direction."""
    if one.kind == other.kind and one.order == other.order:
        return SIZE if one.transfer_size < other.transfer_size else None
    if one.transfer_size != other.transfer_size or one.operation != other.operation:
        return None
    ours, theirs = one.kind, other.kind
    if ours.file_access != theirs.file_access:
        rest = ours._replace(file_access=theirs.file_access)
        return "file access" if rest == theirs else None
    if other.collective and not one.collective and one.order == other.order:
        return "collective calls"
    if one.order == "random" and other.order == "contiguous" and ours.api == theirs.api:
        return "order"
    return None


def _ratio_of_bytes(today: Curve, changed: Curve) -> float:
    """The larger of the bytes per process over the smaller; 1 if a time limit ended the runs."""
    if today.stonewalled and changed.stonewalled:
        return 1.0
    moved = (today.config.bytes_per_process, changed.config.bytes_per_process)
    return max(moved) / min(moved)


def left_out(
    system: str, curves: Sequence[Curve], judged_pairs: Sequence[Pair]
) -> Iterator[Judged]:
    """Hide one pattern of each pair, the other one, and both."""
    # Many pairs share a pattern, and each fit takes a second.
    knowledge: dict[frozenset[int], SystemModel] = {}
    for pair in judged_pairs:
        for hidden, curves_hidden in (
            (TODAY, [pair.today]),
            (CHANGED, [pair.changed]),
            (BOTH, [pair.today, pair.changed]),
        ):
            ids = frozenset(curve.id for curve in curves_hidden)
            if ids not in knowledge:
                rest = tuple(curve for curve in curves if curve.id not in ids)
                knowledge[ids] = SystemModel(rest, fit_model(rest))
            yield judge(system, hidden, pair, knowledge[ids])


def halves(system: str, curves: Sequence[Curve]) -> Iterator[Judged]:
    """Predict the gain in one half of the runs from the other half of both patterns."""
    for first in (0, 1):
        known, rest = {}, {}
        for curve in curves:
            cells = curve.bandwidths_mib_s
            halved = {n: runs[first::2] or runs for n, runs in cells.items()}
            others = {n: runs[1 - first :: 2] or runs for n, runs in cells.items()}
            known[curve.id] = replace(curve, bandwidths_mib_s=halved)
            rest[curve.id] = replace(curve, bandwidths_mib_s=others)
        own = tuple(known.values())
        knowledge = SystemModel(own, fit_model(own))
        for pair in pairs(curves):
            held_back = Pair(pair.change, rest[pair.today.id], rest[pair.changed.id])
            yield judge(system, MEASURED, held_back, knowledge)


def judge(system: str, hidden: str, pair: Pair, knowledge: SystemModel) -> Judged:
    """Predict the gain of a pair as `ioncast advise` does, and compare with the measurements."""
    phase = phase_of(pair.today.config)
    attempt = Attempt(("larger",), (), (phase_of(pair.changed.config, phase.bytes),))
    asked = PredictionRequest(system, nodes=pair.today.config.nodes, io_nodes=pair.io_nodes)
    advised = try_all([phase], knowledge, [attempt], Hints(frozenset()), asked)
    [advice] = advised.advice
    measured = _measured_gains(pair, pair.io_nodes)
    unjudged = Judged(
        system=system,
        change=pair.change,
        hidden=hidden,
        today=pair.today.config.command_line(launcher=True),
        changed=pair.changed.config.command_line(launcher=True),
        verdict=advice.verdict,
        matched=advice.matched,
        floor=_floor(pair, knowledge, measured),
    )
    now = decided(advised.today)
    then = None if advice.then is None else decided(advice.then)
    if now is None or then is None or advice.then is None or advice.saved_seconds is None:
        return unjudged
    here, there = (
        {point.io_nodes: point.bandwidth_mib_s.mean for point in prediction.curve}
        for prediction in (advised.today, advice.then)
    )
    before, after = (
        {n: phase.bytes / _MIB / fmean(curve.bandwidths_mib_s[n]) for n in pair.io_nodes}
        for curve in (pair.today, pair.changed)
    )
    times = (before[now.io_nodes], after[then.io_nodes])
    saved = times[0] - times[1]
    return replace(
        unjudged,
        errors=_errors({n: there[n] / here[n] for n in pair.io_nodes}, measured),
        covered={
            n: _is_within(before[n] - after[n], span, pair, n, (before[n], after[n]))
            for n, span in advice.saved_by_io_nodes.items()
        },
        time_error=abs(advice.saved_seconds.expected - saved) / max(times),
        right=None if advice.verdict == "unsure" else (saved > 0) == (advice.verdict == "faster"),
    )


def _floor(pair: Pair, knowledge: SystemModel, measured: Mapping[int, float]) -> dict[int, float]:
    """The error of the gain in the runs that are known, if both patterns are."""
    known = {curve.id: curve for curve in knowledge.curves}
    if pair.today.id not in known or pair.changed.id not in known:
        return {}
    halved = Pair(pair.change, known[pair.today.id], known[pair.changed.id])
    return _errors(_measured_gains(halved, pair.io_nodes), measured)


def _measured_gains(pair: Pair, numbers: Sequence[int]) -> dict[int, float]:
    """The bandwidth of the changed pattern over that of today's, by number of I/O nodes."""
    today, changed = pair.today.bandwidths_mib_s, pair.changed.bandwidths_mib_s
    return {n: fmean(changed[n]) / fmean(today[n]) for n in numbers}


def _errors(gains: Mapping[int, float], measured: Mapping[int, float]) -> dict[int, float]:
    return {n: abs(gain / measured[n] - 1) for n, gain in gains.items()}


def _is_within(
    saved: float, span: Span, pair: Pair, io_nodes: int, seconds: tuple[float, float]
) -> bool:
    """Whether measured seconds are in an interval, given that measured means scatter too."""
    cells = (curve.bandwidths_mib_s[io_nodes] for curve in (pair.today, pair.changed))
    shares = [stdev(runs) / fmean(runs) / math.sqrt(len(runs)) for runs in cells if len(runs) > 1]
    noise = _NINETIETH * math.hypot(*(s * share for s, share in zip(seconds, shares, strict=False)))
    lowest = span.expected - math.hypot(span.expected - span.p10, noise)
    highest = span.expected + math.hypot(span.p90 - span.expected, noise)
    return lowest <= saved <= highest
