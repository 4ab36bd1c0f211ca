"""Durations as users write them: ``90s``, ``30m``, ``2h``, ``7d`` or ``1h30m``."""

from __future__ import annotations

import re

from ioncast_base.errors import InputError

_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile("".join(rf"(?:([0-9]{{1,9}}){unit})?" for unit in _SECONDS))


def parse_duration(text: str) -> int:
    """Read a duration such as ``90s`` or ``1h30m``.

    Parameters
    ----------
    text : str
        Whole numbers, each with one of the units d, h, m and s, the larger units first.

    Returns
    -------
    int
        Seconds.

    Raises
    ------
    InputError
        If `text` is not a duration or is 0 seconds long.

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
