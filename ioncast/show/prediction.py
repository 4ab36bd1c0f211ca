"""A prediction for the pages: the JSON of `ioncast predict` as words, rows and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from ioncast.show.figures import answer_figure, timelines_figure
from ioncast.show.small_curve import Interval, SmallCurve, small_curve
from ioncast_base.errors import InputError
from ioncast_base.kinds import kind_of_record
from ioncast_base.pages.figures import Figure
from ioncast_base.wording import bandwidth, counted, in_digits, in_words, sentence, size
from predictor.curve.composing import MIB, Bandwidth, Point, observed_mib_s
from predictor.curve.drawing import curve_figure
from predictor.model.plausible import IMPLAUSIBLE_FACTOR, is_implausible_beside
from predictor.validation.against_reruns import Expected
from summario.phases.periods import Period, find_periods
from summario.phases.periods import in_words as periodic
from summario.phases.tables import from_record

Measured = Mapping[int, Sequence[float]]
# Number of I/O nodes, predicted bandwidth, p10 and p90, as in a decision.
_Curve = Sequence[tuple[int, float, float, float]]
_POINT_OF_ANSWER = ("io_nodes", "expected_mib_s", "p10_mib_s", "p90_mib_s")

# Nobody reads longer tables and lists.
_MOST_ROWS = 200
_MOST_NUMBERS = 6
_MOST_PERIODS = 6
# A smaller gain is called about as fast.
_SMALLEST_GAIN = 0.05
_MATCHES = {
    "exact": ("good", "exact", "a benchmark with the same I/O was run"),
    "interpolated": (
        *("info", "interpolated"),
        "between benchmarks of the same kind, or with another fsync or order of requests",
    ),
    "model": ("warn", "model", "beyond all benchmarks of the same kind; the model extends them"),
    "unknown": ("bad", "unknown", "no benchmark of the same kind was run"),
}


class RunBandwidth(NamedTuple):
    """The bandwidth of a run, and whether it is too high to be true."""

    mib_s: float
    is_implausible: bool


@dataclass(frozen=True)
class CurveRow:
    """A number of I/O nodes: the next run, the prediction from benchmarks alone, earlier runs."""

    io_nodes: int
    expected: Expected | None
    alone: Point | None
    runs_mib_s: tuple[RunBandwidth, ...]
    is_decision: bool


@dataclass(frozen=True)
class PhaseRow:
    """A phase as a row of a table.

    Attributes
    ----------
    record : mapping
        The phase as `ioncast phases --format json` prints it.
    requests : tuple of (int, float)
        Numbers of requests with their sizes in bytes.
    """

    number: int
    kind: str
    record: Mapping[str, Any]
    requests: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Matched:
    """The match of a phase: the tag's style, word and meaning, and the benchmark."""

    style: str
    word: str
    meaning: str
    benchmark: int | None
    line: str | None
    wanted: str
    distance: float | None


@dataclass(frozen=True)
class MatchedRow:
    """Phases of one kind of I/O that were matched to one benchmark.

    Attributes
    ----------
    observed_mib_s, expected_mib_s : float or None
        The phases' bytes over the time that they took in the run, and over the expected time.
    share : float or None
        The phases' share of the expected time of all phases.
    """

    kind: str
    phases: tuple[int, ...]
    match: Matched
    observed_mib_s: float | None
    expected_mib_s: float | None
    share: float | None

    @property
    def numbers(self) -> str:
        """The numbers of the phases in words; of many, the first ones."""
        shown = ", ".join(map(str, self.phases[:_MOST_NUMBERS]))
        more = len(self.phases) - _MOST_NUMBERS
        return f"{shown} and {more} more" if more > 0 else shown


@dataclass(frozen=True)
class AnswerShown:
    """The decision on the next run: a scheduler's answer, or a prediction from one log.

    Attributes
    ----------
    confidence : str
        A sentence with the confidence of the decision; empty if it is not known.
    said : tuple of str
        Sentences that compare the prediction with the run, and the decision with other numbers.
    why : tuple of str
        The reasons, in sentences.
    """

    headline: str
    expected: str | None
    confidence: str
    said: tuple[str, ...]
    why: tuple[str, ...]
    curve: SmallCurve


@dataclass(frozen=True)
class PhasesShown:
    """The phases of a run; `slowest` are sentences about kinds of I/O and phases that repeat."""

    timeline: Figure
    rows: tuple[PhaseRow, ...]
    slowest: str


