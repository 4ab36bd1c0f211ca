"""Rows of a check as lines for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import click

from scheduler_plugin.check.asking_sources import Row, Status

_COLOURS: dict[Status, str] = {"OK": "green", "WARN": "yellow", "FAIL": "red"}
_WIDTH = 100
_INDENT = 6


def lines_of(rows: Sequence[Row]) -> Iterator[str]:
    """Write each row as a line, and its remedy below it; the last line counts them."""
    for row in rows:
        status = click.style(f"{row.status:<{_INDENT - 1}}", fg=_COLOURS[row.status])
        yield f"{status} {row.subject}: {row.found}"
        if row.remedy:
            yield textwrap.fill(
                row.remedy,
                _WIDTH,
                initial_indent=" " * _INDENT + "→ ",
                subsequent_indent=" " * (_INDENT + 2),
                break_long_words=False,
                break_on_hyphens=False,
            )
    counts = {status: sum(row.status == status for row in rows) for status in _COLOURS}
    yield "\n" + ", ".join(f"{count} {status}" for status, count in counts.items())
