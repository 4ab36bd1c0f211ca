"""The causes of slow I/O in words, rows and figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ioncast.insights.checks.values import IMPORTANCES
from ioncast.insights.findings.text import stake_in_words, verdict_in_words
from ioncast.show.insights import FindingShown, finding_shown
from ioncast.show.prediction import point_of
from ioncast.show.ranked_causes import Cause, ranked
from ioncast_base.pages.figures import Figure
from ioncast_base.wording import counted, in_digits
from predictor.curve.composing import Bandwidth, Point
from predictor.what_if.advice_drawing import gain_figure
from predictor.what_if.advice_words import name_of_today

_T = TypeVar("_T")

# Nobody runs more benchmarks for one piece of advice.
_MOST_BENCHMARKS = 6
_MOST_AT_A_GLANCE = 3
_STYLES = {"faster": "good", "unsure": "info", "not known": "info", "slower": "warn"}
_RESTS_ON = {
    "exact": "It rests on benchmarks with the same I/O.",
    "interpolated": "It rests on benchmarks of the same kind on both sides of this I/O.",
    "model": "It rests on the model, which extends the benchmarks of the same kind.",
    "log": "It rests on the pauses of this run: the program computes while its I/O goes on.",
}
_FEWER_BYTES = "The run moves fewer bytes, so it saves time even without a higher bandwidth."
_TOGETHER = "Follow both pieces of advice at the same time."
# Advice that is tried without a finding: the I/O of today, and the other way.
_UNASKED = {
    ("own_files",): (
        "Processes share a file",
        "Give each process a file of its own. No check asks for this; either may be faster. Many"
        " files burden the metadata servers when they are created, and when they are read later.",
    ),
    ("one_file",): (
        "Each process has files of its own",
        "Let all processes share one file. No check asks for this; either may be faster.",
    ),
}


@dataclass(frozen=True)
class GainRow:
    """A number of I/O nodes in the table below a figure; None where nothing is predicted.

    Attributes
    ----------
    saved_seconds : dict or None
        The seconds that the run saves with this number: `p10`, `expected` and `p90`.
    """

    io_nodes: int
    today: Bandwidth | None
    then: Bandwidth | None
    saved_seconds: Mapping[str, float] | None
    decides: tuple[str, ...]


@dataclass(frozen=True)
class CauseShown:
    """A cause of slow I/O.

    Attributes
    ----------
    findings : tuple of FindingShown
        Its findings, the worst first; empty if two pieces of advice are followed together, because
        their findings have causes of their own.
    advice : tuple of (str, tuple of (str, str))
        Sentences that say what to do, each once, and for each library its name and an example.
    style, gain : str
        The style and the words of the tag that tells the gain; both empty without advice.
    name, sentence : str
        The advice, and its gain in words that follow it; empty if they are not known.
    today : str
        The name of the run as it is: "today", or "predicted" if its log contradicts it.
    unknown : str
        A sentence that says why a gain, or a part of it, is not known.
    """

    title: str
    codes: str
    findings: tuple[FindingShown, ...]
    advice: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    details: tuple[str, ...]
    style: str
    gain: str
    name: str
    sentence: str
    notes: tuple[str, ...]
    today: str
    figure: Figure | None
    rows: tuple[GainRow, ...]
    unknown: str
    measure: tuple[str, ...]
    more_to_measure: int


@dataclass(frozen=True)
class CausesShown:
    """The answer to "Why is my I/O slow?".

    Attributes
    ----------
    verdict : str
        Sentences about the time that I/O takes, and about its bandwidth; empty if not known.
    conclusion : str
        The advice that would help most, in a sentence.
    problem : str or None
        The reason why no gain is known, as a clause.
    causes : tuple of CauseShown
        The causes, as `ranked` sorts them; those whose advice makes the run slower come last.
    largest : tuple of CauseShown
        The first of them that could save time, at most three.
    """

    verdict: str
    conclusion: str
    problem: str | None
    causes: tuple[CauseShown, ...]
    largest: tuple[CauseShown, ...]
    negligible: tuple[CauseShown, ...]
    others: tuple[FindingShown, ...]


def causes_shown(checks: Mapping[str, Any] | None, advice: Mapping[str, Any] | str) -> CausesShown:
    """Arrange the findings of a run, as `ioncast check --format json` has them, and its advice."""
    known: Mapping[str, Any] = {"advice": []} if isinstance(advice, str) else advice
    nothing: dict[str, Any] = {"findings": [], "causes": [], "verdict": None}
    causes, others = ranked(nothing if checks is None else checks, known["advice"])
    causes = [_without_losses(cause, causes) for cause in causes]
    verdict = "" if checks is None else f"{verdict_in_words(checks['verdict'])} {_beside(known)}"
    largest = [cause for cause in causes if not (cause.is_negligible or cause.is_slower)]
    shown = tuple(_cause(cause, known) for cause in causes if not cause.is_negligible)
    return CausesShown(
        verdict=verdict.strip(),
        conclusion=_conclusion(causes),
        problem=advice if isinstance(advice, str) else None,
        causes=shown,
        largest=shown[: min(len(largest), _MOST_AT_A_GLANCE)],
        negligible=tuple(_cause(cause, known) for cause in causes if cause.is_negligible),
        others=tuple(map(finding_shown, others)),
    )


def _without_losses(cause: Cause, causes: Sequence[Cause]) -> Cause:
    """Leave out advice that another cause shows to make the run slower."""
    if cause.is_slower:
        return cause
    losses = {
        each["key"]
        for other in causes
        if other.is_slower
        for finding in other.findings
        for each in finding["advice"]
    }
    kept = [
        {**finding, "advice": [each for each in finding["advice"] if each["key"] not in losses]}
        for finding in cause.findings
    ]
    return replace(cause, findings=tuple(kept))


def _beside(known: Mapping[str, Any]) -> str:
    """Compare the run with the best number of I/O nodes, as far as benchmarks tell."""
    today: Mapping[str, Any] | None = known.get("today")
    points = [] if today is None else list(_by_number(today).values())
    if not points:
        return ""
    best = max(points, key=lambda point: point.bandwidth_mib_s.mean)
    band = best.bandwidth_mib_s
    return (
        f"The benchmarks of this system tell {in_digits(band.mean)} MiB/s"
        f" ({in_digits(band.p10)} to {in_digits(band.p90)}) for the same I/O with"
        f" {counted(best.io_nodes, 'I/O node')}, their best number."
    )


def _conclusion(causes: Sequence[Cause]) -> str:
    advice = [
        cause.advice for cause in causes if cause.advice is not None and not cause.is_negligible
    ]
    best = next((one for one in advice if one["verdict"] == "faster"), None)
    if best is not None:
        return (
            f"Most would help, as far as benchmarks tell: {best['name']}, which {best['sentence']}."
        )
    if any(one["saved_seconds"] for one in advice):
        return "No advice that could be predicted is sure to save time."
    return ""


def _cause(cause: Cause, known: Mapping[str, Any]) -> CauseShown:
    found = sorted(map(finding_shown, cause.findings), key=_severity)
    advice = cause.advice
    own = known.get("own_run")
    today = name_of_today(is_contradicted=own is not None and own["is_contradiction"])
    rows: tuple[GainRow, ...] = ()
    measure: list[str] = []
    if advice is not None:
        rows = tuple(_rows(known["today"], advice, today))
        measure = [_command(one) for one in advice["measure"]]
    is_pair = advice is not None and len(advice["keys"]) > 1
    title, to_do = _named(found, advice)
    if cause.name:
        title = _capital(cause.name)
    return CauseShown(
        title=title,
        codes=", ".join(finding.record["code"] for finding in found),
        findings=() if is_pair else tuple(found),
        advice=to_do,
        details=_each_once(() if is_pair else (line for each in found for line in each.details)),
        style=_STYLES[advice["verdict"]] if advice and advice["saved_seconds"] else "info",
        gain=_gain(cause),
        name=advice["name"] if advice else "",
        sentence=advice["sentence"] if advice and advice["saved_seconds"] else "",
        notes=tuple(_notes(advice)) if advice else (),
        today=today,
        figure=_figure(known["today"], advice["then"], today) if advice and rows else None,
        rows=rows,
        unknown=_why_unknown(advice) if advice else "",
        measure=tuple(measure[:_MOST_BENCHMARKS]),
        more_to_measure=max(len(measure) - _MOST_BENCHMARKS, 0),
    )


def _severity(finding: FindingShown) -> int:
    return IMPORTANCES.index(finding.record["importance"])


def _named(
    found: Sequence[FindingShown], advice: Mapping[str, Any] | None
) -> tuple[str, tuple[tuple[str, tuple[tuple[str, str], ...]], ...]]:
    """Name a cause, and say what to do."""
    keys = () if advice is None else tuple(advice["keys"])
    if advice is not None and len(keys) > 1:
        return _capital(advice["name"]), ((_TOGETHER, ()),)
    if found:
        first, *others = (finding.record["title"] for finding in found)
        title = ", ".join([first, *(other[:1].lower() + other[1:] for other in others)])
        return title, _each_once(one for finding in found for one in finding.advice)
    title, to_do = _UNASKED.get(keys, ("" if advice is None else _capital(advice["name"]), None))
    return title, () if to_do is None else ((to_do, ()),)


def _each_once(items: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))


def _gain(cause: Cause) -> str:
    """Say how many seconds a cause could save: as predicted, else at most."""
    advice, seconds = cause.advice, cause.predicted_seconds
    if advice is not None and seconds is not None:
        if advice["verdict"] == "slower":
            return f"takes {in_digits(-seconds)} s more"
        return "gain unsure" if advice["verdict"] == "unsure" else f"saves {in_digits(seconds)} s"
    if cause.worst is not None:
        return stake_in_words(cause.worst)
    return "gain not known"


def _notes(advice: Mapping[str, Any]) -> Iterator[str]:
    if advice["saved_seconds"] is not None:
        yield _RESTS_ON[advice["matched"]]
        if "once" in advice["keys"] and advice["verdict"] == "faster":
            yield _FEWER_BYTES


def _why_unknown(advice: Mapping[str, Any]) -> str:
    if advice["saved_seconds"] is not None:
        return "A part of the gain is not known."
    if advice["matched"] == "model":
        return "The gain is not known: the model, which extends the benchmarks, is not sure of it."
    return "The gain is not known, because nothing similar was measured."


def _command(missing: Mapping[str, Any]) -> str:
    nodes = missing["nodes"]
    on = f"  # on {counted(nodes, 'compute node')}" if nodes else ""
    return f"{missing['configuration']}{on}"


def _rows(today: Mapping[str, Any], advice: Mapping[str, Any], name: str) -> Iterator[GainRow]:
    """Yield the rows of both curves; nothing without another curve."""
    then = advice["then"]
    if then is None:
        return
    here, there = _by_number(today), _by_number(then)
    saved = {span["io_nodes"]: span for span in advice["saved_by_io_nodes"]}
    decided = {name: today["decision"]["io_nodes"], "then": then["decision"]["io_nodes"]}
    for n in sorted(here.keys() | there.keys()):
        yield GainRow(
            io_nodes=n,
            today=here[n].bandwidth_mib_s if n in here else None,
            then=there[n].bandwidth_mib_s if n in there else None,
            saved_seconds=saved.get(n),
            decides=tuple(name for name, number in decided.items() if number == n),
        )


def _figure(today: Mapping[str, Any], then: Mapping[str, Any], name: str) -> Figure:
    return gain_figure(list(_by_number(today).values()), list(_by_number(then).values()), name)


def _by_number(prediction: Mapping[str, Any]) -> dict[int, Point]:
    return {record["io_nodes"]: point_of(record) for record in prediction["curve"]}


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
