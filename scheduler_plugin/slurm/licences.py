"""Slurm's notation of licences, such as ``ionode:4,matlab``: counting and changing them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ioncast_base.errors import InputError

_SEPARATORS = re.compile("[,;|]")
_ENTRY = re.compile(r"([^:=]*)([:=]?)\s*([+-]?[0-9]+)?")
_LARGEST_POOL = 65_536


@dataclass(frozen=True)
class Licence:
    """A licence of a cluster: how many Slurm has, and how many running jobs use."""

    name: str
    total: int
    used: int


def licence_count(licenses: str, name: str) -> int | None:
    """How many of a licence a job asks for; None if the text does not say it.

    Parameters
    ----------
    licenses : str
        The text of Slurm or of a user: ``name[:count]``, separated by commas or semicolons.
        A name without a count counts 1; the counts of a repeated name are added. A count that
        is negative or above any pool, of which Slurm keeps the low 32 bits, is left alone: its
        number is None. From Slurm 25.05 on ``a:1|b:2`` asks for one licence or
        the other; it is counted as if it asked for both.

    Examples
    --------
    >>> licence_count("matlab,ionode:4", "ionode")
    4
    >>> licence_count("matlab", "ionode") is None
    True
    """
    counts = [_count(entry) for entry in _entries(licenses) if _is_of(entry, name)]
    return int(sum(counts)) if counts and 0 <= sum(counts) <= _LARGEST_POOL else None


def with_licence(licenses: str, name: str, count: int) -> str:
    """Set the count of one licence and keep the other licences.

    A count of 0 removes the licence.

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


def _is_of(entry: str, name: str) -> bool:
    """Whether an entry names a licence, with or without its server: ``name@server``."""
    full_name = _ENTRY.findall(entry)[0][0]
    return name in (full_name, full_name.partition("@")[0])


def _count(entry: str) -> float:
    """The count of an entry; a float, because Python rejects texts of thousands of digits."""
    _, colon, digits = _ENTRY.findall(entry)[0]
    return float(digits or 0) if colon else 1.0
