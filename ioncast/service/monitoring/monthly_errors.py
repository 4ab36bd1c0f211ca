"""The errors of decisions by month."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from ioncast.service.monitoring.decision_errors import Judged

_MONTH = len("2026-11")


def monthly_errors(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """Average errors by system and by the month in which the outcome was reported, newest first.

    Outcomes without an expected bandwidth do not count. The values are plain, for JSON.
    """
    parts: dict[tuple[str, str], list[tuple[float, bool]]] = defaultdict(list)
    for each in judged:
        if each.error is not None:
            month = each.system, each.reported_at[:_MONTH]
            parts[month].append((each.error, bool(each.inside)))
    newest_first = sorted(parts, key=lambda key: key[1], reverse=True)
    return [
        {
            "system": system,
            "month": month,
            "outcomes": len(parts[system, month]),
            "error": fmean(error for error, _ in parts[system, month]),
            "coverage": fmean(is_inside for _, is_inside in parts[system, month]),
        }
        for system, month in sorted(newest_first, key=lambda key: key[0])
    ]
