"""The errors of decisions by month, those of expired outcomes included."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from benchdb.store.expired_errors import MonthlyErrors
from predictor.validation.decision_errors import Judged

_MONTH = len("2026-11")


def monthly_errors(
    judged: Iterable[Judged], expired: Iterable[MonthlyErrors] = ()
) -> list[MonthlyErrors]:
    """Sum errors up by system and by the month in which the outcome was reported.

    Parameters
    ----------
    judged : iterable of Judged
        Outcomes with their decisions; those without an expected bandwidth do not count.
    """
    parts: dict[tuple[str, str], list[MonthlyErrors]] = defaultdict(list)
    for each in (*expired, *_single(judged)):
        parts[each.system, each.month].append(each)
    newest_first = sorted(parts, key=lambda key: key[1], reverse=True)
    return [
        MonthlyErrors(
            *key,
            number=sum(each.number for each in parts[key]),
            error_sum=sum(each.error_sum for each in parts[key]),
            inside=sum(each.inside for each in parts[key]),
        )
        for key in sorted(newest_first, key=lambda key: key[0])
    ]


def months_to_json(found: Iterable[MonthlyErrors]) -> list[dict[str, Any]]:
    """Turn months into plain values for JSON, with means in the place of sums."""
    return [
        {
            "system": each.system,
            "month": each.month,
            "outcomes": each.number,
            "error": each.error_sum / each.number,
            "coverage": each.inside / each.number,
        }
        for each in found
    ]


def _single(judged: Iterable[Judged]) -> Iterable[MonthlyErrors]:
    for each in judged:
        if each.error is not None:
            month = each.reported_at[:_MONTH]
            yield MonthlyErrors(each.system, month, 1, each.error, int(bool(each.inside)))
