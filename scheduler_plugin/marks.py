"""What `job_submit.lua` leaves in a job's admin_comment: the decision, and whether it is held."""

from __future__ import annotations

import re
from typing import NamedTuple

_MARK = re.compile(r"(?:^|(?<=\s))ioncast:([0-9A-Za-z_-]{1,32})(:held)?(?=\s|$)")


class Mark(NamedTuple):
    """A decision that a job was submitted by.

    Attributes
    ----------
    decision_id : str
        Of the service.
    is_held : bool
        Whether the job was held for the arbiter.
    """

    decision_id: str
    is_held: bool


def mark_of(admin_comment: str) -> Mark | None:
    """The last mark in a comment; None where there is none.

    Examples
    --------
    >>> mark_of("billed to physics ioncast:04a9:held")
    Mark(decision_id='04a9', is_held=True)
    >>> mark_of("nothing of ours")
    """
    found = list(_MARK.finditer(admin_comment))
    return Mark(found[-1][1], bool(found[-1][2])) if found else None


def without_hold(admin_comment: str) -> str:
    """The same comment of a job that is not held any more.

    Examples
    --------
    >>> without_hold("billed to physics ioncast:04a9:held")
    'billed to physics ioncast:04a9'
    """
    return _MARK.sub(r"ioncast:\1", admin_comment)
