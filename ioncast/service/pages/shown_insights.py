"""Insights into a run on its page: findings with their advice, and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ioncast.insights.checks.registry import NOTHING_ELSE_MATTERS
from ioncast.service.sandbox.insight_documents import VERSION, with_advice
from ioncast_base.wording import counted


class _Level(NamedTuple):
    style: str
    meaning: str


_LEVELS = {
    "HIGH": _Level("bad", "very likely harmful"),
    "WARN": _Level("warn", "may be harmful"),
    "OK": _Level("good", "good practice"),
    "INFO": _Level("info", "a fact"),
}
_OLDER = "an older version of ioncast evaluated this log; send it again for newer findings"


@dataclass(frozen=True)
class FindingShown:
    """A finding of a check.

    Attributes
    ----------
    style, meaning : str
        The style of its tag, and the meaning of its level.
    record : dict
        The finding, as `ioncast check --format json` has it.
    files_said : str
        The number of its files, and how many of them are listed.
    """

    style: str
    meaning: str
    record: dict[str, Any]
    files_said: str


@dataclass(frozen=True)
class InsightsShown:
    """Insights into a run.

    Attributes
    ----------
    summary : str
        A sentence about the number of findings.
    important, others : list of FindingShown
        The findings that a user should see, the worst first; and good practice and facts.
    files : list of dict
        The files that moved most bytes.
    files_said : str
        The number of its files, and how many of them are listed.
    unknown : mapping of str to str
        The reasons why checks were not evaluated, by code.
    notes : list of str
        Sentences about data that are missing.
    """

    summary: str
    important: list[FindingShown]
    others: list[FindingShown]
    files: list[dict[str, Any]]
    files_said: str
    unknown: Mapping[str, str]
    notes: list[str]


def insights_shown(
    characterisation: Mapping[str, Any], checks: Mapping[str, Any], version: int
) -> InsightsShown:
    """Arrange the two documents of `ioncast.service.sandbox.insight_documents`."""
    records = with_advice(checks)["findings"]
    notes = [
        *characterisation["warnings"],
        *checks["warnings"],
        *_left_out(characterisation, checks),
        *([_OLDER] if version < VERSION else []),
    ]
    files = characterisation["files"]
    return InsightsShown(
        summary=_summary(Counter(record["level"] for record in records)),
        important=[_finding(record) for record in records if _is_important(record)],
        others=[_finding(record) for record in records if not _is_important(record)],
        files=files,
        files_said=_listed(len(files), characterisation["file_count"]),
        unknown=checks["unknown"],
        notes=list(dict.fromkeys(notes)),
    )


def _summary(levels: Mapping[str, int]) -> str:
    parts = []
    if high := levels.get("HIGH"):
        parts.append(
            f"{counted(high, 'finding')} {'is' if high == 1 else 'are'} very likely harmful"
        )
    if warn := levels.get("WARN"):
        parts.append(f"{warn if parts else counted(warn, 'finding')} may be harmful")
    return f"{', '.join(parts)}." if parts else "No check found anything harmful."


def _is_important(record: dict[str, Any]) -> bool:
    return record["level"] in {"HIGH", "WARN"} or record["code"] == NOTHING_ELSE_MATTERS


def _finding(record: dict[str, Any]) -> FindingShown:
    level = _LEVELS[record["level"]]
    listed = len(record["files"])
    return FindingShown(
        level.style,
        level.meaning,
        record,
        _listed(listed, max(listed, record["numbers"].get("files", 0))),
    )


def _listed(listed: int, all_: int) -> str:
    said = counted(all_, "file")
    return said if listed == all_ else f"{listed} of {said}"


def _left_out(*documents: Mapping[str, Any]) -> Iterator[str]:
    """Say which parts were too large to be stored."""
    for document in documents:
        for name, number in document["left_out"].items():
            yield f"{number:,} of the {name} are not stored, because there are too many"
