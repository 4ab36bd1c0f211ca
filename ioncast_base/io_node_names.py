"""Names of a job's I/O nodes, as the hooks tell them in `ION_NODES`: `io3,io5`."""

from __future__ import annotations

import re

from ioncast_base.errors import InputError

LONGEST_NAME, MOST_NAMES = 64, 256
LONGEST_TEXT = MOST_NAMES * (LONGEST_NAME + 1) - 1
_NAME = re.compile(rf"[A-Za-z0-9._:-]{{1,{LONGEST_NAME}}}")


def is_name(text: str) -> bool:
    """Whether an I/O node may have this name: letters, digits and ``._:-``, as host names have."""
    return _NAME.fullmatch(text) is not None


def names_in(text: str) -> tuple[str, ...]:
    """Read the names.

    Raises
    ------
    InputError
        If a name is wrong or comes twice, or if they are more than 256.

    Examples
    --------
    >>> names_in("io3,io5")
    ('io3', 'io5')
    """
    names = tuple(text[: LONGEST_TEXT + 1].split(","))
    if len(names) > MOST_NAMES or len(set(names)) < len(names) or not all(map(is_name, names)):
        raise InputError(
            "these are not the names of a job's I/O nodes",
            remedy=f"send at most {MOST_NAMES} different names with commas between, each of at most"
            f" {LONGEST_NAME} letters, digits and ._:-",
        )
    return names
