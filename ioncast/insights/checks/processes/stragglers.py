"""D03, I05: stragglers in the phases of a trace, and too many phases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.values import MOST_RANKS, Case, Find, Finding, Result, Unknown
from ioncast.insights.facts.process_times import METADATA
from summario.phases.streams import Floats
from summario.reading.dxt import DXT_MODULES
from summario.requests.trace_phases import TracePhases, are_too_many


def stragglers(case: Case) -> Result:
    """D03: a process ends a trace phase much later than the others."""
    if (reason := _why_unknown(case)) is not None:
        return reason
    late = [phases for phases in case.trace_phases.values() if phases.is_straggler.any()]
    if not late:
        return None
    number, phases = max(map(_worst, late), key=lambda each: _late_seconds(each[1])[each[0]])
    worst = phases.phase(number)
    return Finding(
        "HIGH",
        numbers={
            "count": sum(len(each.with_stragglers) for each in late),
            "phases": sum(map(len, case.trace_phases.values())),
            "api": worst.api,
            "phase": number + 1,
            "start_seconds": worst.start_seconds,
            "end_seconds": worst.end_seconds,
            "rank": worst.slowest_rank,
            "late_seconds": float(_late_seconds(phases)[number]),
            "lateness": worst.lateness,
        },
        thresholds={"straggler_share": case.thresholds.straggler_share},
        ranks=tuple(dict.fromkeys((worst.slowest_rank, *worst.stragglers)))[:MOST_RANKS],
        at_stake=_time_of_lateness(case, late),
    )


def many_phases(case: Case) -> Result:
    """I05: a program does its I/O in many phases with short pauses."""
    if (reason := _why_unknown(case)) is not None:
        return reason
    most = case.thresholds.most_trace_phases
    for api, phases in case.trace_phases.items():
        if are_too_many(phases, most):
            return Finding(
                "WARN",
                numbers={
                    "count": len(phases),
                    "api": api,
                    "mean_seconds": float(phases.durations_seconds.mean()),
                    "pause_seconds": float(phases.pauses_seconds.mean()),
                },
                thresholds={"most_trace_phases": most},
            )
    return None


def _time_of_lateness(case: Case, late: list[TracePhases]) -> Floats:
    """Add up the waiting for stragglers; both layers see the same stragglers."""
    seconds = max(float(_late_seconds(each)[each.with_stragglers].sum()) for each in late)
    is_data = np.zeros_like(case.times.seconds, bool)
    is_data[:METADATA] = True
    return case.times.spread(seconds, is_data)


def _worst(phases: TracePhases) -> tuple[int, TracePhases]:
    """Find the phase that its stragglers delay by most seconds."""
    numbers = phases.with_stragglers
    return int(numbers[np.argmax(_late_seconds(phases)[numbers])]), phases


def _late_seconds(phases: TracePhases) -> Floats:
    """Tell for each phase how long it lasts after the end of its median process."""
    return phases.lateness * phases.durations_seconds


def _why_unknown(case: Case) -> Unknown | None:
    if case.facts.trace is None:
        return Unknown("the log has no trace (DXT)")
    if case.facts.run.is_partial(*DXT_MODULES.values()):
        return Unknown("requests are missing in the trace, because Darshan's memory was full")
    return None


FINDERS: Mapping[str, Find] = {"D03": stragglers, "I05": many_phases}
