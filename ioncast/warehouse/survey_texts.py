"""Values of a survey in words, the same in text and on pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from ioncast.warehouse.survey import TITLES, Survey
from ioncast_base.text_tables import text_table
from ioncast_base.visible_text import visible
from ioncast_base.wording import duration, in_digits, size

UNKNOWN = "unknown"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_HEADINGS = {
    "api": "API",
    "bin": "Size",
    "user_id": "User",
    "job_id": "Job",
    "io_seconds": "I/O time",
    "run_seconds": "Run time",
    "metadata_seconds": "Metadata time",
    "io_share": "Time in I/O",
    "metadata_share": "Time in metadata",
    "io_core_hours": "Core-hours in I/O",
    "core_hours": "Core-hours",
    "largest_stake_seconds": "At stake",
    "seconds_at_stake": "At stake",
    "share_of_run": "Share of run",
    "bandwidth_mib_s": "MiB/s",
    "mpiio_share": "With MPI-IO",
    "collective_share": "Of these collective",
    "mpiio_bytes_share": "Bytes with MPI-IO",
    "bytes_share": "Of bytes",
    "seconds_share": "Of I/O time",
    "small": "Below 1 MiB",
    "least_bytes": "Size from",
    "least_processes": "Processes from",
    "mean_bytes": "Mean",
    "median_bytes": "Median",
    "largest_bytes": "Largest",
    "first_start_us": "First start",
    "last_start_us": "Last start",
}
_IDS = ("user_id", "job_id")


def _moment(start_us: int) -> str:
    return f"{_EPOCH + timedelta(microseconds=start_us):%Y-%m-%d %H:%M}"


# The first part of a column's name that tells its unit.
_WRITES: Mapping[str, Callable[[Any], str]] = {
    "share": "{:.1%}".format,
    "_us": _moment,
    "bytes": size,
    "seconds": duration,
}


def heading(name: str) -> str:
    """Write the name of a column for people."""
    return _HEADINGS.get(name) or name.replace("_", " ").capitalize()


def cell(name: str, value: Any) -> str:
    """Write a value of a column, whose name tells its unit."""
    if value is None or isinstance(value, str) or name in _IDS:
        return UNKNOWN if value is None else visible(str(value))
    return next((write for part, write in _WRITES.items() if part in name), in_digits)(value)


def is_text(name: str) -> bool:
    """Whether a column names things instead of counting them."""
    texts = ("api", "bin", "code", "configuration", "file_system", "level", "match", "month")
    return name in (*texts, *_IDS, "operation", "path", "program", "reason", "system")


def to_text(survey: Survey) -> str:
    """Write all answers as tables for people, without those that have no rows."""
    parts = []
    for key, rows in survey.answers.items():
        shown = [{heading(name): cell(name, row[name]) for name in row} for row in rows]
        if shown:
            right = {heading(name) for name in rows[0] if not is_text(name)}
            parts.append(f"{TITLES[key]}\n\n{text_table(shown, right=right)}")
    return "\n\n".join(parts)