@dataclass(frozen=True)
class PredictionShown:
    """A prediction on a page.

    Attributes
    ----------
    alone : tuple of str
        The reasons of the decision from benchmarks and this run alone, in sentences.
    curve : Figure or None
        The curve of the answer; None if nothing is predicted.
    matched : tuple of MatchedRow
        The benchmarks that the phases were matched to; the slowest phases come first.
    points : sequence of (int, float, float, float)
        The prediction from benchmarks and this run alone, as in a decision.
    """

    warnings: tuple[str, ...]
    alone: tuple[str, ...]
    curve: Figure | None
    rows: tuple[CurveRow, ...]
    has_answer: bool
    matched: tuple[MatchedRow, ...]
    points: _Curve


def curve_of_answer(record: Mapping[str, Any]) -> _Curve:
    """The curve in the answer to a scheduler's question, without points if it has no prediction."""
    given = () if record["expected_mib_s"] is None else (record, *record["alternatives"])
    return sorted(tuple(each[name] for name in _POINT_OF_ANSWER) for each in given)


def curve_of_prediction(record: Mapping[str, Any]) -> _Curve:
    """The curve of a prediction, given as `ioncast predict --format json` prints it."""
    points = map(point_of, record["curve"])
    return [(point.io_nodes, *_band(point.bandwidth_mib_s)) for point in points]


def answer_shown(
    record: Mapping[str, Any], measured: Measured, ran_with: int | None = None
) -> AnswerShown:
    """Put the answer to a scheduler's question in words."""
    return _answer(
        curve_of_answer(record),
        record["io_nodes"],
        record["confidence"],
        said=_said(curve_of_answer(record), record["io_nodes"], ran_with, measured),
        why=[sentence(record["why"])],
    )


def answer_of_prediction(
    record: Mapping[str, Any], measured: Measured, ran_with: int | None = None
) -> AnswerShown:
    """Put the decision of a prediction in words."""
    curve, decision = curve_of_prediction(record), record["decision"]
    return _answer(
        curve,
        decision["io_nodes"],
        decision["within_10_percent"],
        said=[*_beside_own_run(record), *_said(curve, decision["io_nodes"], ran_with, measured)],
        why=record["explanation"],
    )


def _answer(
    curve: _Curve,
    decided: int | None,
    confidence: float | None,
    *,
    said: Sequence[str],
    why: Sequence[str],
) -> AnswerShown:
    expected = {n: Expected(*band) for n, *band in curve}
    return AnswerShown(
        headline=_headline(decided),
        expected=_expected(expected[decided]) if decided in expected else None,
        confidence="" if confidence is None or not curve else _confidence(confidence),
        said=tuple(said),
        why=tuple(why),
        curve=answer_curve(curve, decided, has_labels=True),
    )


def answer_curve(curve: _Curve, decided: int | None, *, has_labels: bool = False) -> SmallCurve:
    """Draw the curve of an answer with its decision."""
    bands = {n: Interval(*band) for n, *band in curve}
    return small_curve(bands, decided, "Decision", has_labels=has_labels)


def _confidence(probability: float) -> str:
    return (
        f"Confidence: {probability:.0%}, the probability that the run does the same I/O and gets at"
        " least 90% of the best bandwidth."
    )


def prediction_shown(
    record: Mapping[str, Any], measured: Measured, answer: Mapping[str, Any] | None = None
) -> PredictionShown:
    """Arrange a prediction, beside the answer to the scheduler if there is one."""
    alone, best = curve_of_prediction(record), record["best"]["io_nodes"]
    decided = record["decision"]["io_nodes"] if answer is None else answer["io_nodes"]
    points = {point.io_nodes: point for point in map(point_of, record["curve"])}
    answered = [] if answer is None else curve_of_answer(answer)
    curve = answered or alone
    expected = {n: Expected(*band) for n, *band in curve}
    plausible, _ = _parted(measured, curve)
    figure = None
    if answered:
        figure = answer_figure(expected, decision=decided, measured=plausible)
    elif points:
        drawn = list(points.values())
        figure = curve_figure(drawn, best=best, decision=decided, measured=plausible)
    return PredictionShown(
        warnings=tuple(dict.fromkeys(record["warnings"])),
        alone=tuple(record["explanation"]),
        curve=figure,
        rows=tuple(
            CurveRow(
                n,
                expected.get(n),
                points.get(n),
                tuple(
                    RunBandwidth(v, is_implausible_beside(v, n, curve)) for v in measured.get(n, ())
                ),
                n == decided,
            )
            for n in sorted({*expected, *points, *measured})
        ),
        has_answer=bool(answered),
        matched=tuple(_matched_rows(record["phases"], record["decision"]["io_nodes"])),
        points=alone,
    )


