"""The content of the page with two runs of an application side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchdb.store.database import transaction
from ioncast.insights.comparison.comparing import TOLERANCE, compare, differs
from ioncast.insights.comparison.in_words import largest_differences
from ioncast.insights.comparison.job_rows import job_rows
from ioncast.insights.comparison.shown import Texts, marked, shown_rows
from ioncast.insights.tables.recorded import from_records
from ioncast.service.context import service
from ioncast.service.store.applications import Application
from ioncast.service.store.run_insights import Insights
from ioncast.service.store.runs import StoredRun, run_of
from ioncast.service.web.pages.application import prepared_answer
from ioncast.service.web.sandbox.insight_documents import current_insights, with_advice
from ioncast.show.figures import bandwidths_figure, timelines_figure
from ioncast.show.insights import (
    FindingShown,
    finding_shown,
    insights_shown,
)
from ioncast.show.prediction import PhaseRow, curve_of_answer, longest, phase_rows
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.kinds import kind_of_record
from ioncast_base.pages.figures import Figure
from ioncast_base.wording import bandwidth, in_digits, in_words, listed, size
from predictor.curve.composing import observed_mib_s
from predictor.model.plausible import is_implausible_beside
from summario.phases.tables import from_record

NAMES = ("A", "B")
_NO_INSIGHTS = (
    "it was sent to an older version of ioncast, or its log could not be evaluated. So only"
    " bandwidths and phases are compared. To compare the rest, send all its logs again."
)
Pair = tuple[float | None, float | None]
_OfOne = tuple[FindingShown, str | None]


@dataclass(frozen=True)
class PropertyRow:
    """A property of both runs.

    Attributes
    ----------
    texts : tuple of (str, str)
        The values with units; the second one is `Marked` if it differs.
    ratio : str
        The second value over the first one.
    """

    name: str
    texts: tuple[str, str]
    ratio: str


@dataclass(frozen=True)
class KindRow:
    """A kind of I/O in both runs: seconds of I/O, and bandwidths in MiB/s; None if unknown."""

    kind: str
    times_s: Pair
    bandwidths_mib_s: Pair
    ratio: str


@dataclass(frozen=True)
class InsightsCompared:
    """The insights into both runs.

    Attributes
    ----------
    differences : list of str
        The largest differences of the second run to the first one, the largest first.
    alone : tuple of (list, list)
        The findings that only the first run has, and those that only the second one has. Each
        stands with the reason why it was not checked in the other run, if it was not.
    both : list of (FindingShown, FindingShown)
        The findings that both have, with the words about each run.
    tables : list of (str, list of Texts)
        Titles and rows: the columns "layer" and "characteristic", and one for each of `NAMES`.
    """

    differences: list[str]
    alone: tuple[list[_OfOne], list[_OfOne]]
    both: list[tuple[FindingShown, FindingShown]]
    tables: list[tuple[str, list[Texts]]]
    notes: list[str]


@dataclass(frozen=True)
class RunsCompared:
    """Two runs of an application on their page.

    Attributes
    ----------
    runs : tuple of StoredRun
        The runs; the second one is compared with the first one.
    headline : str
        A sentence about their bandwidths, and one more if any is implausible.
    timeline : Figure or None
        The phases of both; None if no run has phases.
    phases : tuple of (tuple of PhaseRow, tuple of PhaseRow)
        The same phases; of many phases, the slowest.
    """

    application: Application
    runs: tuple[StoredRun, ...]
    headline: str
    implausible: tuple[bool, bool]
    properties: list[PropertyRow]
    insights: InsightsCompared | str
    timeline: Figure | None
    phases: tuple[tuple[PhaseRow, ...], tuple[PhaseRow, ...]]
    bandwidths: Figure
    kinds: list[KindRow]


def read_comparison(application_id: int, run_id: int | None, other_id: int | None) -> RunsCompared:
    """Read two runs of an application, and compare the second with the first."""
    if run_id is None or other_id is None or run_id == other_id:
        raise UnknownNameError(
            f"the address does not name two runs of application {application_id}",
            remedy="choose them on the page of the application",
        )
    with transaction(service().database) as connection:
        runs = tuple(run_of(connection, application_id, each) for each in (run_id, other_id))
        stored = [current_insights(connection, each) for each in (run_id, other_id)]
    first, second = (phase_rows(run.phases) for run in runs)
    kinds = list(_kinds(runs))
    has_phases = bool(first or second)
    implausible = (_is_implausible(runs[0]), _is_implausible(runs[1]))
    named = {f"Run {name}": run.phases for name, run in zip(NAMES, runs, strict=True)}
    return RunsCompared(
        application=runs[0].application,
        runs=runs,
        headline=_headline(*(run.bandwidth_mib_s for run in runs)) + _doubt(implausible),
        implausible=implausible,
        properties=[_property(runs, *each) for each in _PROPERTIES],
        insights=_insights(stored),
        timeline=timelines_figure(named) if has_phases else None,
        phases=(longest(first), longest(second)),
        bandwidths=bandwidths_figure(
            {
                name: {row.kind: row.bandwidths_mib_s[place] for row in kinds}
                for place, name in enumerate(named)
            }
        ),
        kinds=kinds,
    )


def _headline(first_mib_s: float | None, second_mib_s: float | None) -> str:
    if not first_mib_s or not second_mib_s:
        return "The bandwidth of a run is unknown, so the page cannot tell which run was faster."
    got = f"{bandwidth(second_mib_s)} and {bandwidth(first_mib_s)}"
    if not differs(first_mib_s, second_mib_s, TOLERANCE):
        return f"Run B and run A were about as fast: {got}, measured."
    is_faster = second_mib_s > first_mib_s
    high, low = sorted((first_mib_s, second_mib_s), reverse=True)
    return (
        f"Run B was {in_digits(high / low, 2)} times as {'fast' if is_faster else 'slow'} as run A:"
        f" {got}, measured."
    )


def _is_implausible(run: StoredRun) -> bool:
    """Judge the bandwidth of a run beside the prepared answer for a job like it."""
    if run.bandwidth_mib_s is None:
        return False
    curve = curve_of_answer(prepared_answer(run))
    return is_implausible_beside(run.bandwidth_mib_s, run.io_nodes, curve)


def _doubt(implausible: Sequence[bool]) -> str:
    named = [f"run {name}" for name, is_so in zip(NAMES, implausible, strict=True) if is_so]
    if not named:
        return ""
    return (
        f" The bandwidth of {listed(named)} is implausible: it is too high to be true, as that of"
        " a log from another machine or of a run whose data stayed in a cache."
    )


_Value = float | None


def _property(
    runs: Sequence[StoredRun],
    name: str,
    value: Callable[[StoredRun], _Value],
    text: Callable[[Any], str],
) -> PropertyRow:
    first, second = (value(run) for run in runs)
    texts = ["unknown" if each is None else text(each) for each in (first, second)]
    if differs(first, second, TOLERANCE):
        texts[1] = marked(texts[1])
    return PropertyRow(name, (texts[0], texts[1]), _ratio(first, second))


def _ratio(first: _Value, second: _Value) -> str:
    return f"{in_digits(second / first)} ×" if first and second else ""


def _io_seconds(phases: Sequence[dict[str, Any]]) -> float | None:
    return sum(phase["time"] for phase in phases) or None


_PROPERTIES: tuple[tuple[str, Callable[[StoredRun], _Value], Callable[[Any], str]], ...] = (
    ("Processes", lambda run: run.tasks, "{:,}".format),
    ("Compute nodes", lambda run: run.nodes, "{:,}".format),
    ("I/O nodes", lambda run: run.io_nodes, in_words),
    ("Read and written", lambda run: sum(phase["bytes"] for phase in run.phases), size),
    ("Bandwidth, measured", lambda run: run.bandwidth_mib_s, bandwidth),
    ("I/O time", lambda run: _io_seconds(run.phases), lambda seconds: f"{in_digits(seconds)} s"),
)


def _kinds(runs: Sequence[StoredRun]) -> Iterator[KindRow]:
    """Compare each kind of I/O, after the whole run."""
    by_kind: dict[str, tuple[list[dict[str, Any]], ...]] = {}
    for place, run in enumerate(runs):
        for phase in run.phases:
            by_kind.setdefault(str(kind_of_record(phase)), ([], []))[place].append(phase)
    whole = [run.bandwidth_mib_s for run in runs]
    yield _kind("whole run", [run.phases for run in runs], whole)
    for kind, phases in by_kind.items():
        yield _kind(kind, phases, [_observed(each) for each in phases])


def _kind(
    kind: str, phases: Sequence[Sequence[dict[str, Any]]], bandwidths: Sequence[_Value]
) -> KindRow:
    first, second = bandwidths
    times = [_io_seconds(each) for each in phases]
    return KindRow(kind, (times[0], times[1]), (first, second), _ratio(first, second))


def _observed(phases: Sequence[dict[str, Any]]) -> float | None:
    try:
        return observed_mib_s([from_record(phase) for phase in phases])
    except (ValueError, InputError):
        return None


def _insights(stored: Sequence[Insights | None]) -> InsightsCompared | str:
    missing = [f"run {name}" for name, each in zip(NAMES, stored, strict=True) if each is None]
    known = [each for each in stored if each is not None]
    if missing:
        return f"There are no findings and tables of {listed(missing)}: {_NO_INSIGHTS}"
    shown = [insights_shown(each.characterisation, each.checks) for each in known]
    tables, differences = _tables([each.characterisation for each in known])
    first, second = (_by_code(each.checks) for each in known)
    unknown = [each.checks["unknown"] for each in known]
    return InsightsCompared(
        differences=differences,
        alone=(_only_in(first, second, unknown[1]), _only_in(second, first, unknown[0])),
        both=[(first[code], second[code]) for code in first if code in second],
        tables=tables,
        notes=[
            f"Run {name}: {note}"
            for name, each in zip(NAMES, shown, strict=True)
            for note in each.notes
        ],
    )


def _by_code(checks: Mapping[str, Any]) -> dict[str, FindingShown]:
    return {each["code"]: finding_shown(each) for each in with_advice(checks)["findings"]}


def _only_in(
    found: Mapping[str, FindingShown],
    others: Mapping[str, FindingShown],
    unknown: Mapping[str, str],
) -> list[_OfOne]:
    """List the findings that are not among the other run's, whose checks may not be evaluated."""
    return [(each, unknown.get(code)) for code, each in found.items() if code not in others]


def _tables(
    records: Sequence[dict[str, Any]],
) -> tuple[list[tuple[str, list[Texts]]], list[str]]:
    """Put the tables side by side, and name the largest differences."""
    runs = from_records(records)
    compared = compare(runs)
    tables = [
        ("Job", list(job_rows(runs, NAMES, TOLERANCE))),
        *((table.title, list(shown_rows(table, NAMES))) for table in compared),
    ]
    return [table for table in tables if table[1]], largest_differences(compared, 1)
