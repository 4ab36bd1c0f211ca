"""Numbers, sizes and lists of names in sentences."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from math import floor, isfinite, log2, log10

# More names in a message hide the right one. Comparing longer names takes too long.
_MOST_NAMES, _MOST_COMPARED = 5, 64
_MOST_DECIMALS = 12
_MINUTE_S = 60
_KIB, _UNITS = 1024, ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def in_words(number: int) -> str:
    """Write a number of I/O nodes; 0 is "direct access"."""
    if number == 0:
        return "direct access"
    return counted(number, "I/O node")


def each_in_words(numbers: Sequence[int]) -> str:
    """Write several numbers of I/O nodes.

    Examples
    --------
    >>> each_in_words([0, 4, 8]), each_in_words([1]), each_in_words([0])
    ('0, 4, 8 I/O nodes', '1 I/O node', 'direct access')
    """
    if len(numbers) == 1:
        return in_words(numbers[0])
    return f"{', '.join(map(str, numbers))} I/O nodes"


def counted(number: int, what: str) -> str:
    """Write a number with a noun whose plural ends in "s", or in "es" after an "s"."""
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def listed(words: Sequence[str]) -> str:
    """List words as in a sentence: "a, b and c"; no words are an empty text."""
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def sentence(clause: str) -> str:
    """Make a sentence of a clause; a file's name at its beginning stays as it is."""
    is_place = clause.partition(" ")[0].endswith(":")
    begun = clause if is_place else clause[:1].upper() + clause[1:]
    return begun if begun.endswith((".", "!", "?")) else f"{begun}."


def alike_first(name: str, known: Iterable[str]) -> str:
    """List at most five of the names that there are, those most like an unknown one first.

    Examples
    --------
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


def in_digits(value: float, digits: int = 3) -> str:
    """Write a quantity with so many significant digits, and all digits before the point.

    Examples
    --------
    >>> in_digits(0.01234), in_digits(7.0), in_digits(1019.6), in_digits(12345.6, 4)
    ('0.0123', '7', '1,020', '12,346')
    """
    if not value or not isfinite(value):
        return f"{value:g}"
    decimals = digits - 1 - floor(log10(abs(value)))
    text = f"{value:,.{min(max(decimals, 0), _MOST_DECIMALS)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(count_bytes: float) -> str:
    """Write bytes for people, in binary units: "45.9 KiB"."""
    if count_bytes < _KIB:
        return counted(round(count_bytes), "byte")
    powers = min(_powers(count_bytes), len(_UNITS))
    return f"{in_digits(count_bytes / _KIB**powers)} {_UNITS[powers - 1]}"


def duration(seconds: float) -> str:
    """Write a time in seconds, minutes or hours.

    Examples
    --------
    >>> duration(2.861), duration(300), duration(8000)
    ('2.86 s', '5 min', '2.22 h')
    """
    for unit, length in (("s", 1), ("min", _MINUTE_S)):
        if seconds < 2 * _MINUTE_S * length:
            return f"{in_digits(seconds / length)} {unit}"
    return f"{in_digits(seconds / _MINUTE_S**2)} h"


def bandwidth(mib_s: float) -> str:
    """Write a bandwidth for people: in MiB/s, or from 1,024 MiB/s on in larger units."""
    powers = min(_powers(mib_s), len(_UNITS) - 2)
    return f"{in_digits(mib_s / _KIB**powers)} {_UNITS[powers + 1]}/s"


def _powers(value: float) -> int:
    """Count the powers of 1,024 in a value; as many as any unit has if it is infinite."""
    return int(log2(max(value, 1)) / 10) if isfinite(value) else len(_UNITS)
