"""Texts that users wrote, in lines that admins read."""

from __future__ import annotations


def visible(text: object) -> str:
    r"""Quote a text with characters that a terminal obeys or that would begin a line of its own.

    Examples
    --------
    >>> visible("ionode:4"), visible("ionode:\n4")
    ('ionode:4', "'ionode:\\n4'")
    """
    shown = str(text)
    return shown if shown.isprintable() else repr(shown)
