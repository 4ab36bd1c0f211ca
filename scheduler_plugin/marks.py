"""The mark of `job_submit.lua` in a job's admin_comment: its decision, and its hold."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(
    r"(?:^|(?<=\s))ioncast:([0-9A-Za-z_-]{1,32})(:held(?: until:([0-9]{1,12}))?)?(?=\s|$)"
)


class Mark(NamedTuple):
    """The decision that a job was submitted with.

    Attributes
    ----------
    decision_id : str
        The service's id of the decision.
    is_held : bool
        Whether the job was held for the arbiter.
    until_s : int or None
        The Unix time at which the hold ends by itself; None for the holds of older plugins, which
        do not end by themselves.
    """

    decision_id: str
    is_held: bool
    until_s: int | None = None


def mark_of(admin_comment: str) -> Mark | None:
    """The last mark in a comment; None without a mark.

    Examples
    --------
    >>> mark_of("billed to physics ioncast:04a9:held until:1795465753")
    Mark(decision_id='04a9', is_held=True, until_s=1795465753)
    >>> mark_of("nothing of ours")
    """
    found = list(_MARK.finditer(admin_comment))
    if not found:
        return None
    decision_id, held, until = found[-1].groups()
    return Mark(decision_id, held is not None, int(until) if until else None)


def without_hold(admin_comment: str) -> str:
    """The comment after the job's release.

    Examples
    --------
    >>> without_hold("billed to physics ioncast:04a9:held")
    'billed to physics ioncast:04a9'
    """
    return _MARK.sub(r"ioncast:\1", admin_comment)
