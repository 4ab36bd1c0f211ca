"""The figure of the files that moved most bytes or took most time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from ioncast.insights.comparison.in_words import layer_text
from ioncast.insights.figures.drawn import (
    METADATA,
    NO_NUMBER,
    READ,
    WRITE,
    Column,
    Document,
    Drawn,
    in_seconds,
    number,
    percent,
    short_name,
    values_of,
)
from ioncast_base.pages.figures import (
    BAR,
    Axis,
    Bars,
    Figure,
    Panel,
    Texts,
    Write,
    highest,
    rows,
    stacked,
)
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, size

_MOST_DRAWN = 8
_BYTES = {"reads": ("bytes_read", READ), "writes": ("bytes_written", WRITE)}
_SECONDS = {
    "reads": ("read_seconds", READ),
    "writes": ("write_seconds", WRITE),
    "metadata": ("metadata_seconds", METADATA),
}
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
    names = [short_name(file["path"]) for file in files]
    panels = [
        _panel(files, names, "bytes", _BYTES, size),
        _panel(files, names, "seconds", _SECONDS, in_seconds),
    ]
    return Figure(panels, is_beside=True)


def _panel(
    files: Sequence[File],
    names: Sequence[str],
    title: str,
    parts: Mapping[str, tuple[str, str]],
    write: Write,
) -> Panel:
    """Draw a quantity of files; the text at each bar is its number, so the axis needs none."""
    at = list(range(len(files)))
    values = {
        name: [number(file.get(field)) for file in files] for name, (field, _) in parts.items()
    }
    bars = [
        Bars(
            *(name, parts[name][1], at, ends, starts, BAR),
            hints=[f"{name}: {write(value)}" for value in values[name]],
        )
        for name, (starts, ends) in zip(values, stacked(values.values()), strict=True)
    ]
    totals = [sum(of_file) for of_file in zip(*values.values(), strict=True)]
    texts = Texts(at, totals, [write(total) for total in totals], right=4, up=-4)
    axis = Axis(title, 0, _ROOM * highest(bars) or 1, {})
    known = [bar for bar in bars if any(values[bar.name])]
    return rows(names, axis, [*known, texts])


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
