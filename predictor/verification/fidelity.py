"""The fidelity of a benchmark: how far the log of its run agrees with the phase it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ioncast_base.wording import counted, in_digits, size
from predictor.verification.facts import PhaseFacts

# Two runs of one command differ by less.
_AGREES = 0.98

# The share of the bandwidth that another fsync may cost. IOR on a local file system wrote
# 105 MiB/s with fsync after each write, and 716 MiB/s without it.
_FSYNC_EACH, _FSYNC_END = 0.85, 0.5
_FSYNC_IN_WORDS = {
    "none": "no fsync",
    "end": "fsync once at the end",
    "each": "fsync after each write",
}


@dataclass(frozen=True)
class Aspect:
    """A property of a phase and of the run of its benchmark.

    Attributes
    ----------
    agreement : float
        1 if the values agree, less if they differ; never 0.
    """

    name: str
    phase: float | str
    benchmark: float | str
    agreement: float
    sentence: str

    @property
    def differs(self) -> bool:
        """Whether the values differ more than those of two runs of one command."""
        return self.agreement < _AGREES


@dataclass(frozen=True)
class Fidelity:
    """A phase, or a part of it, compared with the run of its benchmark."""

    aspects: tuple[Aspect, ...]

    @property
    def value(self) -> float:
        """From 0 to 1: exp(-d), where d² is the sum of the squared logarithms of the agreements."""
        return math.exp(-math.hypot(*(math.log(aspect.agreement) for aspect in self.aspects)))

    @property
    def differences(self) -> list[str]:
        """A sentence for each property that differs, the largest difference first."""
        found = sorted(self.aspects, key=lambda aspect: aspect.agreement)
        return [each.sentence for each in found if each.differs]


def compare(phase: PhaseFacts, benchmark: PhaseFacts) -> Fidelity:
    """Compare a phase, or a part of it, with the run of its benchmark.

    Each property has a difference from 0 to 1: of amounts it is 1 - smaller / larger, of shares
    their distance. The agreement is 1 - weight * difference; the weight is the share of the
    bandwidth that the property may cost. Shares of time differ by chance too, so only the part of
    their distance above 0.5 counts, twice. A property that a log does not tell is left out.

    Examples
    --------
    >>> phase = PhaseFacts(bytes=8 << 20, requests=256, processes=8, fsync="each")
    >>> other = PhaseFacts(bytes=8 << 20, requests=256, processes=8, fsync="end")
    >>> found = compare(phase, other)
    >>> round(found.value, 2), found.differences
    (0.15, ['the phase calls fsync after each write, the benchmark fsync once at the end'])
    """
    if phase.block_bytes != benchmark.block_bytes:
        # On another file system requests are aligned to other blocks.
        benchmark = replace(benchmark, unaligned=None)
    aspects = (rule.aspect(phase, benchmark) for rule in _RULES)
    return Fidelity(tuple(aspect for aspect in aspects if aspect is not None))


@dataclass(frozen=True)
class _Rule:
    """How one property is compared.

    Attributes
    ----------
    sentence : str
        A sentence with places for both values.
    weight : float
        The share of the bandwidth that a difference of 1 may cost.
    value : callable
        Looks the value up; None if the log does not tell.
    """

    name: str
    sentence: str
    weight: float
    difference: Callable[[Any, Any], float]
    value: Callable[[PhaseFacts], float | str | None]
    shown: Callable[[Any], str]

    def aspect(self, phase: PhaseFacts, benchmark: PhaseFacts) -> Aspect | None:
        """Compare the property; None if a log does not tell it."""
        one, other = self.value(phase), self.value(benchmark)
        if one is None or other is None:
            return None
        return Aspect(
            self.name,
            one,
            other,
            1 - self.weight * self.difference(one, other),
            self.sentence.format(self.shown(one), self.shown(other)),
        )


def _of_amounts(one: float, other: float) -> float:
    larger = max(one, other)
    return 1 - min(one, other) / larger if larger > 0 else 0.0


def _of_shares(one: float, other: float) -> float:
    return abs(one - other)


def _of_times(one: float, other: float) -> float:
    return max(2 * abs(one - other) - 1, 0)


def _of_fsyncs(one: str, other: str) -> float:
    if one == other:
        return 0
    return _FSYNC_EACH if "each" in (one, other) else _FSYNC_END


def _of_deviations(one: float, other: float) -> float:
    return abs(1 / (1 + one) - 1 / (1 + other))


def _of_opens(one: float, other: float) -> float:
    """Compare opens for a request by their shares of all calls."""
    return abs(one / (1 + one) - other / (1 + other))


def _opens_for_a_request(facts: PhaseFacts) -> float | None:
    return None if facts.opens is None else facts.opens * facts.processes / facts.requests


def _percent(share: float) -> str:
    return f"{share:.0%}"


_RULES = (
    _Rule(
        "bytes",
        "the phase moves {}, the benchmark {}",
        0.5,
        _of_amounts,
        lambda facts: facts.bytes,
        size,
    ),
    _Rule(
        "requests",
        "the phase has {}, the benchmark {}",
        0.5,
        _of_amounts,
        lambda facts: facts.requests,
        lambda number: counted(number, "request"),
    ),
    _Rule(
        "request size",
        "a request of the phase moves {}, a request of the benchmark {}",
        0.8,
        _of_amounts,
        lambda facts: facts.request_bytes,
        size,
    ),
    _Rule(
        "processes",
        "the number of processes with I/O is {} in the phase, {} in the benchmark",
        0.5,
        _of_amounts,
        lambda facts: facts.processes,
        str,
    ),
    _Rule(
        "collective calls",
        "{} of the phase's MPI-IO calls are collective, {} of the benchmark's",
        0.5,
        _of_shares,
        lambda facts: facts.collective,
        _percent,
    ),
    _Rule(
        "bytes below MPI-IO",
        "MPI-IO moves {} × the phase's bytes in POSIX, and {} × the benchmark's bytes",
        0.5,
        _of_amounts,
        lambda facts: facts.below,
        in_digits,
    ),
    _Rule(
        "aggregators",
        "the number of processes that reach POSIX is {} in the phase, {} in the benchmark",
        0.3,
        _of_amounts,
        lambda facts: facts.aggregators,
        str,
    ),
    _Rule(
        "consecutive requests",
        "{} of the phase's requests begin where the request before them ends, {} of the"
        " benchmark's",
        0.5,
        _of_shares,
        lambda facts: facts.consecutive,
        _percent,
    ),
    _Rule(
        "sequential requests",
        "{} of the phase's requests begin at or after the end of the request before them, {} of"
        " the benchmark's",
        0.5,
        _of_shares,
        lambda facts: facts.sequential,
        _percent,
    ),
    _Rule(
        "gaps",
        "the gap between two requests is {} in the phase, {} in the benchmark",
        0.2,
        _of_amounts,
        lambda facts: facts.gap_bytes,
        size,
    ),
    _Rule(
        "alignment",
        "{} of the phase's requests do not begin at a block of the file system, {} of the"
        " benchmark's",
        0.3,
        _of_shares,
        lambda facts: facts.unaligned,
        _percent,
    ),
    _Rule(
        "fsync",
        "the phase calls {}, the benchmark {}",
        1.0,
        _of_fsyncs,
        lambda facts: facts.fsync,
        _FSYNC_IN_WORDS.__getitem__,
    ),
    _Rule(
        "opens",
        "for 100 requests the phase opens {} files, the benchmark {}",
        0.9,
        _of_opens,
        _opens_for_a_request,
        lambda opens: in_digits(100 * opens),
    ),
    _Rule(
        "balance of bytes",
        "the bytes of a process deviate from their mean by {} in the phase, by {} in the benchmark",
        0.5,
        _of_deviations,
        lambda facts: facts.deviation_of_bytes,
        _percent,
    ),
    _Rule(
        "metadata time",
        "metadata calls take {} of the time of the phase's calls, {} of the benchmark's",
        0.5,
        _of_times,
        lambda facts: facts.metadata,
        _percent,
    ),
    _Rule(
        "concurrency",
        "an average process does I/O in {} of the phase's time, in {} of the benchmark's",
        0.5,
        _of_times,
        lambda facts: facts.busy,
        _percent,
    ),
    _Rule(
        "slowest rank",
        "an average process needs {} of the slowest one's time in the phase, {} in the benchmark",
        0.5,
        _of_times,
        lambda facts: facts.evenness,
        _percent,
    ),
)
