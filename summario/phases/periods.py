"""Phases that repeat: the same I/O several times with equal pauses, as checkpoints do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from ioncast_base.wording import counted, in_digits
from summario.naming import phases_named
from summario.phases.values import Phase

# Two phases have one pause, which equals itself.
_FEWEST = 3
# Pauses are equal if none differs from their median by more than this share of it. Darshan's heat
# map moves the ends of phases within a file by up to 0.1 s, a tenth of the shortest pause.
_TOLERANCE = 0.1


@dataclass(frozen=True)
class Period:
    """Phases of a run (at least three places in the list of phases) that repeat.

    `seconds` is the median time from start to start, `pause_seconds` from an end to the next start.
    """

    phases: tuple[int, ...]
    seconds: float
    pause_seconds: float


def find_periods(phases: Sequence[Phase]) -> list[Period]:
    """Find the phases of each run that repeat, in the order of their first phases.

    Phases repeat if at least three do the same I/O (kind, processes, files, and requests of each
    size) and the pauses between them are equal, or the times between their starts. Phases of
    different logs never repeat each other.
    """
    same: dict[Phase, list[int]] = {}
    for place in sorted(range(len(phases)), key=lambda place: phases[place].start_seconds):
        same.setdefault(_without_times(phases[place]), []).append(place)
    found = [_period(places, phases) for places in same.values()]
    return sorted(filter(None, found), key=lambda period: period.phases[0])


def period_of_each(phases: Sequence[Phase]) -> dict[int, Period]:
    """Find the periods of phases, by the place of each phase that repeats."""
    return {place: period for period in find_periods(phases) for place in period.phases}


def in_words(period: Period) -> str:
    """Say which phases repeat, how often and how many times."""
    named = phases_named(period.phases)
    every = in_digits(period.seconds)
    return f"{named}: the same I/O every {every} s, {counted(len(period.phases), 'time')}"


def _without_times(phase: Phase) -> Phase:
    """The I/O of a phase: the phase without the times that it took."""
    return replace(
        phase,
        start_seconds=0.0,
        end_seconds=0.0,
        io_time_seconds=0.0,
        metadata_seconds=None,
        elapsed_seconds=None,
    )


def _period(places: Sequence[int], phases: Sequence[Phase]) -> Period | None:
    if len(places) < _FEWEST:
        return None
    pairs = [(phases[one], phases[other]) for one, other in pairwise(places)]
    pauses = [other.start_seconds - one.end_seconds for one, other in pairs]
    steps = [other.start_seconds - one.start_seconds for one, other in pairs]
    if min(pauses) <= 0 or not (_are_equal(pauses) or _are_equal(steps)):
        return None
    return Period(tuple(places), median(steps), median(pauses))


def _are_equal(seconds: Sequence[float]) -> bool:
    usual = median(seconds)
    return all(abs(one - usual) <= _TOLERANCE * usual for one in seconds)
