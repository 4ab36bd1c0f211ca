"""The causes of slow I/O: findings and advice that belong together, ranked by expected gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ioncast.insights.checks.registry import NOTHING_ELSE_MATTERS
from ioncast.insights.checks.values import LEVELS
from ioncast.insights.findings.text import is_important

_Record = Mapping[str, Any]
_NOTHING_ELSE, _FASTER, _UNSURE, _NO_GAIN, _SLOWER = range(5)
_PLACES = {"faster": _FASTER, "unsure": _UNSURE, "not known": _NO_GAIN, "slower": _SLOWER}


@dataclass(frozen=True)
class Cause:
    """A reason for slow I/O.

    Attributes
    ----------
    findings : tuple of dict
        The findings, as `ioncast check --format json` has them; empty if no check asks for the
        advice.
    advice : dict or None
        The advice against it, as `ioncast advise --format json` has it; None if no advice changes
        the I/O that benchmarks measure.
    """

    findings: tuple[_Record, ...]
    advice: _Record | None


def ranked(
    findings: Sequence[_Record], advice: Sequence[_Record]
) -> tuple[list[Cause], list[_Record]]:
    """Part findings into causes and others.

    Parameters
    ----------
    findings : sequence of dict
        The findings of a run.
    advice : sequence of dict
        The advice on it. Two pieces of advice together are a cause of their own.

    Returns
    -------
    causes : list of Cause
        Too little I/O to matter comes first, then advice that saves time, the largest expected
        gain first, then advice whose gain is unsure. Causes without a known gain follow by their
        level, and advice that makes the run slower is the last.
    others : list of dict
        The findings that are no cause: good practice and facts.
    """
    by_code = {finding["code"]: finding for finding in findings}
    advised = {code for one in advice if len(one["keys"]) == 1 for code in one["codes"]}
    causes = [
        Cause(tuple(by_code[code] for code in one["codes"] if code in by_code), one)
        for one in advice
    ]
    rest = [finding for finding in findings if finding["code"] not in advised]
    causes += [Cause((finding,), None) for finding in rest if is_important(finding)]
    return sorted(causes, key=_place), [each for each in rest if not is_important(each)]


def _place(cause: Cause) -> tuple[int, float, int]:
    levels = [LEVELS.index(finding["level"]) for finding in cause.findings]
    level = min(levels, default=len(LEVELS))
    if any(finding["code"] == NOTHING_ELSE_MATTERS for finding in cause.findings):
        return _NOTHING_ELSE, 0.0, level
    if cause.advice is None:
        return _NO_GAIN, 0.0, level
    saved = cause.advice["saved_seconds"]
    return _PLACES[cause.advice["verdict"]], -saved["expected"] if saved else 0.0, level
