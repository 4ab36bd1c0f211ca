"""What pages show of a prediction: the JSON of `ioncast predict` in words, rows and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ioncast.service.pages.figures import Figure, curve_figure, timeline_figure
from ioncast_base.kinds import kind_of_record
from ioncast_base.wording import in_digits, in_words
from predictor.composition.composing import MIB, Bandwidth, Point
from summario.phases.tables import size

Measured = Mapping[int, Sequence[float]]

# Longer tables and lists are not read.
_MOST_ROWS = 200
_MOST_NUMBERS = 6
# Less is said to be as good.
_SMALLEST_GAIN = 0.05
_MATCHES = {
    "exact": ("good", "measured", "a benchmark of exactly this was run"),
    "interpolated": ("info", "interpolated", "between benchmarks of its kind that were run"),
    "model": ("warn", "model", "beyond all benchmarks of its kind; the model extends them"),
    "unknown": ("bad", "unknown", "no benchmark of its kind was run"),
}


@dataclass(frozen=True)
class CurveRow:
    """A number of I/O nodes: what is expected, and what runs got."""

    io_nodes: int
    point: Point | None
    runs_mib_s: tuple[float, ...]
    is_best: bool
    is_decision: bool


@dataclass(frozen=True)
class PhaseRow:
    """A phase.

    Attributes
    ----------
    number : int
        Its number in the job.
    kind : str
        In words.
    record : mapping
        As `ioncast phases --format json` shows it.
    requests : tuple of (int, float)
        How many there are of which size in bytes.
    """

    number: int
    kind: str
    record: Mapping[str, Any]
    requests: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Matched:
    """How a phase was matched: the style, the word, what it means, and the benchmark."""

    style: str
    word: str
    meaning: str
    benchmark: int | None
    line: str | None
    wanted: str
    distance: float | None


@dataclass(frozen=True)
class MatchedRow:
    """Phases of one kind that rest on one benchmark.

    Attributes
    ----------
    kind : str
        In words.
    phases : tuple of int
        Their numbers.
    match : Matched
        How, and to what; the farthest of them.
    observed_mib_s, expected_mib_s : float or None
        Their bytes over their I/O time, in the run and as expected.
    share : float or None
        Of the time that all phases are expected to take.
    """

    kind: str
    phases: tuple[int, ...]
    match: Matched
    observed_mib_s: float | None
    expected_mib_s: float | None
    share: float | None

    @property
    def numbers(self) -> str:
        """The phases' numbers, the first ones of many."""
        shown = ", ".join(map(str, self.phases[:_MOST_NUMBERS]))
        more = len(self.phases) - _MOST_NUMBERS
        return f"{shown} and {more} more" if more > 0 else shown


@dataclass(frozen=True)
class AnswerShown:
    """What a scheduler is told of an application.

    Attributes
    ----------
    headline : str
        What is decided.
    expected : str or None
        What is expected then.
    said : tuple of str
        The alternatives in sentences.
    why : str
        What the scheduler is told why, a clause.
    """

    headline: str
    expected: str | None
    said: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class PredictionShown:
    """A prediction on a page.

    Attributes
    ----------
    headline : str
        What is decided.
    expected : str or None
        What is expected then.
    said : tuple of str
        The curve in sentences.
    why, warnings : tuple of str
        Sentences.
    curve : Figure or None
        None where nothing is predicted.
    rows : tuple of CurveRow
        The same as a table.
    timeline : Figure
        The phases.
    phases : tuple of PhaseRow
        The same as a table; of many, those that took longest.
    matched : tuple of MatchedRow
        What they rest on, what takes most of the time first.
    slowest : str
        Where most of the run's time went.
    """

    headline: str
    expected: str | None
    said: tuple[str, ...]
    why: tuple[str, ...]
    warnings: tuple[str, ...]
    curve: Figure | None
    rows: tuple[CurveRow, ...]
    timeline: Figure
    phases: tuple[PhaseRow, ...]
    matched: tuple[MatchedRow, ...]
    slowest: str


