"""Texts of users, made safe for lines that admins read."""

from __future__ import annotations


def visible(text: object) -> str:
    r"""Quote a text with control characters, which could change the terminal or begin a new line.

    Examples
    --------
    >>> visible("ionode:4"), visible("ionode:\n4")
    ('ionode:4', "'ionode:\\n4'")
    """
    shown = str(text)
    return shown if shown.isprintable() else repr(shown)
