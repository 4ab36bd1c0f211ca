"""The figure of the files that moved most bytes or took most time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.drawn import (
    BAR,
    METADATA,
    NO_NUMBER,
    READ,
    WRITE,
    Column,
    Document,
    Drawn,
    above_bars,
    in_seconds,
    number,
    percent,
    rows_axis,
    short_name,
    values_of,
)
from ioncast.insights.figures.laid_out import Figure, figure
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, size

_MOST_DRAWN = 8
_BYTES = {"reads": ("bytes_read", READ), "writes": ("bytes_written", WRITE)}
_SECONDS = {
    "reads": ("read_seconds", READ),
    "writes": ("write_seconds", WRITE),
    "metadata": ("metadata_seconds", METADATA),
}
_PIXELS_OF_A_FILE, _PIXELS_BESIDE = 46, 100
# Room for the text behind the longest bar, as a multiple of its length.
_ROOM = 1.6
# A file with a smaller share, or nearer to the mean of all files, does not stand out. But with two
# or three files, one with a clear share does, however near the mean is.
_LARGE_SHARE, _TIMES_MEAN, _CLEAR_SHARE = 0.1, 1.5, 0.4
_NOTE = (
    "Seconds are those of all processes together. Each file counts at its highest layer: MPI-IO,"
    " STDIO or POSIX."
)

_COLUMNS = (
    Column("File", True),
    Column("Layer", True),
    *map(Column, ("Processes", "Bytes read", "Bytes written", "Size")),
    *map(Column, ("Read", "Write", "Metadata", "Slowest process", "Its rank")),
)

File = Mapping[str, Any]


def file_figure(run: Document) -> Drawn | None:
    """Draw the files of a run; None without any."""
    files = sorted(run["files"], key=_order)
    if not files:
        return None
    # The document has the most important files first.
    drawn = sorted(run["files"][:_MOST_DRAWN], key=_order)
    all_files = max(int(number(run["file_count"])), len(files))
    some = f"{len(files)} of {counted(all_files, 'file')}"
    return Drawn(
        key="files",
        title="Files by bytes and time",
        said=_said(run, files, all_files),
        figure=_figure(drawn),
        caption=f"The numbers of {some if len(files) < all_files else counted(all_files, 'file')}",
        columns=_COLUMNS,
        rows=tuple(_row(file) for file in files),
        note=_NOTE,
        is_wide=True,
    )


def moved(file: File) -> float:
    """Add up the bytes that a file moved."""
    return sum(number(file.get(name)) for name, _ in _BYTES.values())


def seconds(file: File) -> float:
    """Add up the time in a file, of all processes together."""
    return sum(number(file.get(name)) for name, _ in _SECONDS.values())


def _order(file: File) -> tuple[float, float]:
    """Put the file with most time first."""
    return -seconds(file), -moved(file)


def _said(run: Document, files: Sequence[File], all_files: int) -> str:
    largest = max(files, key=moved)
    if all_files == 1:
        time = in_seconds(seconds(largest))
        return f"The only file moved {size(moved(largest))} in {time} of all processes."
    values = values_of(run, "files")
    of_run = values.number("", "bytes read") + values.number("", "bytes written")
    all_bytes = max(of_run, sum(map(moved, files)))
    all_seconds = max(sum(seconds(each) for each in run["layer_times"]), sum(map(seconds, files)))
    slowest = max(files, key=seconds)
    shares = seconds(slowest) / (all_seconds or 1), moved(largest) / (all_bytes or 1)
    if max(shares) < max(_LARGE_SHARE, min(_TIMES_MEAN / all_files, _CLEAR_SHARE)):
        of_time, of_bytes = (ceil(round(100 * share, 6)) for share in shares)
        return (
            f"No file stands out: each of the {all_files:,} took at most {of_time}% of the time and"
            f" moved at most {of_bytes}% of the bytes."
        )
    said = (
        f"One of {all_files:,} files took {percent(seconds(slowest), all_seconds)} of the time and"
        f" moved {percent(moved(slowest), all_bytes)} of the bytes."
    )
    if moved(largest) <= 2 * moved(slowest):
        return said
    return f"{said} Another one moved {percent(moved(largest), all_bytes)} of the bytes."


def _figure(files: Sequence[File]) -> Figure:
    return figure(
        [
            *_panel(files, _BYTES, "x", [size(moved(file)) for file in files]),
            *_panel(files, _SECONDS, "x2", [in_seconds(seconds(file)) for file in files]),
        ],
        height=_PIXELS_BESIDE + _PIXELS_OF_A_FILE * len(files),
        showlegend=True,
        barmode="stack",
        hovermode="closest",
        annotations=above_bars([short_name(file["path"]) for file in files]),
        yaxis=rows_axis(len(files)),
        xaxis=_axis("bytes", [moved(file) for file in files], [0, 0.48]),
        xaxis2=_axis("seconds", [seconds(file) for file in files], [0.52, 1]),
    )


def _panel(
    files: Sequence[File], parts: Mapping[str, tuple[str, str]], axis: str, texts: Sequence[str]
) -> list[dict[str, Any]]:
    rows = list(range(len(files)))
    write = size if parts is _BYTES else in_seconds
    shown = {"reads", "writes"} if parts is _BYTES else {"metadata"}
    bars: list[dict[str, Any]] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "legendgroup": name,
            "showlegend": name in shown,
            "xaxis": axis,
            "y": rows,
            "x": [number(file.get(field)) for file in files],
            "text": [write(number(file.get(field))) for file in files],
            "textposition": "none",
            "width": BAR,
            "marker": {"color": colour},
            "hovertemplate": f"{name}: %{{text}}<extra></extra>",
        }
        for name, (field, colour) in parts.items()
        if any(number(file.get(field)) for file in files)
    ]
    totals = {
        "type": "scatter",
        "mode": "text",
        "showlegend": False,
        "xaxis": axis,
        "y": rows,
        "x": [moved(file) if parts is _BYTES else seconds(file) for file in files],
        "text": [f" {text}" for text in texts],
        "textposition": "middle right",
        "textfont": {"size": 12},
        "hoverinfo": "skip",
        "cliponaxis": False,
    }
    return [*bars, totals]


def _axis(what: str, values: Sequence[float], domain: list[float]) -> dict[str, Any]:
    return {
        "title": {"text": what},
        "range": [0, _ROOM * (max(values) or 1)],
        "domain": domain,
        # The text at each bar is its number.
        "showticklabels": False,
        "showgrid": False,
        "showline": False,
        "zeroline": False,
    }


def _row(file: File) -> tuple[str, ...]:
    sizes = ("bytes_read", "bytes_written", "extent_bytes")
    times = (*(name for name, _ in _SECONDS.values()), "slowest_seconds")
    rank = file["slowest_rank"]
    return (
        visible(file["path"]),
        layer_text(file["layer"]),
        f"{int(number(file.get('processes'))):,}",
        *(size(number(file.get(name))) for name in sizes),
        *(in_seconds(number(file.get(name))) for name in times),
        NO_NUMBER if rank is None else f"{rank:,}",
    )
