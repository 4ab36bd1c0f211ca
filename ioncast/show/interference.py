"""Interference as a page: who disturbs whom, times alone and together, and bytes by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ioncast.warehouse.interference import Interference, Server, bytes_by_time
from ioncast.warehouse.interference_texts import alone_text, names_of, sentences, server_text
from ioncast.warehouse.survey_texts import cell
from ioncast_base.pages.figures import (
    Bars,
    Figure,
    Line,
    Panel,
    from_zero,
    kind_colour,
    numbers,
    rows,
    side_by_side,
)
from ioncast_base.pages.page import bullets, drawn, table, write_page
from ioncast_base.wording import duration, size

_COLUMNS = 60
_MIB = 1 << 20
# Two bars fill more of a row.
_GROUP, _ROW = 0.56, 76


def write_interference(
    path: str | Path, found: Interference, jobs: Sequence[Mapping[str, Any]], uses: pa.Table
) -> None:
    """Write the page of some jobs; `uses` are the rows that `interference_of` got."""
    names = names_of(found)
    parts = [bullets("Who disturbs whom", list(sentences(found)))]
    figure = _times(found, names)
    if figure is not None:
        parts.append(drawn(figure, "Run time and largest server time, alone and together"))
    for server in found.bottlenecks:
        parts.append(drawn(_by_time(found, jobs, uses, server), f"Bytes at {server_text(server)}"))
    parts.append(table(list(_use_rows(found, names)), texts=2))
    write_page(path, title="Interference", parts=parts)


def _times(found: Interference, names: Mapping[str, str]) -> Figure | None:
    """Draw figure 20 of Kim et al. (2014): times alone and together."""
    labels: list[str] = []
    seconds: dict[str, list[float | None]] = {"alone": [], "together": []}
    for run in found.runs:
        alone = run.alone
        how = f", alone: {alone_text(alone)}" if alone else ""
        before_s = (alone.seconds, alone.server_seconds) if alone else (None, None)
        for what, before, now in zip(
            (f"run time{how}", "largest server time"),
            before_s,
            (run.seconds, run.server_seconds),
            strict=True,
        ):
            if now is not None:
                labels.append(f"{names[run.log]}, {what}")
                seconds["alone"].append(before)
                seconds["together"].append(now)
    if not labels:
        return None
    series = []
    for place, (name, ends) in enumerate(seconds.items()):
        shift, width = side_by_side(2, place, _GROUP)
        at = [number + shift for number in range(len(labels))]
        texts = [duration(end) if end is not None else "unknown" for end in ends]
        series.append(Bars(name, kind_colour(place), at, ends, width=width, labels=texts))
    axis = from_zero(series, "seconds", room=1.3)
    return Figure([rows(labels, axis, series, row=_ROW, width=_GROUP)])


def _by_time(
    found: Interference, jobs: Sequence[Mapping[str, Any]], uses: pa.Table, server: Server
) -> Figure:
    """Draw the bandwidth of each application at a server."""
    at_server = [use for use in found.uses if use.server == server]
    start_us = min(use.start_us for use in at_server)
    end_us = max(use.end_us for use in at_server)
    edges_us = np.linspace(start_us, end_us, _COLUMNS + 1).astype(np.int64).tolist()
    seconds = (end_us - start_us) / 1e6
    width = seconds / _COLUMNS
    at = [(column + 0.5) * width for column in range(_COLUMNS)]
    names, by_log = names_of(found), {job["log"]: job for job in jobs}
    lines = [
        Line(
            names[use.log],
            kind_colour(place),
            at,
            (
                bytes_by_time(
                    uses.filter(pc.equal(uses["log"], use.log)),
                    by_log[use.log],
                    server,
                    edges_us,
                )
                / (width * _MIB)
            ).tolist(),
        )
        for place, use in enumerate(at_server)
    ]
    across = numbers(0, seconds, f"seconds since {cell('start_us', start_us)} UTC")
    return Figure([Panel(across, from_zero(lines, f"MiB/s at {server_text(server)}"), lines)])


def _use_rows(found: Interference, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for use in found.uses:
        yield {
            "Application": names[use.log],
            "Server": server_text(use.server),
            "Bytes": size(use.bytes),
            "Of all": f"{use.share:.0%}",
            "Busy": duration(use.busy_seconds),
            "Bytes in common time": size(use.common_bytes),
            "Estimated": "yes" if use.is_estimated else "no",
        }
