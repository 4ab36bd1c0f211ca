"""The jobs of runs in words, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ioncast.insights.comparison.comparing import differs
from ioncast.insights.comparison.in_words import layer_text, shortened
from ioncast.insights.comparison.shown import Texts, marked
from ioncast.insights.tables.characterising import Characterisation
from ioncast_base.visible_text import visible
from ioncast_base.wording import in_digits

Job = Mapping[str, Any]
_LONGEST = 60


def job_rows(
    runs: Sequence[Characterisation], names: Sequence[str], tolerance: float
) -> Iterator[Texts]:
    """Yield a row for each property of the jobs that people should see, with a column for each run.

    Other properties than ids and times of day are compared with those of the first run.
    """
    heads = ["value"] if len(runs) == 1 else names
    layer = layer_text("")
    for name, (text, value) in _PROPERTIES.items():
        texts = [text(run.job) for run in runs]
        if not any(texts):
            continue
        if value is not None:
            first = value(runs[0].job)
            texts = [
                marked(each) if differs(first, value(run.job), tolerance) else each
                for each, run in zip(texts, runs, strict=True)
            ]
        yield {"layer": layer, "characteristic": name, **dict(zip(heads, texts, strict=True))}
        layer = ""


def _modules(job: Job) -> str:
    return ", ".join(f"{each['name']} {each['version']}" for each in job["modules"])


def _incomplete(job: Job) -> str:
    return ", ".join(each["name"] for each in job["modules"] if each["partial"])


def _file_systems(job: Job) -> str:
    texts = [f"{visible(each['path'])} ({visible(each['type'])})" for each in job["mounts"]]
    return shortened(", ".join(texts), _LONGEST)


def _moment(seconds: float) -> str:
    """Write a time of a log, which may be any number."""
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return "not known"


# For each property its text, and the value that is compared.
_PROPERTIES: dict[str, tuple[Callable[[Job], str], Callable[[Job], Any] | None]] = {
    "job": (lambda job: str(job["id"]), None),
    "user id": (lambda job: str(job["uid"]), None),
    "processes": (lambda job: f"{job['processes']:,}", lambda job: job["processes"]),
    "compute nodes": (
        lambda job: f"{job['nodes']:,}" if job["nodes"] else "",
        lambda job: job["nodes"],
    ),
    "start": (lambda job: _moment(job["start"]), None),
    "end": (lambda job: _moment(job["end"]), None),
    "run time": (lambda job: f"{in_digits(job['run_seconds'])} s", lambda job: job["run_seconds"]),
    "Darshan": (lambda job: visible(job["darshan"]), lambda job: job["darshan"]),
    "modules": (_modules, _modules),
    "incomplete modules": (_incomplete, _incomplete),
    "file systems": (_file_systems, _file_systems),
}
