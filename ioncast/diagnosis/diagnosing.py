"""Diagnoses of runs: from the rows of a store to the facts of a run, and its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ioncast.diagnosis.level import Weather, WeatherOfSystems
from ioncast.diagnosis.normal import (
    DAY_US,
    Floats,
    Ints,
    Normals,
    Runs,
    medians,
    normals_of,
    others_of,
    runs_of,
)
from ioncast.diagnosis.server_evidence import EvidenceOf, no_evidence
from ioncast.diagnosis.slow_servers import SlowServer, slow_servers_of
from ioncast.diagnosis.stripes import StripedJobs, Stripes, stripes_of
from ioncast.diagnosis.traced_delays import (
    TracedDelays,
    UsualDelays,
    delays_of_log,
    usual_delays,
)
from ioncast.diagnosis.verdict import (
    IoTimes,
    Judgement,
    RunFacts,
    Twins,
    UsualBandwidth,
    is_slow_beside,
    judge,
)
from ioncast.warehouse.engine import Ask
from ioncast.warehouse.usual_values import FEWEST_JOBS

# Logs with traces that tell the usual delays; their requests may be millions.
_MOST_TRACED = 5
# Other jobs with the same stripes whose median counts.
_FEWEST_TWINS = 3
# 90 % of the other jobs are between.
_BAND = (0.05, 0.95)


@dataclass(frozen=True)
class ComparedRun:
    """A run of the variant in the figures of a diagnosis."""

    log: str
    job_id: int | None
    start_us: int | None
    bandwidth_mib_s: float
    metadata_share: float | None
    slowdown: float | None
    stripe_count: int | None


@dataclass(frozen=True)
class Diagnosis:
    """The facts of a run, and the verdict on it."""

    log: str
    path: str | None
    system: str | None
    program: str | None
    job_id: int | None
    processes: int | None
    start_us: int | None
    facts: RunFacts
    judgement: Judgement


class History:
    """The runs of a store with their usual bandwidths.

    Parameters
    ----------
    rows : pyarrow.Table
        Rows of the query `variant-runs`, of all jobs of the system.
    has_weather : bool
        Whether to find the weather of runs, which needs all jobs of the system. Without it, the
        jobs of a program are enough.
    """

    def __init__(self, rows: pa.Table, *, has_weather: bool = True) -> None:
        self._rows = rows
        self.runs: Runs = runs_of(rows)
        self.normals: Normals = normals_of(self.runs)
        self._weather = WeatherOfSystems(self.runs, self.normals) if has_weather else None

    @cached_property
    def _places(self) -> dict[str, int]:
        return {log: place for place, log in enumerate(self.runs.rows["log"].to_pylist())}

    @cached_property
    def _columns(self) -> dict[str, Floats]:
        names = ("metadata_seconds", "data_seconds", "stripe_count", "has_requests")
        return {name: self.runs.column(name) for name in names}

    @property
    def slow_logs(self) -> list[str]:
        """The slow runs, the slowest first."""
        slow = np.flatnonzero(self.normals.is_slow)
        slow = slow[np.argsort(-self.normals.log_ratio[slow], kind="stable")]
        found: list[str] = self.runs.rows["log"].take(pa.array(slow)).to_pylist()
        return found

    @property
    def all_runs(self) -> int:
        """The number of runs, also of those without a usual bandwidth."""
        return len(self._rows)

    @property
    def compared_runs(self) -> int:
        """The number of runs with a usual bandwidth."""
        return int(np.count_nonzero(np.isfinite(self.normals.log_mib_s)))

    def slow_servers(self, places: pa.Table) -> list[SlowServer]:
        """Name the slow servers; `places` are rows of the query `files-on-servers`."""
        return slow_servers_of(self.runs, self.normals, places)

    def diagnose(
        self,
        log: str,
        *,
        ask_run: Ask | None = None,
        ask_others: Ask | None = None,
        predicted: UsualBandwidth | None = None,
        evidence: EvidenceOf = no_evidence,
    ) -> Diagnosis:
        """Diagnose the run of a log.

        Parameters
        ----------
        ask_run, ask_others : callable, optional
            Ask the tables that have the traced requests of the log, and of other logs.
        predicted : UsualBandwidth, optional
            The bandwidth that benchmarks predict for the run.
        evidence : callable
            Finds the evidence of servers about a log.
        """
        place = self._places.get(log)
        if place is None:
            [row] = self._rows.filter(pc.equal(self._rows["log"], log)).to_pylist()
            reason = "the run has no program, no bytes or no time of I/O in its log"
            facts = RunFacts(
                row["moved_bytes"] or 0, None, None, is_slow=False, no_comparison=reason
            )
            return _diagnosis(row, facts)
        [row] = self.runs.rows.slice(place, 1).to_pylist()
        others = others_of(self.runs, self.normals, place)
        usual = self._usual(place, others)
        weather = None if self._weather is None else self._weather.weather_at(place)
        at_level = self._at_level(place, usual, weather)
        is_slow = bool(self.normals.is_slow[place])
        if usual is None and predicted is not None:
            usual, mib_s = predicted, row["bandwidth_mib_s"]
            is_slow = is_slow_beside(mib_s, predicted) and mib_s < predicted.low_mib_s
        twins = self._twins(place, others)
        delays, usual_of_twins = None, None
        if is_slow and row["has_requests"] and ask_run is not None:
            delays = delays_of_log(ask_run, log)
            usual_of_twins = self._usual_delays(twins, delays, ask_others)
        facts = RunFacts(
            row["moved_bytes"],
            row["bandwidth_mib_s"],
            usual,
            is_slow,
            no_comparison=_why_not(int(self.normals.jobs[place])),
            at_level=at_level,
            weather=weather,
            times=self._times(place, others),
            twins=self._counted(twins, predicted),
            stripes=self._stripes(row, others),
            delays=delays,
            usual_delays=usual_of_twins,
            servers=tuple(evidence(log)) if is_slow else (),
        )
        return _diagnosis(row, facts)

    def compared_with(self, log: str) -> tuple[ComparedRun, ...]:
        """List the runs that a log is compared with in their order, itself among them."""
        place = self._places.get(log)
        if place is None:
            return ()
        compared = np.arange(self.normals.first[place], self.normals.end[place])
        compared = compared[np.argsort(self.runs.day[compared], kind="stable")]
        slowdown = np.exp(self.normals.log_ratio[compared])
        together = self._columns["metadata_seconds"] + self._columns["data_seconds"]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (self._columns["metadata_seconds"] / together)[compared]
        rows = self.runs.rows.take(pa.array(compared)).to_pylist()
        return tuple(
            ComparedRun(
                *(row["log"], row["job_id"], row["start_us"], row["bandwidth_mib_s"]),
                *(_known(share[at]), _known(slowdown[at]), row["stripe_count"]),
            )
            for at, row in enumerate(rows)
        )

    def _usual(self, place: int, others: Ints) -> UsualBandwidth | None:
        """Find the median of other jobs, and the bandwidths of 90 % of these."""
        log_mib_s = float(self.normals.log_mib_s[place])
        if not np.isfinite(log_mib_s):
            return None
        job = np.unique(self.runs.job[others], return_inverse=True)[1]
        low, high = np.exp(np.quantile(medians(self.runs.log_mib_s[others], job), _BAND))
        days = self.runs.day[others][np.isfinite(self.runs.day[others])]
        return UsualBandwidth(
            *("history", float(np.exp(log_mib_s)), float(low), float(high)),
            int(self.normals.jobs[place]),
            round(days.min() * DAY_US) if len(days) else None,
            round(days.max() * DAY_US) if len(days) else None,
        )

    def _at_level(
        self, place: int, usual: UsualBandwidth | None, weather: Weather | None
    ) -> UsualBandwidth | None:
        """Move the usual bandwidth to the level of the week."""
        if usual is None or weather is None:
            return None
        log_mib_s, spread = self.normals.log_mib_s[place], self.normals.spread[place]
        low, high = weather.interval(float(log_mib_s), float(spread))
        level_mib_s = usual.mib_s * weather.level
        return UsualBandwidth(
            *("history", level_mib_s, low, high, usual.jobs, usual.first_us, usual.last_us)
        )

    def _times(self, place: int, others: Ints) -> IoTimes:
        metadata, data = self._columns["metadata_seconds"], self._columns["data_seconds"]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = metadata[others] / (metadata[others] + data[others])
        return IoTimes(
            _known(metadata[place]),
            _known(data[place]),
            self._median(others, metadata[others]),
            self._median(others, data[others]),
            self._median(others, share),
        )

    def _median(self, others: Ints, values: Floats) -> float | None:
        """The median of jobs; None with fewer than 5."""
        known = np.isfinite(values)
        jobs, job = np.unique(self.runs.job[others[known]], return_inverse=True)
        if len(jobs) < FEWEST_JOBS:
            return None
        return float(np.median(medians(values[known], job)))

    def _twins(self, place: int, others: Ints) -> Ints:
        """List the other runs with the same stripe count; of unknown counts, all are alike."""
        count = self._columns["stripe_count"]
        own, of_others = count[place], count[others]
        same = np.isnan(of_others) if np.isnan(own) else of_others == own
        twins: Ints = others[same]
        return twins

    def _counted(self, twins: Ints, predicted: UsualBandwidth | None) -> Twins:
        runs = self.runs
        jobs, job = np.unique(runs.job[twins], return_inverse=True)
        if not len(jobs):
            return Twins(0, 0, None)
        mib_s = np.exp(medians(runs.log_mib_s[twins], job))
        is_normal = ~self.normals.is_slow[twins] & np.isfinite(self.normals.log_mib_s[twins])
        return Twins(
            len(jobs),
            len(np.unique(runs.job[twins[is_normal]])),
            float(np.median(mib_s)) if len(jobs) >= _FEWEST_TWINS else None,
            sum(is_slow_beside(each, predicted) for each in mib_s.tolist()) if predicted else None,
        )

    def _stripes(self, row: dict[str, Any], others: Ints) -> Stripes | None:
        if row["stripe_count"] is None or not row["stripe_size"]:
            return None
        count = self._columns["stripe_count"][others]
        known = others[count > 0]
        return stripes_of(
            row["stripe_count"],
            row["stripe_size"],
            processes=row["file_processes"] or 0,
            file_bytes=row["file_bytes"] or 0,
            bandwidth_mib_s=row["bandwidth_mib_s"],
            others=StripedJobs(
                self.runs.job[known],
                self._columns["stripe_count"][known],
                self.runs.log_mib_s[known],
            ),
        )

    def _usual_delays(
        self, twins: Ints, delays: TracedDelays, ask: Ask | None
    ) -> UsualDelays | None:
        """Find the delays of some twins that are traced and not slow, if they are needed."""
        if ask is None or not (delays.trailing_seconds or delays.straggler_seconds):
            return None
        is_traced = (self._columns["has_requests"][twins] > 0) & ~self.normals.is_slow[twins]
        newest = twins[is_traced]
        newest = newest[np.argsort(-self.runs.day[newest], kind="stable")][:_MOST_TRACED]
        return usual_delays(ask, self.runs.rows["log"].take(pa.array(newest)).to_pylist())


def _diagnosis(row: dict[str, Any], facts: RunFacts) -> Diagnosis:
    names = ("log", "path", "system", "program", "job_id", "processes", "start_us")
    return Diagnosis(**{name: row[name] for name in names}, facts=facts, judgement=judge(facts))


def _why_not(jobs: int) -> str:
    """Name the condition of a comparison that failed."""
    return (
        f"{jobs} other jobs have the same program, user, processes, nodes and about as many bytes,"
        f" and {FEWEST_JOBS} are needed; there is no prediction"
    )


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
