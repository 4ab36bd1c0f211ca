"""How numbers are said."""

from __future__ import annotations


def in_words(number: int) -> str:
    """A number of I/O nodes."""
    if number == 0:
        return "direct access"
    return "1 I/O node" if number == 1 else f"{number} I/O nodes"


def counted(number: int, what: str) -> str:
    """How many of something that takes an s.

    Examples
    --------
    >>> counted(1, "configuration"), counted(2000, "configuration")
    ('1 configuration', '2,000 configurations')
    """
    return f"{number:,} {what if number == 1 else f'{what}s'}"


def in_digits(value: float) -> str:
    """A quantity, without digits that nobody reads."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
