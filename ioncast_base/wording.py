"""Numbers in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def in_words(number: int) -> str:
    """Write a number of I/O nodes; 0 is "direct access"."""
    if number == 0:
        return "direct access"
    return "1 I/O node" if number == 1 else f"{number} I/O nodes"


def counted(number: int, what: str) -> str:
    """Write a number with a noun whose plural ends in "s".

    Examples
    --------
    >>> counted(1, "configuration"), counted(2000, "configuration")
    ('1 configuration', '2,000 configurations')
    """
    return f"{number:,} {what if number == 1 else f'{what}s'}"


def listed(words: Sequence[str]) -> str:
    """List words as in a sentence.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
    ('a, b and c', 'a', '')
    """
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def in_digits(value: float) -> str:
    """Write a quantity with three significant digits, or from 100 on as a whole number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
