"""The time line as a figure: hints name only ranks of the run, and axes are common."""

from __future__ import annotations

from ioncast.timelines.figure import timeline_figure
from ioncast.timelines.requests import TimedRequests
from ioncast.timelines.timeline import timeline_of
from ioncast_base.pages.figures import Bars, Figure, Points
from tests.ioncast.timelines.test_spans import operations
from tests.support.drawn import named


def figure_of(nprocs: int, *requests: tuple[int, float, float, int]) -> Figure:
    timed = TimedRequests(operations(list(requests)), nprocs, None)
    return timeline_figure({"": timeline_of(timed)})


def test_a_hint_tells_rank_size_offset_and_times() -> None:
    bars = named(figure_of(4, (0, 0, 1e-3, 1), (3, 999, 1, 4096)), "reads", Bars)
    assert bars.hints == [
        "rank 0: 1 read, 1 byte at 0\n0.0000 to 0.0010 s, 0.001 s",
        "rank 3: 1 read, 4 KiB at 0\n999.0000 to 1000.0000 s, 1 s",
    ]


def test_the_last_row_names_only_ranks_of_the_run() -> None:
    bars = named(figure_of(300, (0, 0, 1, 1), (299, 0, 1, 1)), "reads", Bars)
    assert [hint.partition(":")[0] for hint in bars.hints] == ["ranks 0 to 2", "ranks 297 to 299"]
    bars = named(figure_of(257, (0, 0, 1, 1), (256, 0, 1, 1)), "reads", Bars)
    assert bars.hints[-1].startswith("ranks 255 to 256:")


def test_the_ranks_that_end_last_and_first_are_marked() -> None:
    figure = figure_of(3, (0, 0, 5, 1), (1, 0, 9, 1), (2, 0, 3, 1), (2, 3, 1, 1))
    slowest = named(figure, "slowest rank of a phase", Points)
    fastest = named(figure, "fastest rank", Points)
    assert (list(slowest.at), list(slowest.values)) == ([1], [9])
    assert (list(fastest.at), list(fastest.values)) == ([2], [4])


def test_two_runs_have_one_axis_of_time() -> None:
    long, short = (
        timeline_of(TimedRequests(operations([(0, start, 1, 1)]), 1, None)) for start in (9, 2)
    )
    figure = timeline_figure({"A": long, "B": short})
    assert [(panel.values.low, panel.values.high) for panel in figure.panels] == [(2, 10)] * 2
    assert [panel.across.title for panel in figure.panels] == ["A: POSIX: rank", "B: POSIX: rank"]
    # Only the lowest axis has its title.
    assert [panel.values.title for panel in figure.panels] == ["", "seconds since the start"]
