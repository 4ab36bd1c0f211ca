"""Sizes and counts as IOR writes them: digits and, for sizes, one binary suffix."""

from __future__ import annotations

import re

from ioncast_base.errors import InputError
from ioncast_base.limits import LARGEST_BYTES

_EXPONENTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_SIZE = re.compile(r"([0-9]{1,19})([kmgtp]?)", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,19}")


def parse_size(text: str) -> int:
    """Read a size such as ``47008``, ``16m`` or ``1G``.

    IOR stops at the first character that it does not understand (``16x`` is 16). This function
    rejects such texts.

    Parameters
    ----------
    text : str
        Digits and at most one of the suffixes k, m, g, t and p in either case.

    Raises
    ------
    InputError
        If `text` is not a size or does not fit in 63 bits.

    Examples
    --------
    >>> parse_size("32m")
    33554432
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a size", remedy="write it like 47008, 64k, 16m or 1g")
    size = int(match[1]) << _EXPONENTS[match[2].lower()]
    if size > LARGEST_BYTES:
        raise InputError(f"{text!r} is larger than IOR can count")
    return size


def format_size(size_bytes: int) -> str:
    """Write a size with the largest suffix that keeps it exact.

    Parameters
    ----------
    size_bytes : int
        A size in bytes, at least 0.

    Returns
    -------
    str
        A text that `parse_size` reads as `size_bytes`.

    Examples
    --------
    >>> format_size(33554432), format_size(47008)
    ('32m', '47008')
    """
    exact = (
        (suffix, exponent)
        for suffix, exponent in reversed(_EXPONENTS.items())
        if size_bytes and size_bytes % (1 << exponent) == 0
    )
    suffix, exponent = next(exact, ("", 0))
    return f"{size_bytes >> exponent}{suffix}"


def parse_count(text: str) -> int:
    """Read a count such as ``8``: digits only.

    Raises
    ------
    InputError
        If `text` has other characters than digits, such as a sign.
    """
    if _COUNT.fullmatch(text) is None:
        raise InputError(f"{text!r} is not a count", remedy="write a whole number like 8")
    return int(text)


def integral(value: object) -> object:
    """Make a whole number of a float such as 8.0, which JSON Schema counts as an integer.

    Examples
    --------
    >>> integral(8.0), integral(8.5), integral("8.0")
    (8, 8.5, '8.0')
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value
