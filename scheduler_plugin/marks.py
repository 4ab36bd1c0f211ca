"""The mark of `job_submit.lua` in a job's admin_comment: its decision, and whether it is held."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(r"(?:^|(?<=\s))ioncast:([0-9A-Za-z_-]{1,32})(:held)?(?=\s|$)")


class Mark(NamedTuple):
    """The decision that a job was submitted with.

    Attributes
    ----------
    decision_id : str
        The service's id of the decision.
    is_held : bool
        Whether the job was held for the arbiter.
    """

    decision_id: str
    is_held: bool


def mark_of(admin_comment: str) -> Mark | None:
    """The last mark in a comment; None without a mark.

    Examples
    --------
    >>> mark_of("billed to physics ioncast:04a9:held")
    Mark(decision_id='04a9', is_held=True)
    >>> mark_of("nothing of ours")
    """
    found = list(_MARK.finditer(admin_comment))
    return Mark(found[-1][1], bool(found[-1][2])) if found else None


def without_hold(admin_comment: str) -> str:
    """The comment after the job's release.

    Examples
    --------
    >>> without_hold("billed to physics ioncast:04a9:held")
    'billed to physics ioncast:04a9'
    """
    return _MARK.sub(r"ioncast:\1", admin_comment)
