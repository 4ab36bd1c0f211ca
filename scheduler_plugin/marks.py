"""The mark of `job_submit.lua` in a job's admin_comment: its decision, and its hold."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(
    r"(?:^|(?<=\s))ioncast:([0-9A-Za-z_-]{1,32})(?::held until:([0-9]{1,12}))?(?=\s|$)"
)


class Mark(NamedTuple):
    """The decision that a job was submitted with.

    Attributes
    ----------
    held_until_s : int or None
        The Unix time at which the hold for the arbiter ends by itself; None without a hold.
    """

    decision_id: str
    held_until_s: int | None = None


def mark_of(admin_comment: str) -> Mark | None:
    """The last mark in a comment; None without a mark.

    Examples
    --------
    >>> mark_of("billed to physics ioncast:04a9:held until:1795465753")
    Mark(decision_id='04a9', held_until_s=1795465753)
    >>> mark_of("nothing of ours")
    """
    found = list(_MARK.finditer(admin_comment))
    if not found:
        return None
    decision_id, until = found[-1].groups()
    return Mark(decision_id, int(until) if until else None)
