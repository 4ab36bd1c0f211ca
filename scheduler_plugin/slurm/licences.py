"""Slurm's notation of licences, such as ``ionode:4,matlab``: counting and changing them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ioncast_base.errors import InputError

_SEPARATORS = re.compile("[,;|]")
_ENTRY = re.compile(r"([^:=]*)([:=]?)\s*([+-]?)([0-9]*)")
# Slurm counts in 32 bits.
_COUNTS = 2**32
# A larger number counts as this one, whose low 32 bits are 0.
_MOST_COUNTED = 2**63
_MOST_DIGITS = len(str(_MOST_COUNTED)) + 1


@dataclass(frozen=True)
class Licence:
    """A licence of a cluster: how many Slurm has, and how many running jobs use."""

    name: str
    total: int
    used: int


def licence_count(licenses: str, name: str) -> int | None:
    """How many of a licence a job asks for; None if the text does not name the licence.

    Parameters
    ----------
    licenses : str
        The text of Slurm or of a user: ``name[:count]``, separated by commas or semicolons.
        A name without a count counts 1; the counts of a repeated name are added. Slurm keeps
        only the low 32 bits of each count and of the sum, so ``ionode:4294967297`` and
        ``ionode:-4294967295`` count 1. From Slurm 25.05 on ``a:1|b:2`` asks for one licence or
        the other; it is counted as if it asked for both.
    name : str
        The licence.

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
    """Set the count of one licence and keep the other licences.

    A count of 0 removes the licence.

    Raises
    ------
    InputError
        If the text has alternatives (``|``), beside which Slurm accepts no other licence.

    Examples
    --------
    >>> with_licence("matlab,ionode:4", "ionode", 2)
    'matlab,ionode:2'
    """
    if "|" in licenses:
        raise InputError(
            "these licences are alternatives, and Slurm accepts no other licence beside them",
            where=licenses,
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
    """Whether an entry names a licence, with or without its server: ``name@server``."""
    full_name = _parts(entry)[0]
    return name in (full_name, full_name.partition("@")[0])


def _count(entry: str) -> int:
    """The count as Slurm's C library reads it: a colon without digits is 0."""
    _, colon, sign, digits = _parts(entry)
    # Python rejects texts of thousands of digits, so cut them where the C library stops counting.
    count = min(int(digits.lstrip("0")[:_MOST_DIGITS] or 0), _MOST_COUNTED) if colon else 1
    return -count if sign == "-" else count
