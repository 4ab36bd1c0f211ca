"""The causes of slow I/O: findings and advice that belong together, by the time they could save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ioncast.insights.checks.stakes import importance_of_share
from ioncast.insights.checks.values import IMPORTANCES, Importance

_Record = Mapping[str, Any]


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
    name : str
        The cause in a few words; empty for advice.
    importance : str or None
        One of `ioncast.insights.checks.values.IMPORTANCES`: that of the predicted saving, else of
        its findings; None if neither tells it.
    """

    findings: tuple[_Record, ...]
    advice: _Record | None
    name: str = ""
    importance: Importance | None = None

    @property
    def worst(self) -> _Record | None:
        """The finding with most time at stake; None without findings."""
        known = [finding for finding in self.findings if finding["seconds_at_stake"] is not None]
        return max(
            known or self.findings, key=lambda each: each["seconds_at_stake"] or 0.0, default=None
        )

    @property
    def predicted_seconds(self) -> float | None:
        """The expected saving of the advice, negative if it costs time; None if not known."""
        saved = self.advice["saved_seconds"] if self.advice is not None else None
        return None if saved is None else float(saved["expected"])

    @property
    def is_slower(self) -> bool:
        """Whether following the advice makes the run slower, as far as benchmarks tell."""
        return self.advice is not None and self.advice["verdict"] == "slower"

    @property
    def is_negligible(self) -> bool:
        """Whether next to no time could be saved."""
        return self.importance == "negligible" and not self.is_slower


def ranked(checks: _Record, advice: Sequence[_Record]) -> tuple[list[Cause], list[_Record]]:
    """Part findings into causes and others.

    Parameters
    ----------
    checks : mapping
        The `causes`, `findings` and `verdict` of a run, as `ioncast check --format json` has them;
        the verdict is None if it is not known.
    advice : sequence of dict
        The advice on it. Two pieces of advice together are a cause of their own.

    Returns
    -------
    causes : list of Cause
        By the seconds that each could save: as predicted, else at most, as the log tells. Advice
        that makes the run slower, and causes with next to no time at stake, are the last.
    others : list of dict
        The findings that are no cause: good practice and facts.
    """
    by_code = {finding["code"]: finding for finding in checks["findings"]}
    advised = {code for one in advice if len(one["keys"]) == 1 for code in one["codes"]}
    causes = [
        Cause(tuple(by_code[code] for code in one["codes"] if code in by_code), one)
        for one in advice
    ]
    for cause in checks["causes"]:
        rest = tuple(by_code[code] for code in cause["codes"] if code in by_code.keys() - advised)
        if rest:
            causes.append(Cause(rest, None, cause["cause"]))
    others = [
        each
        for code, each in by_code.items()
        if each["importance"] == "none" and code not in advised
    ]
    judged = [replace(cause, importance=_importance(cause, checks["verdict"])) for cause in causes]
    return sorted(judged, key=_place), others


def _importance(cause: Cause, verdict: _Record | None) -> Importance | None:
    """Judge a cause by its predicted saving, if that and the run time are known."""
    saved = cause.predicted_seconds
    if saved is not None and verdict is not None and verdict["run_seconds"]:
        part = max(saved, 0.0) / verdict["run_seconds"]
        return importance_of_share(part, verdict["major_share"], verdict["minor_share"])
    found = [finding["importance"] for finding in cause.findings]
    return min(found, key=IMPORTANCES.index, default=None)


def _place(cause: Cause) -> tuple[bool, bool, float]:
    seconds = cause.predicted_seconds
    if seconds is None:
        seconds = (cause.worst or {}).get("seconds_at_stake") or 0.0
    return cause.is_negligible, cause.is_slower, -max(seconds, 0.0)
