"""The documents of insights that the database holds, written and read.

The advice of ioncast's own checks is the same in all runs and takes more room than all else, so
only its keys are stored. A later version of ioncast may word it better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchdb.history.run_insights import MOST_DOCUMENT_BYTES, NewInsights
from ioncast.insights.checks.record import advice_record
from ioncast.insights.checks.registry import all_advice
from ioncast.service.sandbox.shortening import shortened

# Raise it with each change of a check or a table that gives old logs other findings or numbers.
VERSION = 1


def written(characterisation: Mapping[str, Any], checks: Mapping[str, Any]) -> NewInsights:
    """Write the records of a run's characterisation and of its checks.

    Raises
    ------
    InputError
        When a document would be too large.
    """
    findings = [
        finding | {"advice": [_key_of(advice) for advice in finding["advice"]]}
        for finding in checks["findings"]
    ]
    return NewInsights(
        VERSION,
        shortened(characterisation, MOST_DOCUMENT_BYTES),
        shortened({**checks, "findings": findings}, MOST_DOCUMENT_BYTES),
    )


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
