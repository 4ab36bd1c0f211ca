"""The verdict on a run: normal, configuration, application, system or unknown, with its parts.

Source: S. L. Harrington, "Diagnosing Parallel I/O Bottlenecks in HPC Applications" (class of a slow
run, stripes, servers, trailing writes). The order of causes and the shares are ioncast's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log
from typing import Literal

from ioncast.diagnosis.level import Weather
from ioncast.diagnosis.server_evidence import ServerEvidence
from ioncast.diagnosis.stripes import Stripes
from ioncast.diagnosis.traced_delays import TracedDelays, UsualDelays

Verdict = Literal["normal", "configuration", "application", "system", "unknown"]
Cause = Literal["configuration", "trailing writes", "stragglers", "system", "unknown"]
SlowClass = Literal["metadata and data", "metadata", "data", "neither"]

# The part of the lost time that a verdict needs.
_VERDICT_SHARE = 0.5
# A run is as slow as others with its stripes if it takes at most so many times their time.
_AS_SLOW = 1.5
# Times of metadata and data beyond so many times the usual ones are the class of a slow run.
_CLASS_RATIO = 2.0
# Other runs of the same configuration: so many normal ones clear the application, so many slow ones
# beside a prediction blame it, if they take so many times the predicted time.
_NORMAL_TWINS, _SLOW_TWINS, _SLOW_RATIO = 3, 5, 2.0
_KINDS: dict[Cause, Verdict] = {
    "configuration": "configuration",
    "trailing writes": "application",
    "stragglers": "application",
    "system": "system",
    "unknown": "unknown",
}
_OF_SLOWDOWN = 1 / 3
NO_SAMPLES, NOT_BUSY = "no samples of servers", "servers not busy"
_NO_TWINS = "too few normal runs with the same stripes"


@dataclass(frozen=True)
class UsualBandwidth:
    """The bandwidth that is usual for a run, or predicted for it.

    `low_mib_s` and `high_mib_s` contain 90 % of other runs, of a prediction 80 % (p10 and p90).
    `first_us` and `last_us` are the first and the last start of these runs. `jobs` is 0 for a
    prediction.
    """

    basis: Literal["history", "prediction"]
    mib_s: float
    low_mib_s: float
    high_mib_s: float
    jobs: int = 0
    first_us: int | None = None
    last_us: int | None = None


@dataclass(frozen=True)
class IoTimes:
    """Seconds of all processes in metadata and in data; the usual ones are medians of others."""

    metadata_seconds: float | None = None
    data_seconds: float | None = None
    usual_metadata_seconds: float | None = None
    usual_data_seconds: float | None = None
    usual_metadata_share: float | None = None

    @property
    def metadata_share(self) -> float | None:
        """The share of metadata in the I/O time."""
        if self.metadata_seconds is None or self.data_seconds is None:
            return None
        together = self.metadata_seconds + self.data_seconds
        return self.metadata_seconds / together if together > 0 else None

    @property
    def metadata_ratio(self) -> float | None:
        """The metadata time beside the usual one."""
        return _ratio(self.metadata_seconds, self.usual_metadata_seconds)

    @property
    def data_ratio(self) -> float | None:
        """The data time beside the usual one."""
        return _ratio(self.data_seconds, self.usual_data_seconds)

    @property
    def slow_class(self) -> SlowClass:
        """The times that are longer than usual."""
        is_metadata, is_data = (
            each is not None and each > _CLASS_RATIO
            for each in (self.metadata_ratio, self.data_ratio)
        )
        if is_metadata and is_data:
            return "metadata and data"
        return "metadata" if is_metadata else "data" if is_data else "neither"


@dataclass(frozen=True)
class Twins:
    """Other jobs of the variant with the same stripe count, and their median MiB/s if known.

    `slow_beside_prediction` of `jobs` got at most half of the predicted bandwidth; None without a
    prediction.
    """

    jobs: int
    normal_jobs: int
    mib_s: float | None
    slow_beside_prediction: int | None = None


@dataclass(frozen=True)
class RunFacts:
    """Facts of a run for its verdict; None where nothing is known.

    `moved_bytes` and `bandwidth_mib_s` are those of the table `jobs`. `no_comparison` tells which
    condition of a comparison failed, if no bandwidth is usual.
    """

    moved_bytes: float
    bandwidth_mib_s: float | None
    usual: UsualBandwidth | None
    is_slow: bool
    no_comparison: str | None = None
    at_level: UsualBandwidth | None = None
    weather: Weather | None = None
    times: IoTimes = field(default_factory=IoTimes)
    twins: Twins = field(default_factory=lambda: Twins(0, 0, None))
    stripes: Stripes | None = None
    delays: TracedDelays | None = None
    usual_delays: UsualDelays | None = None
    servers: Sequence[ServerEvidence] = ()

    @property
    def io_seconds(self) -> float | None:
        """The time that the bytes took."""
        return _seconds(self.moved_bytes, self.bandwidth_mib_s)

    @property
    def slowdown(self) -> float | None:
        """The usual bandwidth by that of the run: 1 is normal."""
        if self.usual is None or self.bandwidth_mib_s is None:
            return None
        return self.usual.mib_s / self.bandwidth_mib_s

    @property
    def lost_seconds(self) -> float | None:
        """The time beyond the usual one, which may be negative."""
        if self.usual is None or self.io_seconds is None:
            return None
        return self.io_seconds - (_seconds(self.moved_bytes, self.usual.mib_s) or 0.0)


@dataclass(frozen=True)
class Part:
    """A part of the lost time: its cause, seconds, share, and why an unknown one is unknown."""

    cause: Cause
    seconds: float
    share: float
    reason: str | None = None


@dataclass(frozen=True)
class Judgement:
    """A verdict, why it is unknown, and the parts of the lost time of a slow run."""

    verdict: Verdict
    reason: str | None = None
    parts: tuple[Part, ...] = ()

    def outcome_scatter(self, slowdown: float) -> float:
        """Compute how much evidence from servers widens this run's noise as an outcome.

        It is a standard deviation of the logarithm, for `ObservedBandwidth.scatter`: a third of the
        slowdown by the servers. More makes the error of the next run larger, because weather lasts
        (docs/diagnosis.md). Without evidence it is 0. A verdict never removes an outcome.
        """
        share = sum(part.share for part in self.parts if part.cause == "system")
        return _OF_SLOWDOWN * share * abs(log(slowdown))


def judge(run: RunFacts) -> Judgement:
    """Give the verdict on a run."""
    if run.usual is None or run.bandwidth_mib_s is None:
        return Judgement("unknown", f"no comparison: {run.no_comparison}")
    if not run.is_slow:
        return Judgement("normal")
    parts = tuple(_parts(run))
    if _is_configuration(run):
        return Judgement("configuration", parts=parts)
    if _is_slow_application(run):
        return Judgement("application", parts=parts)
    shares: dict[Verdict, float] = {}
    for part in parts:
        shares[_KINDS[part.cause]] = shares.get(_KINDS[part.cause], 0.0) + part.share
    largest: Verdict = max(shares, key=lambda verdict: shares[verdict], default="unknown")
    if largest == "unknown" or shares[largest] < _VERDICT_SHARE:
        unknown = [part for part in parts if part.cause == "unknown"]
        is_known = largest != "unknown" or not unknown
        longest = None if is_known else max(unknown, key=lambda part: part.seconds)
        return Judgement("unknown", longest.reason if longest else "several causes", parts)
    return Judgement(largest, parts=parts)


def _is_configuration(run: RunFacts) -> bool:
    """Tell whether wrong stripes explain a slow run: others with these stripes are as slow."""
    return run.stripes is not None and run.stripes.are_wrong is not None and _are_as_slow(run)


def _is_slow_application(run: RunFacts) -> bool:
    """Tell whether all runs of the configuration are as slow, and slow beside a prediction."""
    twins, slow = run.twins, run.twins.slow_beside_prediction
    are_slow = slow is not None and twins.jobs >= _SLOW_TWINS and slow == twins.jobs
    return are_slow and _are_as_slow(run)


def _are_as_slow(run: RunFacts) -> bool:
    """Tell whether others with the same stripes are about as slow as a run."""
    if run.twins.mib_s is None or run.bandwidth_mib_s is None:
        return False
    return run.twins.mib_s <= _AS_SLOW * run.bandwidth_mib_s


def is_slow_beside(bandwidth_mib_s: float, predicted: UsualBandwidth) -> bool:
    """Tell whether a run takes at least twice its predicted time."""
    return bandwidth_mib_s * _SLOW_RATIO <= predicted.mib_s


def _parts(run: RunFacts) -> list[Part]:
    """Give the lost seconds to causes, each in turn as far as seconds are left."""
    lost = run.lost_seconds or 0.0
    left, parts = lost, []

    def give(cause: Cause, seconds: float, reason: str | None = None) -> None:
        nonlocal left
        given = min(max(seconds, 0.0), left)
        if given > 0:
            left -= given
            parts.append(Part(cause, given, given / lost, reason))

    if _is_configuration(run) and run.twins.mib_s is not None:
        same_seconds = _seconds(run.moved_bytes, run.twins.mib_s) or 0.0
        give("configuration", same_seconds - ((run.io_seconds or 0.0) - lost))
    if run.delays is not None:
        usual = run.usual_delays or UsualDelays(0, 0.0, 0.0)
        give("trailing writes", run.delays.trailing_seconds - usual.trailing_seconds)
        give("stragglers", run.delays.straggler_seconds - usual.straggler_seconds)
    # Each period takes the part of the rest that its time is of all periods: usual time is in it.
    rest, all_seconds = left, sum(each.seconds for each in run.servers)
    seconds: dict[tuple[Cause, str | None], float] = {}
    for each in run.servers if all_seconds > 0 else ():
        key = _part_of(each, run.twins)
        seconds[key] = seconds.get(key, 0.0) + rest * each.seconds / all_seconds
    for (cause, reason), of_cause in seconds.items():
        give(cause, of_cause, reason)
    if not run.servers or not all_seconds > 0:
        give("unknown", left, NO_SAMPLES)
    return parts


def _part_of(evidence: ServerEvidence, twins: Twins) -> tuple[Cause, str | None]:
    """Name the cause of a period, and why it is not known."""
    if evidence.answer == "busy":
        is_cleared = twins.normal_jobs >= _NORMAL_TWINS
        return ("system", None) if is_cleared else ("unknown", _NO_TWINS)
    if evidence.answer == "not busy":
        return "unknown", NOT_BUSY
    return "unknown", evidence.reason or NO_SAMPLES


def _seconds(moved_bytes: float, mib_s: float | None) -> float | None:
    return None if mib_s is None else moved_bytes / (1 << 20) / mib_s


def _ratio(value: float | None, usual: float | None) -> float | None:
    return value / usual if value is not None and usual is not None and usual > 0 else None
