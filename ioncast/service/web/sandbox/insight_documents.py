"""The documents of insights that the database holds, written and read.

The advice of ioncast's own checks is the same in all runs and takes more room than all else, so
only its keys are stored. A later version of ioncast may word it better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from ioncast.insights.checks.record import advice_record
from ioncast.insights.checks.registry import all_advice
from ioncast.service.store.run_insights import (
    MOST_DOCUMENT_BYTES,
    Insights,
    NewInsights,
    insights_of,
)
from ioncast.service.web.sandbox.shortening import shortened
from predictor.what_if.attempts import FilesOfKind, Hints

# Raise it with each change of a check or a table that gives old logs other findings or numbers.
VERSION = 4


def current_insights(connection: Connection, run_id: int) -> Insights | None:
    """Read the insights into a run; None if another version of ioncast made them, or nobody."""
    insights = insights_of(connection, run_id)
    return insights if insights is not None and insights.version == VERSION else None


def written(
    characterisation: Mapping[str, Any], checks: Mapping[str, Any], hints: Hints
) -> NewInsights:
    """Write the records of a run's characterisation and of its checks, and the hints for advice."""
    findings = [
        finding | {"advice": [_key_of(advice) for advice in finding["advice"]]}
        for finding in checks["findings"]
    ]
    return NewInsights(
        VERSION,
        shortened(characterisation, MOST_DOCUMENT_BYTES),
        shortened(
            {**checks, "findings": findings, "hints": _hints_record(hints)}, MOST_DOCUMENT_BYTES
        ),
        checks["verdict"]["io_seconds"] or 0.0,
        checks["verdict"]["seconds_at_stake"] or 0.0,
    )


def _hints_record(hints: Hints) -> dict[str, Any]:
    """Write hints as mappings, because a document that is too large loses items of lists."""
    kept: dict[str, dict[str, dict[str, float]]] = {}
    for (operation, api, file_access), share in hints.kept.items():
        if share < 1:
            kept.setdefault(operation, {}).setdefault(api, {})[file_access] = share
    return {"found": dict.fromkeys(sorted(hints.codes), True), "kept": kept}


def hints_from(checks: Mapping[str, Any]) -> Hints:
    """Read the hints from the stored document of a run's checks."""
    kept = {
        FilesOfKind(operation, api, file_access): share
        for operation, by_api in checks["hints"]["kept"].items()
        for api, by_access in by_api.items()
        for file_access, share in by_access.items()
    }
    return Hints(frozenset(checks["hints"]["found"]), kept)


def with_advice(checks: Mapping[str, Any]) -> dict[str, Any]:
    """Complete the stored document of a run's checks with the advice."""
    libraries = tuple(checks["libraries"])
    findings = [
        finding | {"advice": list(_advice(finding["advice"], libraries))}
        for finding in checks["findings"]
    ]
    return {**checks, "findings": findings}


def _key_of(advice: dict[str, Any]) -> dict[str, Any]:
    """Leave out the texts of our own advice; a site's advice is stored as it is."""
    return {"key": advice["key"]} if advice["key"] in all_advice() else advice


def _advice(
    stored: Sequence[dict[str, Any]], libraries: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    for each in stored:
        own = all_advice().get(each["key"])
        if own is not None:
            yield advice_record(own, libraries)
        elif "sentence" in each:
            yield each
