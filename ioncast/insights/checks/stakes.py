"""The importance of findings: how much of the run time each one can cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ioncast.insights.checks.values import (
    IMPORTANCES,
    LEVELS,
    Applied,
    Case,
    CheckedCause,
    Finding,
    Importance,
    Level,
    Verdict,
)
from ioncast.insights.facts.process_times import KINDS
from ioncast.insights.facts.values import Floats, share, total

# Findings of the other levels are good practice and facts.
_HARMFUL: tuple[Level, ...] = ("HIGH", "WARN")


def seconds_at_stake(finding: Finding) -> float | None:
    """Add up the seconds that a finding can cost at most; None if they are not known."""
    return None if finding.at_stake is None else float(finding.at_stake.sum())


def share_of_run(case: Case, seconds: float | None) -> float | None:
    """Divide seconds by the run time; None if one of them is not known."""
    return None if seconds is None else share(seconds, case.times.run_seconds)


def importance_of_share(part: float, major_share: float, minor_share: float) -> Importance:
    """Judge a known share of the run time."""
    if part >= major_share:
        return "major"
    return "minor" if part >= minor_share else "negligible"


def importance_of(case: Case, level: Level, seconds: float | None) -> Importance:
    """Judge a finding by the share of the run time that is at stake, or by that of all I/O."""
    part = share_of_run(case, seconds)
    if level not in _HARMFUL:
        return "none"
    limits, times = case.thresholds, case.times
    if part is not None and part >= limits.minor_share:
        return importance_of_share(part, limits.major_share, limits.minor_share)
    # The time of missing records is not known, and a finding costs no more than all I/O takes.
    if case.facts.is_incomplete or not times.run_seconds:
        return "unknown" if seconds != 0 or case.facts.is_incomplete else "negligible"
    is_little = times.io_seconds < limits.minor_share * times.run_seconds
    return "negligible" if part is not None or is_little else "unknown"


def causes_of(case: Case, found: Sequence[Applied]) -> tuple[CheckedCause, ...]:
    """Join the findings that tell of the same cause, and sort the causes."""
    of_causes: dict[str, list[Applied]] = {}
    for each in sorted(found, key=_place_of_finding):
        if each.importance != "none":
            of_causes.setdefault(each.check.cause or each.check.title, []).append(each)
    causes = [_cause(case, name, findings) for name, findings in of_causes.items()]
    return tuple(sorted(causes, key=_place_of_cause))


def _cause(case: Case, name: str, findings: Sequence[Applied]) -> CheckedCause:
    at_stake = _together(findings)
    seconds = None if at_stake is None else float(at_stake.sum())
    part = share_of_run(case, seconds)
    worst = min((finding.finding.level for finding in findings), key=LEVELS.index)
    return CheckedCause(name, tuple(findings), seconds, part, importance_of(case, worst, seconds))


def _together(findings: Sequence[Applied]) -> Floats | None:
    """Join the times that findings are about: the same time can be saved once."""
    known = [
        finding.finding.at_stake for finding in findings if finding.finding.at_stake is not None
    ]
    return np.maximum.reduce(known) if known else None


def _place_of_finding(applied: Applied) -> tuple[int, float, int, str]:
    return (
        IMPORTANCES.index(applied.importance),
        -_rounded(applied.seconds_at_stake),
        LEVELS.index(applied.finding.level),
        applied.check.code,
    )


def _place_of_cause(cause: CheckedCause) -> tuple[int, float, int, str]:
    return (
        IMPORTANCES.index(cause.importance),
        -_rounded(cause.seconds_at_stake),
        *_place_of_finding(cause.findings[0])[2:],
    )


def _rounded(seconds: float | None) -> float:
    """Equal times may differ in their last digits, because they were added in another order."""
    return round(seconds or 0.0, 6)


def verdict_of(case: Case, found: Sequence[Applied]) -> Verdict:
    """Sum up a run and its findings."""
    times = case.times
    most = _together(found)
    of_kinds = dict(zip(KINDS, times.seconds.sum(axis=1).tolist(), strict=True))
    return Verdict(
        run_seconds=times.run_seconds,
        read_seconds=of_kinds["read"],
        write_seconds=of_kinds["write"],
        metadata_seconds=of_kinds["metadata"],
        is_mean=times.is_mean,
        bytes=total(case.facts.files.bytes),
        at_stake_seconds=0.0 if most is None else min(float(most.sum()), times.io_seconds),
        major_share=case.thresholds.major_share,
        minor_share=case.thresholds.minor_share,
    )
