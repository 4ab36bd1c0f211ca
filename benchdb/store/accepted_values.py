"""What the database does not take is refused before it gets there."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Column

from benchdb.store.schema import longest
from ioncast_base.errors import InputError
from ioncast_base.limits import BANDWIDTHS, FASTEST_MIB_S, LARGEST_COUNT, SLOWEST_MIB_S
from ioncast_base.times import in_utc, instant

# NUL, and the halves of a character that UTF-8 does not have (an argument's stray bytes too).
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def check_text(name: str, text: str | None, most: int | Column[Any]) -> None:
    """Refuse a text that a column does not take.

    Parameters
    ----------
    name : str
        What the text is, for the error.
    text : str or None
        None is taken.
    most : int or Column
        Of how many characters, or the column that it is for.

    Raises
    ------
    InputError
        For one that is too long, or holds a NUL or half a character.
    """
    if text is None:
        return
    characters = most if isinstance(most, int) else longest(most)
    if len(text) > characters:
        raise InputError(f"{name} has {len(text)} characters, more than {characters}")
    if not is_text(text):
        raise InputError(f"{name} holds a NUL or half a character")


def is_text(text: str | None) -> bool:
    """Whether any database could hold it; None can be asked for, too."""
    return text is None or not _NO_TEXT.search(text)


def check_count(name: str, count: int | None, *, least: int = 0) -> None:
    """Refuse a number of things that cannot be, or is beyond 32 bits; None is taken.

    Raises
    ------
    InputError
        With `name`, the things in the plural.
    """
    if count is not None and not least <= count <= LARGEST_COUNT:
        raise InputError(f"{count} {name}, not from {least} to {LARGEST_COUNT}")


def check_bandwidth(bandwidth_mib_s: float | None) -> None:
    """Refuse a bandwidth that is not from 1e-9 to 1e15 MiB/s; None is taken.

    Raises
    ------
    InputError
        Also for what is no number.
    """
    if bandwidth_mib_s is not None and not SLOWEST_MIB_S <= bandwidth_mib_s <= FASTEST_MIB_S:
        raise InputError(f"a bandwidth of {bandwidth_mib_s} MiB/s is not {BANDWIDTHS}")


def check_share(name: str, share: float | None) -> None:
    """Refuse what is not from 0 to 1; None is taken.

    Raises
    ------
    InputError
        Also for what is no number.
    """
    if share is not None and not 0 <= share <= 1:
        raise InputError(f"{name} is {share}, not from 0 to 1")


def stored_time(name: str, text: str) -> str:
    """A moment as the database keeps it: in UTC, in the order of texts.

    Raises
    ------
    InputError
        For what is no date or time in ISO 8601.
    """
    moment = instant(text)
    try:
        if moment is not None:
            return in_utc(moment)
    except OverflowError:
        pass
    raise InputError(
        f"{name} is {text!r}, which is no time", remedy="write it as 2026-11-21T04:15:02Z"
    )
