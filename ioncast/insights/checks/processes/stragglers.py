"""D03, I05: stragglers in the phases of a trace, and too many phases."""

from __future__ import annotations

from collections.abc import Mapping

from ioncast.insights.checks.values import MOST_RANKS, Case, Find, Finding, Result, Unknown
from summario.reading.dxt import DXT_MODULES
from summario.traces.trace_phases import TracePhase, are_too_many


def stragglers(case: Case) -> Result:
    """D03: a process ends a trace phase much later than the others."""
    if (reason := _why_unknown(case)) is not None:
        return reason
    late = [
        (phase, index + 1)
        for phases in case.trace_phases.values()
        for index, phase in enumerate(phases)
        if phase.stragglers
    ]
    if not late:
        return None
    worst, number = max(late, key=lambda each: _late_seconds(each[0]))
    return Finding(
        "HIGH",
        numbers={
            "count": len(late),
            "phases": sum(map(len, case.trace_phases.values())),
            "api": worst.api,
            "phase": number,
            "start_seconds": worst.start_seconds,
            "end_seconds": worst.end_seconds,
            "rank": worst.slowest_rank,
            "late_seconds": _late_seconds(worst),
            "lateness": worst.lateness,
        },
        thresholds={"straggler_share": case.thresholds.straggler_share},
        ranks=tuple(dict.fromkeys((worst.slowest_rank, *worst.stragglers)))[:MOST_RANKS],
    )


def many_phases(case: Case) -> Result:
    """I05: a program does its I/O in many phases with short pauses."""
    if (reason := _why_unknown(case)) is not None:
        return reason
    most = case.thresholds.most_trace_phases
    for api, phases in case.trace_phases.items():
        if are_too_many(phases, most):
            durations = sum(phase.duration_seconds for phase in phases)
            pauses = phases[-1].end_seconds - phases[0].start_seconds - durations
            return Finding(
                "WARN",
                numbers={
                    "count": len(phases),
                    "api": api,
                    "mean_seconds": durations / len(phases),
                    "pause_seconds": pauses / (len(phases) - 1),
                },
                thresholds={"most_trace_phases": most},
            )
    return None


def _late_seconds(phase: TracePhase) -> float:
    return phase.lateness * phase.duration_seconds


def _why_unknown(case: Case) -> Unknown | None:
    if case.facts.trace is None:
        return Unknown("the log has no trace (DXT)")
    if case.facts.run.is_partial(*DXT_MODULES.values()):
        return Unknown("requests are missing in the trace, because Darshan's memory was full")
    return None


FINDERS: Mapping[str, Find] = {"D03": stragglers, "I05": many_phases}
