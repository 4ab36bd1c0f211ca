"""The time line on a page: its figure, remarks, and the causes that can be picked out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from ioncast.show.rendering import STATIC, write_offline
from ioncast.timelines.figure import timeline_figure
from ioncast.timelines.timeline import NamedCause, Shade, TimelineOfRun
from ioncast_base.pages.figures import Figure
from ioncast_base.wording import counted, in_digits, size

_MOST_PHASES = 200


@dataclass(frozen=True)
class TimelineShown:
    """A time line on a page.

    Attributes
    ----------
    low, high : float
        The ends of the time axis, in seconds since the job's start.
    said : tuple of str
        Sentences about what is drawn, and remarks.
    causes : tuple of NamedCause
        The causes whose requests a reader can see in full colour, over the faded rest.
    """

    figure: Figure
    low: float
    high: float
    said: tuple[str, ...]
    causes: tuple[NamedCause, ...]
    phases: tuple[Shade, ...]
    more_phases: int

    def cause_of(self, codes: Iterable[str]) -> int | None:
        """The place in `causes` of the first one with any of some codes."""
        of = [cause.code for cause in self.causes]
        return next((of.index(code) for code in codes if code in of), None)


def timeline_shown(
    timelines: Mapping[str, TimelineOfRun], *, are_alike: bool = False
) -> TimelineShown:
    """Arrange the time lines of runs by their names; an only one needs no name.

    Parameters
    ----------
    are_alike : bool
        Whether collective calls of the run were carried out as independent ones.
    """
    figure = timeline_figure(timelines)
    axis = figure.panels[0].values
    first = next(iter(timelines.values()))
    said = [
        f"{name}: {text}" if name else text
        for name, timeline in timelines.items()
        for text in _said(timeline)
    ]
    if are_alike:
        said.append(
            "MPI-IO and POSIX look alike: collective calls ran as independent ones, without"
            " aggregators."
        )
    return TimelineShown(
        figure,
        axis.low,
        axis.high,
        tuple(said),
        first.causes,
        first.phases[:_MOST_PHASES],
        first.more_phases + max(len(first.phases) - _MOST_PHASES, 0),
    )


def write_timeline(path: str | Path, title: str, shown: TimelineShown) -> None:
    """Write a time line as a page that needs no network. On an error an older page stays."""
    script = Markup((STATIC / "zoom.js").read_text(encoding="utf-8"))  # noqa: S704 - ours
    write_offline(path, "timeline_page.html", title=title, shown=shown, script=script)


def _said(timeline: TimelineOfRun) -> Iterator[str]:
    what = counted(timeline.requests, "request")
    if timeline.bin_seconds is not None:
        what = (
            f"{counted(timeline.requests, 'bin')} of {in_digits(timeline.bin_seconds)} s of a rank"
            " in which bytes moved, from the heat maps, because the log has no trace"
        )
    said = f"{what}, {size(float(timeline.bytes))}."
    if len({each.operation for each in timeline.spans}) > 1:
        said += " Reads are above writes in each row."
    longest = max((each.spans.bin_seconds for each in timeline.spans), default=0.0)
    if longest and timeline.bin_seconds is None:
        said += f" Requests less than {in_digits(longest)} s apart are joined."
    units = timeline.units_of_a_row
    if timeline.is_by_offset:
        said += f" A row has {size(float(units))} of the file."
    elif units > 1:
        said += f" A row has {counted(units, 'rank')}."
    yield said
    if trailing := timeline.trailing:
        yield (
            f"Trailing writes: after the last write of at least 64 KiB, {trailing.requests:,}"
            f" small ones of together {size(float(trailing.bytes))} go on until"
            f" {in_digits(trailing.end_seconds)} s, as HDF5 writes its metadata. Collective"
            " metadata writes shorten them."
        )
