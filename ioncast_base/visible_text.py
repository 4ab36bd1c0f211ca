"""Texts of users, made safe for lines that admins read and for spreadsheets."""

from __future__ import annotations

import re

# Apostrophes count, so that a text which already has one before its formula is read back whole.
_BEGINNING = r"('*[=+\-@\t\r])"
_FORMULA = re.compile(_BEGINNING)
# `as_cell` for other programs: a regular expression and its replacement.
AS_CELL = (f"^{_BEGINNING}", r"'\1")


def visible(text: object) -> str:
    """Quote a text with control characters, which could change the terminal or begin a new line."""
    shown = str(text)
    return shown if shown.isprintable() else repr(shown)


def as_cell(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> as_cell("=HYPERLINK(1)"), as_cell("'-x"), as_cell("a=b")
    ("'=HYPERLINK(1)", "''-x", 'a=b')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """Undo `as_cell`; other apostrophes stay."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
