"""The findings of runs as rows, one for each finding and each check that was not possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ioncast.insights.findings.text import all_files

COLUMNS = (
    "log",
    "job",
    "processes",
    "importance",
    "cause",
    "seconds_at_stake",
    "share_of_run",
    "level",
    "code",
    "title",
    "sentence",
    "files",
    "worst_file",
    "ranks",
    "advice",
)
_OF_FINDING = COLUMNS[COLUMNS.index("importance") : COLUMNS.index("files")]
# In the column `level`, of a check that lacks data.
UNKNOWN = "UNKNOWN"


def to_rows(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Make the rows of a run, with `COLUMNS`."""
    run = {name: record[name] for name in ("log", "job", "processes")}
    for finding in record["findings"]:
        files = finding["files"]
        yield {
            **run,
            **{name: finding[name] for name in _OF_FINDING},
            "files": all_files(finding),
            "worst_file": files[0]["path"] if files else "",
            "ranks": " ".join(map(str, finding["ranks"])),
            "advice": " ".join(advice["key"] for advice in finding["advice"]),
        }
    for code, reason in record["unknown"].items():
        yield {**run, "level": UNKNOWN, "code": code, "sentence": reason}
