"""Slurm's texts of licences, such as ``ionode:4,matlab``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ioncast_base.errors import InputError

_SEPARATORS = re.compile("[,;|]")
_ENTRY = re.compile(r"([^:=]*)([:=]?)\s*([+-]?)([0-9]*)")
# Slurm counts in 32 bits.
_COUNTS = 2**32
_MOST_COUNTED = 2**63
_MOST_DIGITS = len(str(_MOST_COUNTED)) + 1


@dataclass(frozen=True)
class Licence:
    """A licence of a cluster: how many there are, and how many running jobs have."""

    name: str
    total: int
    used: int


def licence_count(licenses: str, name: str) -> int | None:
    """How many of a licence a job asks for; None where the text does not name it.

    Parameters
    ----------
    licenses : str
        As Slurm gives it or a user wrote it: ``name[:count]``, separated by commas or
        semicolons. No count is one; of a licence named twice the counts add up. Slurm keeps the
        low 32 bits of a count and of a sum: it takes ``ionode:4294967297`` for one, and
        ``ionode:-4294967295`` too. From Slurm
        25.05 on ``a:1|b:2`` asks for one or the other; it is read as if it asked for both.

    Examples
    --------
    >>> licence_count("matlab,ionode:4", "ionode")
    4
    >>> licence_count("matlab", "ionode") is None
    True
    """
    counts = [_count(entry) for entry in _entries(licenses) if _is_of(entry, name)]
    return sum(counts) % _COUNTS if counts else None


def with_licence(licenses: str, name: str, count: int) -> str:
    """Set how many of a licence a text asks for, and leave the others as they are.

    With a count of 0 the licence is not named any more.

    Raises
    ------
    InputError
        If the text asks for one licence or another, which Slurm allows with nothing beside it.

    Examples
    --------
    >>> with_licence("matlab,ionode:4", "ionode", 2)
    'matlab,ionode:2'
    """
    if "|" in licenses:
        raise InputError(
            "one licence or another is asked for, and no other can be added", where=licenses
        )
    others = [entry for entry in _entries(licenses) if not _is_of(entry, name)]
    return ",".join([*others, f"{name}:{count}"] if count else others)


def _entries(licenses: str) -> list[str]:
    return [entry.strip() for entry in _SEPARATORS.split(licenses) if entry.strip()]


def _parts(entry: str) -> tuple[str, str, str, str]:
    """Name, colon, sign and digits."""
    name, colon, sign, digits = _ENTRY.findall(entry)[0]
    return name, colon, sign, digits


def _is_of(entry: str, name: str) -> bool:
    """Whether this is the licence, perhaps with the server that hands it out: ``name@server``."""
    full_name = _parts(entry)[0]
    return name in (full_name, full_name.partition("@")[0])


def _count(entry: str) -> int:
    """Count as Slurm's C library does: a colon with nothing behind it is 0."""
    _, colon, sign, digits = _parts(entry)
    # Python refuses texts of thousands of digits; Slurm's C library stops counting long before.
    count = min(int(digits.lstrip("0")[:_MOST_DIGITS] or 0), _MOST_COUNTED) if colon else 1
    return -count if sign == "-" else count
