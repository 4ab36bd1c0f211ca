"""Sizes and counts as IOR writes them: digits and, for sizes, one binary suffix."""

from __future__ import annotations

import re

from ioncast_base.errors import InputError
from ioncast_base.limits import LARGEST_BYTES

_EXPONENTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_SIZE = re.compile(r"([0-9]{1,19})([kmgtp]?)", re.IGNORECASE)
_COUNT = re.compile(r"[0-9]{1,19}")


def parse_size(text: str) -> int:
    """Read a size in bytes such as ``47008``, ``16m`` or ``1G``, with powers of 1,024 up to ``p``.

    IOR stops at the first character that it does not understand (``16x`` is 16). Such a text is
    an InputError here, and so is a size that does not fit in 63 bits.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a size", remedy="write it like 47008, 64k, 16m or 1g")
    size = int(match[1]) << _EXPONENTS[match[2].lower()]
    if size > LARGEST_BYTES:
        raise InputError(f"{text!r} is larger than IOR can count")
    return size


def format_size(size_bytes: int) -> str:
    """Write a size with the largest suffix that keeps it exact: 33554432 as "32m"."""
    exact = (
        (suffix, exponent)
        for suffix, exponent in reversed(_EXPONENTS.items())
        if size_bytes and size_bytes % (1 << exponent) == 0
    )
    suffix, exponent = next(exact, ("", 0))
    return f"{size_bytes >> exponent}{suffix}"


def parse_count(text: str) -> int:
    """Read a count such as ``8``: digits only, without a sign."""
    if _COUNT.fullmatch(text) is None:
        raise InputError(f"{text!r} is not a count", remedy="write a whole number like 8")
    return int(text)


def integral(value: object) -> object:
    """Make a whole number of a float such as 8.0, which JSON Schema counts as an integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
