"""Tables as aligned text that fits the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click

_WIDE = "ioncast.wide"
# Characters. A narrower column is not wrapped.
_NARROWEST = 16


def text_table(
    rows: Sequence[Mapping[str, Any]],
    *,
    right: Collection[str] = (),
    optional: Sequence[str] = (),
    whole: str = "",
    missing: str = "",
) -> str:
    """Write rows as a table for people.

    Parameters
    ----------
    rows : sequence of mapping
        The cells by the name of their column, which other rows may lack.
    right : collection of str
        Columns that are aligned to the right.
    optional : sequence of str
        Columns that are left out of a table that is too wide for the terminal: of these the last
        one first. If that is not enough, the widest columns are wrapped. A pipe, a file and the
        option --wide get all columns, unwrapped.
    whole : str
        A column that is never wrapped, such as a command to paste.
    missing : str
        The text of a cell that is None, or that its row lacks.

    Examples
    --------
    >>> print(text_table([{"phase": 0, "size": "4 KiB"}, {"phase": 10, "size": "64 MiB"}]))
    phase  size
    -----  ------
    0      4 KiB
    10     64 MiB
    """
    width = _width()
    kept = list(dict.fromkeys(name for row in rows for name in row))
    limits: dict[str, int] = {}

    def table() -> str:
        return _table(
            [{name: row.get(name) for name in kept} for row in rows], right, missing, limits
        )

    made = table()
    left_out: list[str] = []
    for name in reversed(optional):
        if width is not None and _longest(made) > width and name in kept:
            kept.remove(name)
            left_out.insert(0, name)
            made = table()
    widths = {
        name: max(len(name), *(len(str(row.get(name))) for row in rows))
        for name in kept
        if name != whole
    }
    while width is not None and (excess := _longest(made) - width) > 0 and widths:
        name = max(widths, key=widths.__getitem__)
        limits[name] = max(widths.pop(name) - excess, _NARROWEST)
        made = table()
    return f"{made}\n(--wide also shows: {', '.join(left_out)})" if left_out else made


def show_wide(context: click.Context, _: click.Parameter, is_wide: bool) -> None:
    """Note that all tables of the command have all columns."""
    context.meta[_WIDE] = is_wide


def _table(
    rows: Sequence[Mapping[str, Any]],
    right: Collection[str],
    missing: str,
    limits: Mapping[str, int],
) -> str:
    # Its import takes longer than reading most logs, which CSV and JSON need not wait for.
    import tabulate  # noqa: PLC0415

    # Two blanks between columns are enough; a heading would get two more.
    tabulate.MIN_PADDING = 0
    names = list(rows[0]) if rows else []
    return tabulate.tabulate(
        rows,
        headers="keys",
        disable_numparse=True,
        colalign=["right" if name in right else "left" for name in names],
        maxcolwidths=[limits.get(name) for name in names] if limits else None,
        missingval=missing,
    )


def _longest(table: str) -> int:
    return max(map(len, table.splitlines()), default=0)


def _width() -> int | None:
    """The number of characters in a line of the terminal; None if it does not matter."""
    context = click.get_current_context(silent=True)
    if (context is not None and context.meta.get(_WIDE)) or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns
