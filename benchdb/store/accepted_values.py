"""Checks that reject values which the database cannot store."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Column

from benchdb.store.schema import longest
from ioncast_base.errors import InputError
from ioncast_base.limits import BANDWIDTHS, FASTEST_MIB_S, LARGEST_COUNT, SLOWEST_MIB_S
from ioncast_base.times import in_utc, instant

# NUL, and halves of a character, which UTF-8 cannot encode. Python makes such halves from
# arguments that are not UTF-8.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def check_text(name: str, text: str | None, most: int | Column[Any]) -> None:
    """Reject a text that a column cannot hold."""
    if text is None:
        return
    characters = most if isinstance(most, int) else longest(most)
    if len(text) > characters:
        raise InputError(f"{name} has {len(text)} characters, more than {characters}")
    if not is_text(text):
        raise InputError(f"{name} contains a NUL or half a character")


def is_text(text: str | None) -> bool:
    """Whether a database can hold the text; True for None."""
    return text is None or not _NO_TEXT.search(text)


def check_count(name: str, count: int | None, *, least: int = 0) -> None:
    """Reject a number of things that is too small or needs more than 32 bits; None is accepted."""
    if count is not None and not least <= count <= LARGEST_COUNT:
        raise InputError(f"{count} {name}, not from {least} to {LARGEST_COUNT}")


def check_bandwidth(bandwidth_mib_s: float | None) -> None:
    """Reject a bandwidth that is not from 1e-9 to 1e15 MiB/s; None is accepted."""
    if bandwidth_mib_s is not None and not SLOWEST_MIB_S <= bandwidth_mib_s <= FASTEST_MIB_S:
        raise InputError(f"a bandwidth of {bandwidth_mib_s} MiB/s is not {BANDWIDTHS}")


def check_share(name: str, share: float | None) -> None:
    """Reject a share that is not from 0 to 1; None is accepted."""
    if share is not None and not 0 <= share <= 1:
        raise InputError(f"{name} is {share}, not from 0 to 1")


def stored_time(name: str, text: str) -> str:
    """A time as the database stores it: ISO 8601 in UTC, so that texts sort by time."""
    moment = instant(text)
    try:
        if moment is not None:
            return in_utc(moment)
    except OverflowError:
        pass
    raise InputError(
        f"{name} is {text!r}, which is not a time", remedy="write it as 2026-11-21T04:15:02Z"
    )
