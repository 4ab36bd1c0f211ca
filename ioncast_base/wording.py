"""Numbers and lists of names in sentences."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

# More names in a message hide the right one. Comparing longer names takes too long.
_MOST_NAMES, _MOST_COMPARED = 5, 64


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


def alike_first(name: str, known: Iterable[str]) -> str:
    """List at most five of the names that there are, those most like an unknown one first.

    Examples
    --------
    >>> alike_first("mysite2", ["alpha", "mysite", "beta"])
    'mysite, beta and alpha'
    >>> alike_first("x7", [f"x{n}" for n in range(10, 20)])
    'x17, x10, x11, x12, x13 and 5 others'
    """
    names = sorted(known)
    wanted = name[:_MOST_COMPARED].casefold()

    def unlike(other: str) -> float:
        return -SequenceMatcher(None, other[:_MOST_COMPARED].casefold(), wanted).ratio()

    words = heapq.nsmallest(_MOST_NAMES, names, key=unlike)
    more = len(names) - len(words)
    return listed([*words, counted(more, "other")] if more else words)


def in_digits(value: float) -> str:
    """Write a quantity with three significant digits, or from 100 on as a whole number."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