def answer_shown(
    record: Mapping[str, Any], measured: Measured, ran_with: int | None = None
) -> AnswerShown:
    """Show the answer to a scheduler's question.

    Parameters
    ----------
    record : mapping
        The JSON of the answer.
    measured : mapping of int to sequence of float
        What runs of the application got, in MiB/s by number of I/O nodes.
    ran_with : int, optional
        I/O nodes of the newest run.
    """
    decided, mean_mib_s = record["io_nodes"], record["expected_mib_s"]
    given = () if mean_mib_s is None else (record, *record["alternatives"])
    return AnswerShown(
        headline=_headline(decided),
        expected=_expected(mean_mib_s, record["p10_mib_s"], record["p90_mib_s"]),
        said=tuple(
            _said(
                {each["io_nodes"]: each["expected_mib_s"] for each in given},
                decided,
                ran_with,
                measured,
            )
        ),
        why=record["why"],
    )


def prediction_shown(
    record: Mapping[str, Any], measured: Measured, ran_with: int | None = None
) -> PredictionShown:
    """Show a prediction.

    Parameters
    ----------
    record : mapping
        As `jobs.predict_job` returns it.
    measured : mapping of int to sequence of float
        What runs of the application got, in MiB/s by number of I/O nodes.
    ran_with : int, optional
        I/O nodes of the run of the phases.
    """
    points = [_point(each) for each in record["curve"]]
    decision, best = record["decision"], record["best"]
    decided = decision["io_nodes"]
    figure = None
    if points:
        figure = curve_figure(points, best=best["io_nodes"], decision=decided, measured=measured)
    by_number = {point.io_nodes: point for point in points}
    at_decided = by_number.get(decided)
    speed = at_decided.bandwidth_mib_s if at_decided else None
    means_mib_s = {n: point.bandwidth_mib_s.mean for n, point in by_number.items()}
    phases = phase_rows([{**each["phase"], "parts": each["parts"]} for each in record["phases"]])
    return PredictionShown(
        headline=_headline(decided),
        expected=_expected(speed.mean, speed.p10, speed.p90) if speed else None,
        said=tuple(_said(means_mib_s, decided, ran_with, measured)),
        why=tuple(record["explanation"]),
        warnings=tuple(record["warnings"]),
        curve=figure,
        rows=tuple(
            CurveRow(
                n, by_number.get(n), tuple(measured.get(n, ())), n == best["io_nodes"], n == decided
            )
            for n in sorted({*by_number, *measured})
        ),
        timeline=timeline_figure([each["phase"] for each in record["phases"]]),
        phases=longest(phases),
        matched=tuple(_matched_rows(record["phases"], decided)),
        slowest=slowest_of(phases),
    )


def phase_rows(records: Sequence[Mapping[str, Any]]) -> tuple[PhaseRow, ...]:
    """The phases of a run, as `ioncast phases --format json` shows them."""
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
    """The phases that took longest, as many as a table may have, in their order."""
    kept = sorted(phases, key=lambda phase: -phase.record["time"])[:_MOST_ROWS]
    return tuple(sorted(kept, key=lambda phase: phase.number))


def slowest_of(phases: Sequence[PhaseRow]) -> str:
    """Say which kind of I/O took most of a run's time."""
    times_s: Counter[str] = Counter()
    for phase in phases:
        times_s[phase.kind] += phase.record["time"]
    total_s = times_s.total()
    if not total_s:
        return "Each bar is a phase: I/O of one kind."
    kind, time_s = times_s.most_common(1)[0]
    moved = [phase for phase in phases if phase.kind == kind]
    requests = sum(phase.record["requests"] for phase in moved)
    mean = sum(phase.record["bytes"] for phase in moved) / max(requests, 1)
    share = "All" if len(times_s) == 1 else f"{time_s / total_s:.0%}"
    return (
        f"{share} of the {in_digits(total_s)} s of I/O went into one kind, {kind}:"
        f" {requests:,} request{'' if requests == 1 else 's'} of {size(mean)} on average."
    )


