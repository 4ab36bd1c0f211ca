"""Numbers, sizes and lists of names in sentences."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from math import floor, isfinite, log2, log10

# More names in a message hide the right one. Comparing longer names takes too long.
_MOST_NAMES, _MOST_COMPARED = 5, 64
_MOST_DECIMALS = 12
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
    """Write a number with a noun whose plural ends in "s", or in "es" after an "s".

    Examples
    --------
    >>> counted(1, "configuration"), counted(2000, "configuration"), counted(2, "process")
    ('1 configuration', '2,000 configurations', '2 processes')
    """
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def listed(words: Sequence[str]) -> str:
    """List words as in a sentence.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a"]), listed([])
    ('a, b and c', 'a', '')
    """
    *first, last = words or [""]
    return f"{', '.join(first)} and {last}" if first else last


def sentence(clause: str) -> str:
    """Make a sentence of a clause; a file's name at its beginning stays as it is.

    Examples
    --------
    >>> sentence("the log has no trace"), sentence("app.darshan: it is damaged.")
    ('The log has no trace.', 'app.darshan: it is damaged.')
    """
    is_place = clause.partition(" ")[0].endswith(":")
    begun = clause if is_place else clause[:1].upper() + clause[1:]
    return begun if begun.endswith((".", "!", "?")) else f"{begun}."


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


def in_digits(value: float, digits: int = 3) -> str:
    """Write a quantity with three significant digits, and all digits before the point.

    It never has the scientific notation of the format ``g``, such as 1.02e+03.

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
    """Write bytes for people, in binary units.

    Examples
    --------
    >>> size(1), size(47008), size(1023.4 * 2**20), size(2**30)
    ('1 byte', '45.9 KiB', '1,023 MiB', '1 GiB')
    """
    if count_bytes < _KIB:
        return counted(round(count_bytes), "byte")
    powers = min(_powers(count_bytes), len(_UNITS))
    return f"{in_digits(count_bytes / _KIB**powers)} {_UNITS[powers - 1]}"


def bandwidth(mib_s: float) -> str:
    """Write a bandwidth for people: in MiB/s, or from 1,024 MiB/s on in larger units.

    Examples
    --------
    >>> bandwidth(73.86), bandwidth(584253.0), bandwidth(0.0123)
    ('73.9 MiB/s', '571 GiB/s', '0.0123 MiB/s')
    """
    powers = min(_powers(mib_s), len(_UNITS) - 2)
    return f"{in_digits(mib_s / _KIB**powers)} {_UNITS[powers + 1]}/s"


def _powers(value: float) -> int:
    """Count the powers of 1,024 in a value; as many as any unit has if it is infinite."""
    return int(log2(max(value, 1)) / 10) if isfinite(value) else len(_UNITS)
