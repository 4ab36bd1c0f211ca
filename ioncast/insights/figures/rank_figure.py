"""The figure of the bytes and the time of each process, or of ranges of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from ioncast.insights.figures.laid_out import Figure, figure
from ioncast.insights.figures.rank_numbers import (
    Values,
    columns_of,
    ends_of,
    has_ranges,
    in_words,
    rows_of,
    slowest_of_files,
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
_PIXELS_OF_A_PANEL, _PIXELS_BESIDE = 150, 90
# More bars have no room between them.
_MOST_WITH_GAPS = 64
_MOST_TICKS = 9
_GAP = 0.15
_SAME = 1.005
# Parts of the height between two panels, and room above the longest bar.
_BETWEEN, _ROOM = 0.08, 1.25
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


@dataclass(frozen=True)
class _Panel:
    """A panel of the figure."""

    parts: Mapping[str, tuple[str, str]]
    whole: str
    axis: str
    unit: str
    divisor: float
    gap: float


def _figure(ranks: Values, kinds: Sequence[Mapping[str, tuple[str, str]]]) -> Figure:
    panels = [_panel(ranks, kind, place) for place, kind in enumerate(kinds)]
    bars = [_bars(ranks, name, panel) for panel in panels for name in panel.parts]
    labels = [bar["name"] for bar in bars]
    for place, bar in enumerate(bars):
        bar["showlegend"] = bar["name"] not in labels[:place]
    return figure(
        [*bars, *(trace for panel in panels for trace in _extremes(ranks, panel))],
        height=_PIXELS_BESIDE + _PIXELS_OF_A_PANEL * len(panels),
        showlegend=True,
        barmode="stack",
        hovermode="closest",
        shapes=[_mean(ranks, panel) for panel in panels],
        xaxis=_x_axis(ranks["processes"], panels[-1].axis),
        **{
            panel.axis.replace("y", "yaxis"): _y_axis(ranks, panel, place, len(panels))
            for place, panel in enumerate(panels)
        },
    )


def _panel(ranks: Values, kind: Mapping[str, tuple[str, str]], place: int) -> _Panel:
    names = list(_drawn(ranks, kind))
    whole = "bytes" if kind is _BYTES else "io_seconds"
    if whole not in ranks["values"]:
        whole = names[0]
    unit, divisor = _scale(ranks, kind)
    has_gaps = len(ranks["first_ranks"]) <= _MOST_WITH_GAPS
    return _Panel(
        parts={name: kind[name] for name in names},
        whole=whole,
        axis=f"y{place + 1}" if place else "y",
        unit=unit,
        divisor=divisor,
        gap=_GAP if has_gaps else 0,
    )


def _x_axis(processes: int, anchor: str) -> dict[str, Any]:
    return {
        "title": {"text": "rank"},
        "range": [-0.6, processes - 0.4],
        "anchor": anchor,
        "showgrid": False,
        "zeroline": False,
        "tickformat": ",d",
        "nticks": 9,
        **({"dtick": 1} if processes <= _MOST_TICKS else {}),
    }


def _y_axis(ranks: Values, panel: _Panel, place: int, panels: int) -> dict[str, Any]:
    height = (1 - _BETWEEN * (panels - 1)) / panels
    low = (panels - 1 - place) * (height + _BETWEEN)
    most = number(ranks["values"][panel.whole]["largest"]) / panel.divisor
    return {
        "title": {"text": panel.unit},
        "domain": [low, low + height],
        "range": [0, _ROOM * most],
        "nticks": 5,
        "exponentformat": "none",
        "separatethousands": True,
    }


def _places(ranks: Values) -> list[float]:
    return [(low + high) / 2 for low, high in ends_of(ranks)]


def _scale(ranks: Values, panel: Mapping[str, Any]) -> tuple[str, float]:
    """Choose the unit of a panel: its name, and its size."""
    if panel is not _BYTES:
        return "seconds", 1
    unit = size(number(ranks["values"]["bytes"]["largest"])).rpartition(" ")[2]
    powers = {name: power for power, name in enumerate(_UNITS)}
    return (unit, _KIB ** powers[unit]) if unit in powers else ("bytes", 1)


def _bars(ranks: Values, name: str, panel: _Panel) -> dict[str, Any]:
    label, colour = panel.parts[name]
    of_each = "a process, " if has_ranges(ranks) else ""
    write = size if panel.whole == "bytes" else in_seconds
    means = [number(value) for value in ranks["values"][name]["mean"]]
    return {
        "type": "bar",
        "name": label,
        "legendgroup": label,
        "yaxis": panel.axis,
        "x": _places(ranks),
        "y": [mean / panel.divisor for mean in means],
        "width": [high - low + 1 - panel.gap for low, high in ends_of(ranks)],
        "text": [
            f"rank {in_words(*ends)}<br>{of_each}{label}: {write(mean)}"
            for ends, mean in zip(ends_of(ranks), means, strict=True)
        ],
        "textposition": "none",
        "marker": {"color": colour},
        "hovertemplate": "%{text}<extra></extra>",
    }


def _extremes(ranks: Values, panel: _Panel) -> Iterator[dict[str, Any]]:
    """Mark the process with most, and in ranges the most of a process."""
    found = ranks["values"][panel.whole]
    common = {"type": "scatter", "yaxis": panel.axis, "hoverinfo": "skip"}
    if "max" in found:
        yield common | {
            "mode": "lines",
            "name": "most of a process in the range",
            "legendgroup": "most",
            "showlegend": panel.axis == "y",
            "x": _places(ranks),
            "y": [number(value) / panel.divisor for value in found["max"]],
            "line": {"color": "var(--muted)", "width": 1, "shape": "hvh"},
        }
    if _are_same(found, ranks["processes"]):
        return
    rank, processes = found["largest_rank"], ranks["processes"]
    side = "right" if 3 * rank < processes else "left" if 3 * rank > 2 * processes else "center"
    yield common | {
        "mode": "markers+text",
        "showlegend": False,
        "x": [rank],
        "y": [number(found["largest"]) / panel.divisor],
        "marker": {"symbol": "triangle-down", "size": 9, "color": "var(--text)", "standoff": 3},
        "text": [f"rank {rank:,}"],
        "textposition": f"top {side}",
        "cliponaxis": False,
    }


def _mean(ranks: Values, panel: _Panel) -> dict[str, Any]:
    mean = number(ranks["values"][panel.whole]["total"]) / ranks["processes"] / panel.divisor
    line = {"color": "var(--text)", "width": 1.2, "dash": "dash"}
    ends = {"x0": 0, "x1": 1, "y0": mean, "y1": mean}
    return {"type": "line", "xref": "paper", "yref": panel.axis, "line": line, **ends}


def _are_same(found: Values, processes: int) -> bool:
    """Whether no process has visibly more than the mean of all."""
    return number(found["largest"]) * processes <= _SAME * number(found["total"])
