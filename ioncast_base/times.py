"""Times in ISO 8601, and durations such as ``90s``, as programs and people write them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from ioncast_base.errors import InputError

# ISO 8601 as Python 3.11 reads it. Python 3.10 reads only part of it.
_ISO = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)"
    r"(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,6})\d*)?)?"
    r"(?:[Zz]|([+-])(\d\d)(?::?(\d\d))?)?)?",
    re.ASCII,
)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile("".join(rf"(?:([0-9]{{1,9}}){unit})?" for unit in _SECONDS))


def instant(text: str | None) -> datetime | None:
    """Read an ISO 8601 date, or date and time, in UTC without a zone; None for any other text."""
    try:
        # This is much faster than the pattern and reads nearly all times.
        time = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return _instant(text or "")
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def in_utc(time: datetime) -> str:
    """Write a time in UTC, always with the same length, so that sorted texts are in time order."""
    return time.astimezone(timezone.utc).isoformat(timespec="microseconds")


def now() -> str:
    """Write the present time as `in_utc` does."""
    return in_utc(datetime.now(timezone.utc))


def parse_duration(text: str) -> int:
    """Read a duration longer than 0, in whole numbers of d, h, m and s in this order, as seconds.

    Examples
    --------
    >>> parse_duration("1h30m")
    5400
    """
    match = _DURATION.fullmatch(text)
    counts = match.groups(default="0") if match else ()
    seconds = sum(int(count) * s for count, s in zip(counts, _SECONDS.values(), strict=False))
    if not seconds:
        raise InputError(
            f"{text!r} is not a duration",
            remedy="write it with the units d, h, m and s, like 90s, 30m, 2h, 7d or 1h30m",
        )
    return seconds


def _instant(text: str) -> datetime | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    *numbers, fraction, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    try:
        zone = timezone(-offset if sign == "-" else offset)
        year, month, day, hour, minute, second = (int(number or 0) for number in numbers)
        microsecond = int((fraction or "").ljust(6, "0"))
        return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=zone)
    except ValueError:
        return None