def _headline(decided: int | None) -> str:
    if decided is None:
        return "No answer: the scheduler's default holds"
    words = in_words(decided)
    return words[:1].upper() + words[1:]


def _point(record: Mapping[str, Any]) -> Point:
    return Point(**{**record, "bandwidth_mib_s": Bandwidth(**record["bandwidth_mib_s"])})


def _expected(mean: float | None, p10: float, p90: float) -> str | None:
    if mean is None:
        return None
    return (
        f"{in_digits(mean)} MiB/s expected, eight runs in ten between"
        f" {in_digits(p10)} and {in_digits(p90)} MiB/s"
    )


def _said(
    means_mib_s: Mapping[int, float],
    decided: int | None,
    ran_with: int | None,
    measured: Measured,
) -> list[str]:
    """What a user wants to know of the curve: what the run got, what could be had, what not."""
    told = []
    if ran_with is not None and measured.get(ran_with):
        got = fmean(measured[ran_with])
        many = len(measured[ran_with]) > 1
        told.append(
            f"With {in_words(ran_with)} {'its runs' if many else 'it'} got {in_digits(got)} MiB/s"
            f"{' on average' if many else ''}."
        )
    if decided is None or decided not in means_mib_s:
        return told
    if ran_with is not None and ran_with in means_mib_s and ran_with != decided:
        ratio = means_mib_s[decided] / means_mib_s[ran_with]
        told.append(_compared(ratio, decided, ran_with))
    slowest = min(means_mib_s, key=means_mib_s.__getitem__)
    if slowest not in (decided, ran_with):
        told.append(
            f"The slowest choice, {in_words(slowest)}, is expected to give"
            f" {in_digits(means_mib_s[slowest])} MiB/s."
        )
    return told


def _compared(ratio: float, decided: int, before: int) -> str:
    names = in_words(decided), in_words(before)
    if abs(ratio - 1) < _SMALLEST_GAIN:
        return f"With {names[0]} it is expected to be about as fast as with {names[1]}."
    if ratio > 1:
        return f"With {names[0]} it is expected to be {ratio:.2g} times as fast as with {names[1]}."
    return f"With {names[0]} it is expected to be slower than with {names[1]}: {ratio:.0%}."


def _matched_rows(phases: Sequence[Mapping[str, Any]], decided: int | None) -> list[MatchedRow]:
    groups: dict[tuple[str, str, int | None], list[int]] = {}
    for number, each in enumerate(phases):
        match = each["match"]
        key = str(kind_of_record(each["phase"])), match["kind"], match["configuration_id"]
        groups.setdefault(key, []).append(number)
    total_s = sum(_at(each["time_s"], decided) or 0.0 for each in phases)
    rows = []
    for (kind, _, _), numbers in groups.items():
        group = [phases[number] for number in numbers]
        farthest = max(group, key=lambda each: each["match"]["distance"] or 0.0)
        moved_mib = sum(each["phase"]["bytes"] for each in group) / MIB
        observed_s = sum(each["phase"]["time"] for each in group)
        expected_s = sum(_at(each["time_s"], decided) or 0.0 for each in group)
        rows.append(
            MatchedRow(
                kind=kind,
                phases=tuple(numbers),
                match=_matched(farthest["match"]),
                observed_mib_s=moved_mib / observed_s if observed_s else None,
                expected_mib_s=moved_mib / expected_s if expected_s else None,
                share=expected_s / total_s if expected_s else None,
            )
        )
    return sorted(rows, key=lambda row: -(row.share or 0.0))


def _at(times_s: Mapping[Any, float], decided: int | None) -> float | None:
    # JSON has texts for keys; what comes from a child has numbers.
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