def phases_shown(records: Sequence[Mapping[str, Any]]) -> PhasesShown | None:
    """Arrange phases, given as `ioncast phases --format json` prints them; None without phases."""
    rows = phase_rows(records)
    if not rows:
        return None
    return PhasesShown(timelines_figure({"": records}), longest(rows), said_of(rows))


def phases_of_prediction(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The phases of a prediction, as `ioncast phases --format json` prints them."""
    return [{**each["phase"], "parts": each["parts"]} for each in record["phases"]]


def _band(speed: Bandwidth) -> tuple[float, float, float]:
    return speed.mean, speed.p10, speed.p90


def _parted(
    measured: Measured, curve: _Curve
) -> tuple[dict[int, list[float]], list[tuple[int, float]]]:
    """Part the bandwidths of runs: by number of I/O nodes, and those that are implausible."""
    plausible: dict[int, list[float]] = {}
    implausible = []
    for n, values in measured.items():
        for mib_s in values:
            if is_implausible_beside(mib_s, n, curve):
                implausible.append((n, mib_s))
            else:
                plausible.setdefault(n, []).append(mib_s)
    return plausible, implausible


def phase_rows(records: Sequence[Mapping[str, Any]]) -> tuple[PhaseRow, ...]:
    """Make rows of phases, given as `ioncast phases --format json` prints them."""
    return tuple(
        PhaseRow(
            number=number,
            kind=str(kind_of_record(record)),
            record=record,
            requests=tuple((part["requests"], part["request_bytes"]) for part in record["parts"]),
        )
        for number, record in enumerate(records)
    )


def longest(phases: Sequence[PhaseRow]) -> tuple[PhaseRow, ...]:
    """Keep the slowest phases, as many as a table may have, in their order."""
    kept = sorted(phases, key=lambda phase: -phase.record["time"])[:_MOST_ROWS]
    return tuple(sorted(kept, key=lambda phase: phase.number))


def said_of(phases: Sequence[PhaseRow]) -> str:
    """Name the kind of I/O that took most of a run's time, and the phases that repeat."""
    repeated = [sentence(periodic(period)) for period in _periods_of(phases)[:_MOST_PERIODS]]
    return " ".join([_slowest_of(phases), *repeated])


def _periods_of(phases: Sequence[PhaseRow]) -> list[Period]:
    try:
        return find_periods([from_record(phase.record) for phase in phases])
    except InputError:
        # The database may have phases that another program wrote.
        return []


def _slowest_of(phases: Sequence[PhaseRow]) -> str:
    times_s: Counter[str] = Counter()
    for phase in phases:
        times_s[phase.kind] += phase.record["time"]
    total_s = times_s.total()
    if not total_s:
        return "Each bar is a phase: I/O of one kind."
    kind, time_s = times_s.most_common(1)[0]
    moved = [phase for phase in phases if phase.kind == kind and phase.record["requests"]]
    requests = sum(phase.record["requests"] for phase in moved)
    mean = sum(phase.record["bytes"] for phase in moved) / max(requests, 1)
    share = "All" if len(times_s) == 1 else f"{time_s / total_s:.0%}"
    return (
        f"{share} of the {in_digits(total_s)} s of I/O went into one kind, {kind}:"
        f" {counted(requests, 'request')} of {size(mean)} on average."
    )


def _headline(decided: int | None) -> str:
    if decided is None:
        return "No answer: the scheduler uses its default"
    return _capital(in_words(decided))


def point_of(record: Mapping[str, Any]) -> Point:
    """Read a point of a curve, given as `ioncast predict --format json` prints it."""
    return Point(**{**record, "bandwidth_mib_s": Bandwidth(**record["bandwidth_mib_s"])})


def _expected(band: Expected) -> str:
    return (
        f"Predicted: {bandwidth(band.mean)}; four of five runs should get {bandwidth(band.p10)} to"
        f" {bandwidth(band.p90)}"
    )


def _said(
    curve: _Curve, decided: int | None, ran_with: int | None, measured: Measured
) -> list[str]:
    """Compare the decision with the run's own number of I/O nodes and with the slowest.

    Each number is named as measured or as predicted, because the two may differ.
    """
    means_mib_s = {n: mean for n, mean, _, _ in curve}
    plausible, implausible = _parted(measured, curve)
    told = []
    if ran_with is not None and plausible.get(ran_with):
        got = plausible[ran_with]
        many = f" (mean of {len(got)} runs)" if len(got) > 1 else ""
        told.append(f"Measured: {bandwidth(fmean(got))} with {in_words(ran_with)}{many}.")
    if implausible:
        told.append(_left_out(implausible))
    if decided is None or decided not in means_mib_s:
        return told
    if ran_with is not None and ran_with in means_mib_s and ran_with != decided:
        told.append(_compared(means_mib_s, decided, ran_with))
    slowest = min(means_mib_s, key=means_mib_s.__getitem__)
    if slowest not in (decided, ran_with):
        told.append(
            f"Predicted for the slowest choice, {in_words(slowest)}:"
            f" {bandwidth(means_mib_s[slowest])}."
        )
    return told


def _beside_own_run(record: Mapping[str, Any]) -> list[str]:
    own = record["own_run"]
    return [sentence(own["in_words"])] if own else []


def _left_out(implausible: Sequence[tuple[int, float]]) -> str:
    io_nodes, mib_s = max(implausible, key=lambda pair: pair[1])
    others = f", and {counted(len(implausible) - 1, 'other')}" if len(implausible) > 1 else ""
    return (
        f"Measured, but implausible: {bandwidth(mib_s)} with {in_words(io_nodes)}{others}."
        f" More than {IMPLAUSIBLE_FACTOR:g} times the predicted p90 is left out of figures, means"
        " and corrections: the log may be of another machine, or the data stayed in a cache."
    )


def _compared(means_mib_s: Mapping[int, float], decided: int, before: int) -> str:
    """Compare two predicted numbers, never a predicted with a measured one."""
    ratio = means_mib_s[decided] / means_mib_s[before]
    names = in_words(decided), in_words(before)
    both = f"both predicted ({bandwidth(means_mib_s[decided])}, {bandwidth(means_mib_s[before])})"
    if abs(ratio - 1) < _SMALLEST_GAIN:
        return f"{_capital(names[0])} and {names[1]} are about as fast, {both}."
    if ratio > 1:
        times = in_digits(ratio, 2)
        return f"With {names[0]} it is {times} times as fast as with {names[1]}, {both}."
    return f"With {names[0]} it has {ratio:.0%} of the bandwidth with {names[1]}, {both}."


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _matched_rows(phases: Sequence[Mapping[str, Any]], decided: int | None) -> list[MatchedRow]:
    groups: dict[tuple[str, str, int | None], list[int]] = {}
    for number, each in enumerate(phases):
        match = each["match"]
        key = str(kind_of_record(each["phase"])), match["kind"], match["configuration_id"]
        groups.setdefault(key, []).append(number)
    total_s = sum(_at(phase["time_s"], decided) or 0.0 for phase in phases)
    rows = []
    for (kind, _, _), numbers in groups.items():
        group = [phases[number] for number in numbers]
        farthest = max(group, key=lambda each: each["match"]["distance"] or 0.0)
        moved_mib = sum(each["phase"]["bytes"] for each in group) / MIB
        expected_s = sum(_at(each["time_s"], decided) or 0.0 for each in group)
        rows.append(
            MatchedRow(
                kind=kind,
                phases=tuple(numbers),
                match=_matched(farthest["match"]),
                observed_mib_s=_observed(group),
                expected_mib_s=moved_mib / expected_s if expected_s else None,
                share=expected_s / total_s if expected_s else None,
            )
        )
    return sorted(rows, key=lambda row: -(row.share or 0.0))


def _observed(group: Sequence[Mapping[str, Any]]) -> float | None:
    try:
        return observed_mib_s(
            [from_record({**each["phase"], "parts": each["parts"]}) for each in group]
        )
    except ValueError:
        return None


def _at(times_s: Mapping[Any, float], decided: int | None) -> float | None:
    # The keys are texts in JSON, but numbers in the result of a child process.
    return times_s.get(decided, times_s.get(str(decided)))


def _matched(record: Mapping[str, Any]) -> Matched:
    style, word, meaning = _MATCHES[record["kind"]]
    return Matched(
        style=style,
        word=word,
        meaning=meaning,
        benchmark=record["configuration_id"],
        line=record["config"],
        wanted=record["wanted"],
        distance=record["distance"],
    )
