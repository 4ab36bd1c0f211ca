"""The figure of the queue: hours at their places, and waiting jobs on each other."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from ioncast.show.figures import queue_figure
from ioncast_base.pages.figures import Bars
from tests.support.drawn import lines, named

SINCE = datetime(2026, 11, 21, 12, 40, tzinfo=timezone.utc)


def test_each_hour_is_at_its_place_and_waiting_jobs_are_stacked() -> None:
    means = [
        ("2026-11-21T12:00:00+00:00", 8.0, 6.0, 5.0, 2.0),
        ("2026-11-21T15:00:00+00:00", 4.0, 2.5, 1.0, 0.0),
    ]
    figure = queue_figure(means, SINCE, SINCE + timedelta(hours=4))
    in_use = named(figure, "I/O nodes in use", Bars)
    # The hour from 12 to 13 is the first one, and no bar is in the gap until 15.
    assert (in_use.at, in_use.ends) == ([0.5, 3.5], [6.0, 2.5])
    assert in_use.hints[1] == "2.5 of 4 I/O nodes in use, 21 Nov 15:00"
    assert lines(figure) == {"I/O nodes in all": [8.0, 4.0]}
    for_io_nodes = named(figure, "jobs that wait for I/O nodes", Bars)
    others = named(figure, "jobs that wait for others", Bars)
    assert (for_io_nodes.starts, for_io_nodes.ends) == ([0, 0], [2, 0])
    assert (others.starts, others.ends) == ([2, 0], [5, 1])
