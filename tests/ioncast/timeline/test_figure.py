"""The time line as a figure: every request is visible, and hints name only ranks of the run."""

from __future__ import annotations

from ioncast.timeline.figure import drawn_spans, timeline_figure
from ioncast.timeline.requests import TimedRequests
from ioncast_base.pages.figures import Bars
from tests.ioncast.timeline.test_spans import operations
from tests.support.drawn import named


def test_a_millisecond_in_a_thousand_seconds_is_visible() -> None:
    requests = TimedRequests(operations([(0, 0, 1e-3, 1), (3, 999, 1, 1)]), 4, None)
    bars = named(timeline_figure(requests, drawn_spans(requests), []), "reads", Bars)
    lengths = [(end or 0) - start for start, end in zip(bars.starts, bars.ends, strict=True)]
    assert min(lengths) >= 1
    assert "0.0000 to 0.0010 s" in bars.hints[0]


def test_the_last_row_names_only_ranks_of_the_run() -> None:
    requests = TimedRequests(operations([(0, 0, 1, 1), (299, 0, 1, 1)]), 300, None)
    bars = named(timeline_figure(requests, drawn_spans(requests), []), "reads", Bars)
    assert [hint.partition(":")[0] for hint in bars.hints] == ["ranks 0 to 2", "ranks 297 to 299"]
    requests = TimedRequests(operations([(0, 0, 1, 1), (256, 0, 1, 1)]), 257, None)
    bars = named(timeline_figure(requests, drawn_spans(requests), []), "reads", Bars)
    assert bars.hints[-1].startswith("ranks 255 to 256:")
