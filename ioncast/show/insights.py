"""Insights into a run on its page: findings with their advice, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ioncast.insights.comparison.in_words import layer_text, share_text, value_text
from ioncast.insights.figures.all_figures import figures_of
from ioncast.insights.figures.drawn import Drawn
from ioncast.insights.findings.text import (
    LIBRARY_NAMES,
    all_files,
    by_reason,
    details_of,
)
from ioncast.insights.tables.recorded import rows_of
from ioncast.insights.tables.values import Characteristic
from ioncast_base.wording import counted, in_digits, listed


class _Tag(NamedTuple):
    style: str
    meaning: str


_IMPORTANCES = {
    "major": _Tag("bad", "10 % of the run time or more at stake"),
    "minor": _Tag("warn", "1 % of the run time or more at stake"),
    "unknown": _Tag("info", "the time at stake is not known"),
    "negligible": _Tag("info", "next to no time at stake"),
}
_LEVELS = {"OK": _Tag("good", "good practice"), "INFO": _Tag("info", "a fact")}


@dataclass(frozen=True)
class FindingShown:
    """A finding of a check.

    Attributes
    ----------
    tag, style, meaning : str
        Its importance, or its level if it costs no time; the style of this tag, and its meaning.
    record : mapping
        The finding, as `ioncast check --format json` has it.
    advice : tuple of (str, tuple of (str, str))
        A sentence, and for each library its name and an example.
    """

    tag: str
    style: str
    meaning: str
    record: Mapping[str, Any]
    files_said: str
    advice: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    details: tuple[str, ...]


@dataclass(frozen=True)
class TableShown:
    """A table of a run, without characteristics that are 0.

    Attributes
    ----------
    rows : tuple of tuple of str
        For each characteristic its layer, name, value, share and note.
    """

    title: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class InsightsShown:
    """Insights into a run, apart from its findings."""

    facts: Mapping[str, str]
    tables: tuple[TableShown, ...]
    not_recorded: list[str]
    figures: tuple[Drawn, ...]
    unknown: Mapping[str, str]
    notes: list[str]


def insights_shown(characterisation: Mapping[str, Any], checks: Mapping[str, Any]) -> InsightsShown:
    """Arrange the two documents of `ioncast.service.web.sandbox.insight_documents`."""
    notes = [
        *characterisation["warnings"],
        *checks["warnings"],
        *_left_out(characterisation, checks),
    ]
    return InsightsShown(
        facts=_facts(characterisation["job"]),
        tables=tuple(_tables(characterisation["tables"])),
        not_recorded=characterisation["not_recorded"],
        figures=tuple(figures_of(characterisation, checks)),
        unknown=by_reason(checks["unknown"]),
        notes=list(dict.fromkeys(notes)),
    )


def _facts(job: Mapping[str, Any]) -> dict[str, str]:
    modules = [each["name"] for each in job["modules"]]
    return {
        "Command": job["command"],
        "Run time": f"{in_digits(job['run_seconds'])} s",
        "Darshan": f"{job['darshan']}, {listed(modules)}",
    }


def _tables(records: Iterable[Mapping[str, Any]]) -> Iterator[TableShown]:
    for record in records:
        shown = tuple(_row(row) for row in rows_of(record) if row.tells_something)
        if shown:
            yield TableShown(record["name"].capitalize(), shown)


def _row(row: Characteristic) -> tuple[str, ...]:
    share = f"{share_text(row)} of {row.of}" if row.share is not None else ""
    note = row.note if row.value is not None else ""
    return layer_text(row.layer), row.characteristic, value_text(row), share, note


def finding_shown(record: Mapping[str, Any]) -> FindingShown:
    """Arrange a finding, given as `ioncast check --format json` has it."""
    name = record["importance"] if record["importance"] != "none" else record["level"]
    tag = (_IMPORTANCES | _LEVELS)[name]
    return FindingShown(
        tag=name,
        style=tag.style,
        meaning=tag.meaning,
        record=record,
        files_said=_files_said(len(record["files"]), all_files(record)),
        advice=tuple(
            (each["sentence"], tuple(_examples(each["snippets"]))) for each in record["advice"]
        ),
        details=tuple(details_of(record)),
    )


def _examples(snippets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for library, text in snippets.items():
        yield LIBRARY_NAMES.get(library, library), text


def _files_said(shown: int, all_: int) -> str:
    said = counted(all_, "file")
    return said if shown == all_ else f"{shown} of {said}"


def _left_out(*documents: Mapping[str, Any]) -> Iterator[str]:
    """Say which parts were too large to be stored."""
    for document in documents:
        for name, number in document["left_out"].items():
            yield f"{number:,} of the {name} are not stored, because there are too many"
