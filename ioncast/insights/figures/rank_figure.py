"""The figure of the bytes and the time of each process, or of ranges of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ioncast.insights.figures.drawn import (
    METADATA,
    READ,
    WRITE,
    Document,
    Drawn,
    in_seconds,
    number,
    percent,
)
from ioncast.insights.figures.rank_numbers import (
    Values,
    columns_of,
    ends_of,
    has_ranges,
    in_words,
    rows_of,
    slowest_of_files,
)
from ioncast_base.pages.figures import (
    Anchor,
    Axis,
    Bars,
    Figure,
    Line,
    Panel,
    Points,
    Series,
    Texts,
    numbers,
    stacked,
    whole_ticks,
)
from ioncast_base.wording import in_digits, size

CHECKS = ("D01", "D02")
_BYTES = {"bytes_read": ("reads", READ), "bytes_written": ("writes", WRITE)}
_SECONDS = {
    "read_seconds": ("reads", READ),
    "write_seconds": ("writes", WRITE),
    "metadata_seconds": ("metadata", METADATA),
    "transfer_seconds": ("reads and writes", "var(--kind-6)"),
}
_HEIGHT = 130
# More bars have no room between them.
_MOST_WITH_GAPS = 64
_GAP = 0.15
_SAME = 1.005
# Room above the longest bar, as a multiple of its length.
_ROOM = 1.25
_KIB, _UNITS = 1024, ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_SOURCES = {
    "trace": "its trace (DXT)",
    "heat map": "its heat maps, which count bytes only",
    "records": "the records of single processes",
}


def rank_figure(run: Document, findings: Sequence[Mapping[str, Any]]) -> Drawn | None:
    """Draw what each process did; None for one process, and without I/O."""
    if number(run["job"]["processes"]) < 2:
        return None
    ranks = run["ranks"]
    if ranks is None:
        return slowest_of_files(run)
    codes = tuple(code for code in CHECKS if any(finding["code"] == code for finding in findings))
    panels = [panel for panel in (_BYTES, _SECONDS) if any(_drawn(ranks, panel))]
    if not panels:
        return None
    return Drawn(
        key="ranks",
        title="Balance of the processes",
        said=" ".join(_sentences(ranks)),
        figure=_figure(ranks, panels),
        caption=_caption(ranks),
        columns=tuple(columns_of(ranks)),
        rows=tuple(rows_of(ranks)),
        note=_note(ranks),
        findings=codes,
        is_wide=True,
    )


def _caption(ranks: Values) -> str:
    if has_ranges(ranks):
        return "Processes by range of ranks: the least, the mean and the most of a process"
    return "Bytes and seconds of each process"


def _note(ranks: Values) -> str:
    said = "The log does not tell the bytes of each process."
    if ranks["source"] is not None:
        said = f"The bytes are from {_SOURCES[ranks['source']]}."
    if "io_seconds" in ranks["values"]:
        said += " The seconds are from the records of single processes."
    elif "transfer_seconds" in ranks["values"]:
        said += " The seconds are from its trace and lack metadata calls."
    else:
        said += " The log does not tell the time of each process."
    return f"{said} A dashed line is the mean of all processes."


def _drawn(ranks: Values, panel: Mapping[str, Any]) -> Iterator[str]:
    """Yield the quantities of a panel that are known and not 0 for all processes."""
    for name in panel:
        if name in ranks["values"] and number(ranks["values"][name]["largest"]):
            yield name


def _sentences(ranks: Values) -> Iterator[str]:
    processes, values = ranks["processes"], ranks["values"]
    if "bytes" in values and number(values["bytes"]["total"]):
        yield _sentence(values["bytes"], processes, "moved", size, "of the bytes")
    time = values.get("io_seconds") or values.get("transfer_seconds")
    if time and number(time["total"]):
        yield _sentence(time, processes, "took", in_seconds, "of the time")


def _sentence(found: Values, processes: int, did: str, write: Any, of: str) -> str:
    largest, total = number(found["largest"]), number(found["total"])
    mean = total / processes
    rank = f"Rank {found['largest_rank']:,}"
    if 2 * largest > total and processes > 2:
        return f"{rank} {did} {percent(largest, total)} {of}."
    if _are_same(found, processes):
        return f"All {processes:,} processes {did} the same: {write(mean)} each."
    return f"{rank} {did} most, {write(largest)}: {in_digits(largest / mean)} times the mean."


def _figure(ranks: Values, kinds: Sequence[Mapping[str, tuple[str, str]]]) -> Figure:
    return Figure([_panel(ranks, kind, is_last=kind is kinds[-1]) for kind in kinds])


def _panel(ranks: Values, kind: Mapping[str, tuple[str, str]], *, is_last: bool) -> Panel:
    names = list(_drawn(ranks, kind))
    whole = "bytes" if kind is _BYTES else "io_seconds"
    if whole not in ranks["values"]:
        whole = names[0]
    unit, divisor = _scale(ranks, kind)
    most = max(number(ranks["values"][name]["largest"]) for name in (whole, *names)) / divisor
    bars = list(_bars(ranks, {name: kind[name] for name in names}, whole, divisor))
    series: list[Series] = [*bars, *_extremes(ranks, whole, divisor)]
    values = numbers(0, _ROOM * most, unit)
    return Panel(_ranks_axis(ranks["processes"], is_last=is_last), values, series, _HEIGHT)


def _ranks_axis(processes: int, *, is_last: bool) -> Axis:
    axis = replace(whole_ticks(numbers(-0.6, processes - 0.4, "rank")), has_grid=False)
    return axis if is_last else replace(axis, title="", ticks={})


def _places(ranks: Values) -> list[float]:
    return [(low + high) / 2 for low, high in ends_of(ranks)]


def _scale(ranks: Values, panel: Mapping[str, Any]) -> tuple[str, float]:
    """Choose the unit of a panel: its name, and its size."""
    if panel is not _BYTES:
        return "seconds", 1
    unit = size(number(ranks["values"]["bytes"]["largest"])).rpartition(" ")[2]
    powers = {name: power for power, name in enumerate(_UNITS)}
    return (unit, _KIB ** powers[unit]) if unit in powers else ("bytes", 1)


def _bars(
    ranks: Values, parts: Mapping[str, tuple[str, str]], whole: str, divisor: float
) -> Iterator[Bars]:
    gap = _GAP if len(ranks["first_ranks"]) <= _MOST_WITH_GAPS else 0
    of_each = "a process, " if has_ranges(ranks) else ""
    write = size if whole == "bytes" else in_seconds
    ends_of_ranks = ends_of(ranks)
    means = {name: [number(value) for value in ranks["values"][name]["mean"]] for name in parts}
    heights = [[mean / divisor for mean in of_part] for of_part in means.values()]
    for (name, (label, colour)), (starts, ends) in zip(
        parts.items(), stacked(heights), strict=True
    ):
        yield Bars(
            *(label, colour, _places(ranks), ends, starts),
            width=[high - low + 1 - gap for low, high in ends_of_ranks],
            hints=[
                f"rank {in_words(*ranks_of_bar)}: {of_each}{label}: {write(mean)}"
                for ranks_of_bar, mean in zip(ends_of_ranks, means[name], strict=True)
            ],
        )


def _extremes(ranks: Values, whole: str, divisor: float) -> Iterator[Series]:
    """Mark the mean, the process with most, and in ranges the most of a process."""
    found, processes = ranks["values"][whole], ranks["processes"]
    if "max" in found:
        most = [number(value) / divisor for value in found["max"]]
        corners = [end for low, high in ends_of(ranks) for end in (low - 0.5, high + 0.5)]
        values = [value for value in most for _ in range(2)]
        name = "most of a process in the range"
        yield Line(name, "var(--muted)", corners, values, width=1)
    mean = number(found["total"]) / processes / divisor
    ends = [-0.6, processes - 0.4]
    yield Line("", "var(--text)", ends, [mean, mean], is_dashed=True, width=1.2)
    if _are_same(found, processes):
        return
    rank, top = found["largest_rank"], number(found["largest"]) / divisor
    anchor: Anchor = (
        "start" if 3 * rank < processes else "end" if 3 * rank > 2 * processes else "middle"
    )
    yield Points("", "var(--text)", [rank], [top], "triangle", 7)
    yield Texts([rank], [top], [f"rank {rank:,}"], anchor, up=8)


def _are_same(found: Values, processes: int) -> bool:
    """Whether no process has visibly more than the mean of all."""
    return number(found["largest"]) * processes <= _SAME * number(found["total"])
