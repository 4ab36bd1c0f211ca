"""Shows the progress of a long import on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

Progress = Callable[[Iterable[Any]], Iterable[Any]]
_ROWS = 20_000
_CLEAR_LINE = "\r\033[K"


def silently(rows: Iterable[Any]) -> Iterable[Any]:
    """Return the rows, and show nothing."""
    return rows


def counting(label: str) -> Progress:
    """Make a function that passes rows on and shows their number on standard error.

    It shows nothing if standard error is not a terminal.
    """

    def count(rows: Iterable[Any]) -> Iterator[Any]:
        number = 0
        for number, row in enumerate(rows, 1):
            if number % _ROWS == 0:
                click.echo(f"{_CLEAR_LINE}{label}: {number:,} rows", err=True, nl=False)
            yield row
        if number >= _ROWS:
            click.echo(_CLEAR_LINE, err=True, nl=False)

    return count if sys.stderr.isatty() else silently
