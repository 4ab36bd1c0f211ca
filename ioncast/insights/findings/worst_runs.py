"""Many runs at a glance: those with most core-hours at stake, and the most frequent causes."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ioncast.insights.facts.values import share
from ioncast.insights.findings.text import Record, percent
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, in_digits

MOST_RUNS = 20
COLUMNS = (
    "kind",
    "log",
    "job",
    "processes",
    "cause",
    "runs",
    "major",
    "minor",
    "core_hours_at_stake",
    "share_of_run",
)
_HOUR = 3600.0


@dataclass
class CauseCount:
    """The runs that have a cause."""

    runs: Counter[str] = field(default_factory=Counter)
    core_hours: float = 0.0


@dataclass
class RunsSeen:
    """The sums of all runs so far, in run time times processes; more runs need no more memory."""

    runs: int = 0
    core_hours: float = 0.0
    core_hours_at_stake: float = 0.0
    causes: dict[str, CauseCount] = field(default_factory=dict)
    _worst: list[tuple[float, int, dict[str, Any]]] = field(default_factory=list)

    def add(self, record: Record) -> None:
        """Count a run, given as `ioncast.insights.checks.record.to_record` makes it."""
        verdict, processes = record["verdict"], record["processes"]
        self.runs += 1
        self.core_hours += verdict["run_seconds"] * processes / _HOUR
        hours = verdict["seconds_at_stake"] * processes / _HOUR
        self.core_hours_at_stake += hours
        counting = [each for each in record["causes"] if each["importance"] in ("major", "minor")]
        for cause in counting:
            count = self.causes.setdefault(cause["cause"], CauseCount())
            count.runs[cause["importance"]] += 1
            count.core_hours += cause["seconds_at_stake"] * processes / _HOUR
        # A small share of a large run may cost more than all of a small one.
        known = [each for each in record["causes"] if each["seconds_at_stake"]]
        if not known:
            return
        first = max(known, key=lambda each: float(each["seconds_at_stake"]))
        row = {
            "log": record["log"],
            "job": record["job"],
            "processes": processes,
            "cause": first["cause"],
            "core_hours_at_stake": hours,
            "share_of_run": verdict["share_of_run"],
        }
        # Of equal runs the first one stays.
        heapq.heappush(self._worst, (hours, -self.runs, row))
        if len(self._worst) > MOST_RUNS:
            heapq.heappop(self._worst)

    @property
    def worst(self) -> list[dict[str, Any]]:
        """The runs with most core-hours at stake, at most `MOST_RUNS`, the worst first."""
        return [row for _, _, row in sorted(self._worst, key=lambda each: each[:2], reverse=True)]

    @property
    def most_frequent(self) -> list[dict[str, Any]]:
        """The causes, those of most runs first."""
        rows = [
            {
                "cause": name,
                "runs": count.runs.total(),
                **{name: count.runs[name] for name in ("major", "minor")},
                "core_hours_at_stake": count.core_hours,
            }
            for name, count in self.causes.items()
        ]
        return sorted(rows, key=lambda row: (-row["runs"], -row["core_hours_at_stake"]))


def to_summary(seen: RunsSeen) -> dict[str, Any]:
    """Convert the sums to an object for JSON."""
    return {
        "runs": seen.runs,
        "core_hours": seen.core_hours,
        "core_hours_at_stake": seen.core_hours_at_stake,
        "worst_runs": seen.worst,
        "causes": seen.most_frequent,
    }


def summary_rows(seen: RunsSeen) -> Iterator[dict[str, Any]]:
    """Yield rows with `COLUMNS`: the worst runs, and then the causes."""
    for kind, rows in (("run", seen.worst), ("cause", seen.most_frequent)):
        yield from ({"kind": kind, **row} for row in rows)


def at_stake_text(seen: RunsSeen) -> str:
    """Say how many core-hours are at stake."""
    part = percent(share(seen.core_hours_at_stake, seen.core_hours))
    return (
        f"{counted(seen.runs, 'run')} with {in_digits(seen.core_hours)} core-hours, of which"
        f" at most {in_digits(seen.core_hours_at_stake)} ({part}) are at stake"
    )


def summary_text(seen: RunsSeen) -> str:
    """Write the sums for people."""
    head = at_stake_text(seen)
    if not seen.worst:
        return head
    worst = [
        {
            "core-hours": in_digits(row["core_hours_at_stake"]),
            "of the run": percent(row["share_of_run"]),
            "first cause": row["cause"],
            "log": visible(row["log"]),
        }
        for row in seen.worst
    ]
    causes = [
        {
            "cause": row["cause"],
            **{name: f"{row[name]:,}" for name in ("runs", "major", "minor")},
            "core-hours": in_digits(row["core_hours_at_stake"]),
        }
        for row in seen.most_frequent
    ]
    numbers = ("core-hours", "of the run", "runs", "major", "minor")
    parts = [head, f"Most core-hours at stake:\n{text_table(worst, right=numbers)}"]
    if causes:
        parts.append(f"Most frequent causes, major or minor:\n{text_table(causes, right=numbers)}")
    return "\n\n".join(parts)
